//! What the framework says, in the words of FreeBSD's `sys/net/route/fib_algo.c`, so that those who read its reports
//! recognise it.

use std::collections::VecDeque;
use std::fmt::{self, Display};

use crate::addr::{Address, Family};
use crate::fib::Algorithm;

use super::settings::Time;

/// Lines kept; a table that flaps for days must not fill the memory with its story.
const MOST: usize = 256;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When, by the caller's time.
    pub at: Time,
    /// What.
    pub text: String,
}

/// As a kernel's message buffer prints it: seconds in brackets, then the text.
impl Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{:.6}] {}", self.at.as_secs_f64(), self.text)
    }
}

/// The newest lines, oldest first.
#[derive(Debug, Default)]
pub struct Log {
    lines: VecDeque<Entry>,
    dropped: u64,
}

impl Log {
    /// All lines kept.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.lines.iter()
    }

    /// How many older ones made room.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(super) fn push(&mut self, at: Time, text: String) {
        if self.lines.len() == MOST {
            self.lines.pop_front();
            self.dropped += 1;
        }
        self.lines.push_back(Entry { at, text });
    }

    pub(super) fn module<A: Address>(&mut self, at: Time, module: &dyn Algorithm<A>, event: ModuleEvent) {
        let (function, verb, preposition) = match event {
            ModuleEvent::Registered => ("fib_module_register", "attaching", "to"),
            ModuleEvent::Unregistered => ("fib_module_unregister", "detaching", "from"),
        };
        let text = format!("[fib_algo] {function}: {verb} {} {preposition} {}", module.name(), A::FAMILY);
        self.push(at, text);
    }
}

/// What happens to a module as a whole.
#[derive(Clone, Copy)]
pub(super) enum ModuleEvent {
    Registered,
    Unregistered,
}

/// In whose name a line is logged: `inet.0`, or `inet.0 (bsearch4#7)`.
pub(super) struct Name {
    pub(super) family: Family,
    pub(super) number: u32,
    /// The module attached and the number of its instance.
    pub(super) attached: Option<(&'static str, u64)>,
}

impl Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.family, self.number)?;
        self.attached.map_or(Ok(()), |(module, instance)| write!(f, " ({module}#{instance})"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_lines_stay() {
        let mut log = Log::default();
        for second in 0..261 {
            log.push(Time::from_secs(second), format!("line {second}"));
        }
        assert_eq!((log.iter().count(), log.dropped()), (MOST, 5));
        let last = log.iter().last().map(ToString::to_string);
        assert_eq!(last.as_deref(), Some("[260.000000] line 260"));
    }

    #[test]
    fn names_are_those_of_the_kernel() {
        let name = Name { family: Family::Inet, number: 0, attached: Some(("bsearch4", 7)) };
        assert_eq!(name.to_string(), "inet.0 (bsearch4#7)");
        assert_eq!(Name { family: Family::Inet6, attached: None, ..name }.to_string(), "inet6.0");
    }
}
