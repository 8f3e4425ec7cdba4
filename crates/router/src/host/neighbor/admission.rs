//! Limits how often resolutions begin (RFC 6583, section 7.1).
//!
//! A scan of a network must not cause a request for each of its packets, and must not keep other packets from their
//! neighbours. So three things are limited on each interface: all resolutions, those that the packets of one sender
//! begin, and separately those of neighbours that were refused before. A sender that forges its source address is not
//! held by its share, but a scan seldom asks for an address twice, and a station that wants to talk does.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::time::Duration;

use super::id::NeighborId;
use crate::host::limit::{RateLimit, TokenBucket};

/// Senders share this many buckets, by a hash of their addresses.
const SENDER_BUCKETS: usize = 64;
/// Refused neighbours that are remembered; a newer one overwrites one with the same place.
const REMEMBERED: usize = 1 << 17;

/// The station whose packet begins a resolution: the interface that received the packet, and its source address.
pub(super) type PacketSource = (u16, IpAddr);

pub(super) struct ResolutionLimiter {
    limit: RateLimit,
    links: Vec<LinkLimiter>,
    refused: RefusedNeighbors,
}

#[derive(Clone)]
struct LinkLimiter {
    all: TokenBucket,
    senders: Vec<TokenBucket>,
    retries: TokenBucket,
}

impl ResolutionLimiter {
    pub fn new(interfaces: usize, limit: RateLimit) -> ResolutionLimiter {
        let links = vec![LinkLimiter::new(limit); interfaces];
        ResolutionLimiter { limit, links, refused: RefusedNeighbors(vec![0; REMEMBERED]) }
    }

    /// Makes room for at least this many interfaces.
    pub fn grow(&mut self, interfaces: usize) {
        let interfaces = interfaces.max(self.links.len());
        self.links.resize(interfaces, LinkLimiter::new(self.limit));
    }

    /// Whether the resolution of a neighbour may begin now.
    pub fn take(&mut self, now: Duration, id: NeighborId, source: PacketSource) -> bool {
        let Some(link) = self.links.get_mut(usize::from(id.interface)) else { return false };
        link.take(now, source) || self.refused.had(id) && link.retries.take(now)
    }
}

impl LinkLimiter {
    fn new(limit: RateLimit) -> LinkLimiter {
        let share = RateLimit { rate: limit.rate.div_ceil(2), burst: limit.burst.div_ceil(2) };
        let senders = vec![TokenBucket::new(share); SENDER_BUCKETS];
        LinkLimiter { all: TokenBucket::new(limit), senders, retries: TokenBucket::new(limit) }
    }

    /// Takes a token of the sender and one of the link. A sender without a token takes none of the link.
    fn take(&mut self, now: Duration, source: PacketSource) -> bool {
        let own = &mut self.senders[(hash(source) % SENDER_BUCKETS as u64) as usize];
        own.has(now) && self.all.take(now) && own.take(now)
    }
}

/// A mark for each neighbour that was refused lately. Two neighbours with the same mark are taken for one.
struct RefusedNeighbors(Vec<u32>);

impl RefusedNeighbors {
    /// Remembers a neighbour. Returns whether it was remembered before.
    fn had(&mut self, id: NeighborId) -> bool {
        let hash = hash(id);
        let mark = (hash >> u32::BITS) as u32 | 1;
        let place = &mut self.0[(hash % REMEMBERED as u64) as usize];
        std::mem::replace(place, mark) == mark
    }
}

/// Addresses of one network differ in few bits, which `FxHasher` does not spread over all bits of the hash.
fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
