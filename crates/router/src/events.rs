//! The most recent events of a router, with their times: links, resyncs, rebuilds, bans, reloads.

use std::collections::VecDeque;
use std::fmt::{self, Display};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// How many events are kept.
const MAX_EVENTS: usize = 1024;
/// Longer texts are cut: some of them contain what others sent.
const MAX_TEXT: usize = 512;

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// The router began or ends.
    Router,
    /// A link came, went or changed.
    Link,
    /// The kernel lost messages, and everything was read again.
    Resync,
    /// Another algorithm serves a table.
    Rebuild,
    /// An algorithm failed, and is no longer used for a table.
    Ban,
    /// The configuration was read again, or a reload was refused.
    Reload,
    /// Something needs the operator's attention.
    Warning,
}

impl Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            EventKind::Router => "router",
            EventKind::Link => "link",
            EventKind::Resync => "resync",
            EventKind::Rebuild => "rebuild",
            EventKind::Ban => "ban",
            EventKind::Reload => "reload",
            EventKind::Warning => "warning",
        })
    }
}

/// An event that was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecentEvent {
    /// Counted from 1.
    pub number: u64,
    pub at: SystemTime,
    pub kind: EventKind,
    pub text: String,
}

/// A ring of the newest events. The forwarding path must not use it, for it locks.
#[derive(Debug, Default)]
pub struct RecentEvents(Mutex<EventRing>);

#[derive(Debug, Default)]
struct EventRing {
    newest: VecDeque<RecentEvent>,
    count: u64,
}

impl RecentEvents {
    /// Keeps an event that happened now.
    pub fn record(&self, kind: EventKind, text: impl Into<String>) {
        self.record_at(SystemTime::now(), kind, text.into());
    }

    fn record_at(&self, at: SystemTime, kind: EventKind, mut text: String) {
        text.truncate(text.floor_char_boundary(MAX_TEXT));
        let mut ring = self.ring();
        ring.count += 1;
        if ring.newest.len() == MAX_EVENTS {
            ring.newest.pop_front();
        }
        let number = ring.count;
        ring.newest.push_back(RecentEvent { number, at, kind, text });
    }

    /// The last `most` events, oldest first.
    pub fn last(&self, most: usize) -> Vec<RecentEvent> {
        let ring = self.ring();
        ring.newest.iter().skip(ring.newest.len().saturating_sub(most)).cloned().collect()
    }

    /// How many events there have been, with those that are no longer kept.
    pub fn count(&self) -> u64 {
        self.ring().count
    }

    /// A thread that panicked with the lock left a whole ring: no step of `record_at` that could panic leaves it half done.
    fn ring(&self) -> MutexGuard<'_, EventRing> {
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
    fn the_newest_events_are_kept_and_long_texts_are_cut() {
        let events = RecentEvents::default();
        for number in 0..MAX_EVENTS + 5 {
            events.record(EventKind::Link, format!("link {number}"));
        }
        events.record(EventKind::Warning, "ä".repeat(MAX_TEXT));
        let last = events.last(2);
        assert_eq!((last[0].text.as_str(), last[1].text.chars().count()), ("link 1028", MAX_TEXT / 2));
        assert_eq!((last[1].number, events.count()), (1030, 1030));
        let kept = events.last(usize::MAX);
        assert_eq!((kept.len(), kept[0].number), (MAX_EVENTS, 7));
    }
}
