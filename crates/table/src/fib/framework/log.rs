//! The newest events of the framework.

use std::collections::VecDeque;
use std::fmt::{self, Display, Formatter};

use crate::addr::Address;
use crate::fib::Algorithm;

use super::event::{Event, ModuleChange};
use super::settings::Time;

/// Entries kept, so that a table that flaps for days cannot fill the memory with its log.
const MOST: usize = 256;

/// One event and its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// The caller's time when it happened.
    pub at: Time,
    /// What happened.
    pub event: Event,
}

/// As a kernel's message buffer prints it: seconds in brackets, then the text.
impl Display for LogEntry {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "[{:.6}] {}", self.at.as_secs_f64(), self.event)
    }
}

/// The newest events, oldest first.
#[derive(Debug, Default)]
pub struct Log {
    entries: VecDeque<LogEntry>,
    dropped: u64,
}

impl Log {
    /// All entries kept.
    pub fn iter(&self) -> impl Iterator<Item = &LogEntry> {
        self.entries.iter()
    }

    /// How many older entries were dropped to make room.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(super) fn push(&mut self, at: Time, event: Event) {
        if self.entries.len() == MOST {
            self.entries.pop_front();
            self.dropped += 1;
        }
        self.entries.push_back(LogEntry { at, event });
    }

    pub(super) fn module<A: Address>(&mut self, at: Time, module: &dyn Algorithm<A>, change: ModuleChange) {
        self.push(at, Event::Module { family: A::FAMILY, module: module.name(), change });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addr::Family;

    #[test]
    fn the_newest_entries_stay() {
        let mut log = Log::default();
        let event = Event::Module { family: Family::Inet, module: "dxr", change: ModuleChange::Registered };
        for second in 0..261 {
            log.push(Time::from_secs(second), event.clone());
        }
        assert_eq!((log.iter().count(), log.dropped()), (MOST, 5));
        let ends = [log.iter().next(), log.iter().last()].map(|entry| entry.map(|entry| entry.at.as_secs()));
        assert_eq!(ends, [Some(5), Some(260)]);
        let last = log.iter().last().map(ToString::to_string);
        assert_eq!(
            last.as_deref(),
            Some("[260.000000] [fib_algo] fib_module_register: attaching dxr to inet")
        );
    }
}
