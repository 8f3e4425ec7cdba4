//! The last things that happened, with their times: links, resyncs, rebuilds, bans, reloads.

use std::collections::VecDeque;
use std::fmt::{self, Display};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// How many are kept.
const MOST: usize = 1024;
/// Longer texts are cut: some of them come from outside.
const LONGEST: usize = 512;

/// What kind of thing happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The router began or ends.
    Router,
    /// A link came, went or changed.
    Link,
    /// The kernel lost messages, and everything was read again.
    Resync,
    /// A table was compiled, by this or another algorithm.
    Rebuild,
    /// An algorithm is not used any more for a table.
    Ban,
    /// The configuration was read again, or could not be.
    Reload,
    /// Something is wrong.
    Warning,
}

impl Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Kind::Router => "router",
            Kind::Link => "link",
            Kind::Resync => "resync",
            Kind::Rebuild => "rebuild",
            Kind::Ban => "ban",
            Kind::Reload => "reload",
            Kind::Warning => "warning",
        })
    }
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Counted from 1.
    pub number: u64,
    pub at: SystemTime,
    pub kind: Kind,
    pub text: String,
}

/// A ring of the newest events. Not for the forwarding path: it locks.
#[derive(Debug, Default)]
pub struct Events(Mutex<Ring>);

#[derive(Debug, Default)]
struct Ring {
    newest: VecDeque<Event>,
    count: u64,
}

impl Events {
    /// Notes that something happened now.
    pub fn note(&self, kind: Kind, text: impl Into<String>) {
        self.note_at(SystemTime::now(), kind, text.into());
    }

    fn note_at(&self, at: SystemTime, kind: Kind, mut text: String) {
        text.truncate(text.floor_char_boundary(LONGEST));
        let mut ring = self.ring();
        ring.count += 1;
        if ring.newest.len() == MOST {
            ring.newest.pop_front();
        }
        let number = ring.count;
        ring.newest.push_back(Event { number, at, kind, text });
    }

    /// The last so many, oldest first.
    pub fn last(&self, most: usize) -> Vec<Event> {
        let ring = self.ring();
        ring.newest.iter().skip(ring.newest.len().saturating_sub(most)).cloned().collect()
    }

    /// How many there have been of that kind among those kept.
    pub fn count(&self) -> u64 {
        self.ring().count
    }

    /// A thread that panicked while it noted something left a whole ring: nothing in it is half done.
    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Microseconds since 1970; 0 before.
pub fn micros(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_stay_and_long_texts_are_cut() {
        let events = Events::default();
        for number in 0..MOST + 5 {
            events.note(Kind::Link, format!("link {number}"));
        }
        events.note(Kind::Warning, "ä".repeat(LONGEST));
        let last = events.last(2);
        assert_eq!((last[0].text.as_str(), last[1].text.chars().count()), ("link 1028", LONGEST / 2));
        assert_eq!((last[1].number, events.count()), (1030, 1030));
        let kept = events.last(usize::MAX);
        assert_eq!((kept.len(), kept[0].number), (MOST, 7));
    }
}
