//! One neighbour, and how messages change what is known of it (RFC 4861, section 7.2.5).

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use fullview_plane::wire::ethernet::Mac;

/// A packet that waits for its neighbour's link address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::host) struct QueuedPacket {
    /// The IP packet.
    pub packet: Vec<u8>,
    /// The interface that received it or, if the router made it, the one that it leaves by.
    pub interface: u16,
    /// The packet's source address.
    pub source: IpAddr,
    /// The router made it, in its own name or in another's.
    pub is_own: bool,
}

/// The message from which a link address was learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::host) enum Evidence {
    /// The station answered a request.
    Solicited {
        /// Whether the message replaces a different link address that is known.
        overrides: bool,
    },
    /// The station announced itself without a request.
    Unsolicited {
        /// Whether the message replaces a different link address that is known.
        overrides: bool,
    },
    /// The station asked for an address of the router.
    Request,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reachability {
    /// The first request has no answer yet.
    Incomplete,
    /// The neighbour answered a request.
    Reachable,
    /// The link address comes from a message that was no answer; the router will verify it.
    Stale,
    /// The router is verifying that the neighbour is still there.
    Probe,
    /// The neighbour is configured.
    Static,
}

#[derive(Clone, Debug)]
pub(super) struct NeighborEntry {
    pub state: Reachability,
    mac: Mac,
    /// Since when this has been its link address.
    since: Duration,
    /// The time of the last message that confirmed or questioned the link address.
    pub confirmed: Duration,
    /// Requests sent without an answer.
    pub probes: u32,
    pub deadline: Duration,
    /// The serial number of the resolution, as long as the neighbour is unresolved.
    pub serial: u64,
    pub queue: VecDeque<QueuedPacket>,
}

impl NeighborEntry {
    pub fn incomplete(now: Duration, serial: u64) -> NeighborEntry {
        let entry = NeighborEntry::resolved(Reachability::Incomplete, Mac::default(), now);
        NeighborEntry { probes: 1, serial, ..entry }
    }

    pub fn resolved(state: Reachability, mac: Mac, now: Duration) -> NeighborEntry {
        let (probes, deadline, serial, queue) = (0, Duration::ZERO, 0, VecDeque::new());
        NeighborEntry { state, mac, since: now, confirmed: now, probes, deadline, serial, queue }
    }

    pub fn mac(&self) -> Option<Mac> {
        (self.state != Reachability::Incomplete).then_some(self.mac)
    }

    /// Applies a message. Returns whether the link address is new.
    pub fn update(&mut self, now: Duration, mac: Mac, evidence: Evidence, lock: Duration) -> bool {
        let was_incomplete = self.state == Reachability::Incomplete;
        let differs = was_incomplete || mac != self.mac;
        let overrides = match evidence {
            Evidence::Solicited { overrides } | Evidence::Unsolicited { overrides } => overrides,
            Evidence::Request => true,
        };
        if differs && !was_incomplete {
            let locked = now < self.since.saturating_add(lock);
            if !overrides || locked {
                self.refuse(locked, now);
                return false;
            }
        }
        self.accept(now, mac, differs, matches!(evidence, Evidence::Solicited { .. }));
        differs
    }

    /// Keeps the link address although another station claims the IP address, but has it verified soon.
    fn refuse(&mut self, locked: bool, now: Duration) {
        if self.state == Reachability::Reachable && !locked {
            (self.state, self.confirmed) = (Reachability::Stale, now);
        }
    }

    fn accept(&mut self, now: Duration, mac: Mac, differs: bool, solicited: bool) {
        if differs {
            (self.mac, self.since) = (mac, now);
        }
        if solicited {
            (self.state, self.confirmed, self.probes) = (Reachability::Reachable, now, 0);
        } else if differs {
            (self.state, self.confirmed, self.probes) = (Reachability::Stale, now, 0);
        }
    }
}
