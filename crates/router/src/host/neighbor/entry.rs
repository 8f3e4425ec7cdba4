//! One neighbour, and what news of it change (RFC 4861, section 7.2.5).

use std::collections::VecDeque;
use std::time::Duration;

use super::{Evidence, QueuedPacket};
use fullview_plane::wire::ethernet::Mac;

/// What is known of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reachability {
    /// It is asked for.
    Incomplete,
    /// It has answered.
    Reachable,
    /// It has spoken, but not as an answer; it will be asked.
    Stale,
    /// It is asked whether it is still there.
    Probe,
    /// Somebody has said so.
    Static,
}

/// A neighbour.
#[derive(Clone, Debug)]
pub(super) struct NeighborEntry {
    pub state: Reachability,
    mac: Mac,
    /// Since when this has been its link address.
    since: Duration,
    /// When it spoke last.
    pub confirmed: Duration,
    /// Questions asked without an answer.
    pub probes: u32,
    pub deadline: Duration,
    pub queue: VecDeque<QueuedPacket>,
}

impl NeighborEntry {
    pub fn incomplete(now: Duration) -> NeighborEntry {
        NeighborEntry { probes: 1, ..NeighborEntry::known(Reachability::Incomplete, Mac::default(), now) }
    }

    pub fn known(state: Reachability, mac: Mac, now: Duration) -> NeighborEntry {
        let queue = VecDeque::new();
        NeighborEntry { state, mac, since: now, confirmed: now, probes: 0, deadline: Duration::ZERO, queue }
    }

    pub fn mac(&self) -> Option<Mac> {
        (self.state != Reachability::Incomplete).then_some(self.mac)
    }

    /// Takes note of what was heard; whether the link address is new.
    pub fn update(&mut self, now: Duration, mac: Mac, evidence: Evidence, lock: Duration) -> bool {
        let was_incomplete = self.state == Reachability::Incomplete;
        let differs = was_incomplete || mac != self.mac;
        let overrides = match evidence {
            Evidence::Answer { overrides } | Evidence::Unasked { overrides } => overrides,
            Evidence::Question => true,
        };
        if differs && !was_incomplete {
            let locked = now < self.since.saturating_add(lock);
            if !overrides || locked {
                self.doubt(locked, now);
                return false;
            }
        }
        self.believe(now, mac, differs, matches!(evidence, Evidence::Answer { .. }));
        differs
    }

    /// Another station claims the address, and is not believed: what is known is asked again, soon.
    fn doubt(&mut self, locked: bool, now: Duration) {
        if self.state == Reachability::Reachable && !locked {
            (self.state, self.confirmed) = (Reachability::Stale, now);
        }
    }

    fn believe(&mut self, now: Duration, mac: Mac, differs: bool, answered: bool) {
        if differs {
            (self.mac, self.since) = (mac, now);
        }
        if answered {
            (self.state, self.confirmed, self.probes) = (Reachability::Reachable, now, 0);
        } else if differs {
            (self.state, self.confirmed, self.probes) = (Reachability::Stale, now, 0);
        }
    }
}
