//! Bounds and times of the neighbour cache.

use std::time::Duration;

use crate::host::limit::RateLimit;

/// How neighbours are resolved and kept. The times are those of RFC 4861, section 10.
#[derive(Clone, Debug)]
pub struct NeighborSettings {
    /// The most neighbours in the cache, static ones not counted.
    pub capacity: usize,
    /// The most neighbours that are unresolved at the same time. One more replaces the oldest of the interface that has
    /// most, so that a scan of a network evicts no resolved neighbours (RFC 6583) and does not stop other resolutions.
    pub incomplete: usize,
    /// The most packets that wait for one neighbour. A newer packet replaces the oldest.
    pub queue: usize,
    /// How often resolutions may begin on one interface, half of them for packets of one sender; as often again for
    /// neighbours whose resolution this limit refused before.
    pub resolutions: RateLimit,
    /// How often stations that asked for the router are learned on one interface. Each is a new route to follow, and the
    /// router answers without it; the others are resolved when there are packets for them.
    pub requests: RateLimit,
    /// The time between two requests to the same neighbour, at least a millisecond.
    pub retransmit: Duration,
    /// Requests without an answer after which a neighbour counts as lost.
    pub probes: u32,
    /// How long an answer is valid.
    pub reachable: Duration,
    /// How long a link address that was learned from a neighbour's own request is used before it is verified.
    pub stale: Duration,
    /// How long a neighbour's link address is kept although another station claims its IPv4 address.
    pub lock: Duration,
}

impl Default for NeighborSettings {
    fn default() -> NeighborSettings {
        NeighborSettings {
            capacity: 4096,
            incomplete: 512,
            queue: 8,
            resolutions: RateLimit { rate: 500, burst: 256 },
            requests: RateLimit { rate: 100, burst: 256 },
            retransmit: Duration::from_secs(1),
            probes: 3,
            reachable: Duration::from_secs(30),
            stale: Duration::from_secs(5),
            lock: Duration::from_secs(1),
        }
    }
}
