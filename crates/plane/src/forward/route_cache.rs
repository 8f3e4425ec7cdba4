//! A route cache: the next hops of destinations that were looked up before, kept for as long as the FIB does not change.
//!
//! Each worker has its own for each table and family, of a fixed size, so that traffic to many destinations takes no
//! memory; an entry gives way to the next destination with its place. It is off unless it is asked for: where a lookup
//! costs less than the cache's own memory, it does not pay.

use std::ops::AddAssign;

use fullview_table::fib::framework::Reader;
use fullview_table::{Address, NextHop};

use crate::burst::BURST;

/// How often a cache had the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouteCacheCounters {
    /// The entry was there, and of the present FIB.
    pub hits: u64,
    /// The destination had to be looked up.
    pub misses: u64,
    /// The misses whose entry was there, but from before a change of the FIB.
    pub stale: u64,
}

impl RouteCacheCounters {
    /// What was counted since `earlier`.
    pub fn since(self, earlier: RouteCacheCounters) -> RouteCacheCounters {
        RouteCacheCounters {
            hits: self.hits - earlier.hits,
            misses: self.misses - earlier.misses,
            stale: self.stale - earlier.stale,
        }
    }
}

impl AddAssign for RouteCacheCounters {
    fn add_assign(&mut self, other: RouteCacheCounters) {
        self.hits += other.hits;
        self.misses += other.misses;
        self.stale += other.stale;
    }
}

#[derive(Clone)]
struct CachedRoute<A> {
    addr: A,
    generation: u64,
    next_hop: NextHop,
}

/// The cache of one table and family.
pub(super) struct RouteCache<A> {
    entries: Box<[CachedRoute<A>]>,
    counters: RouteCacheCounters,
    /// Positions in the batch of the destinations that are not in the cache, and the destinations.
    missed: Vec<u8>,
    addrs: Vec<A>,
    found: Box<[NextHop]>,
}

/// No FIB has it: generations count from zero.
const NEVER: u64 = u64::MAX;

impl<A: Address> RouteCache<A> {
    /// An empty cache with room for so many destinations, rounded up to a power of two.
    pub fn new(entries: usize) -> RouteCache<A> {
        let empty = CachedRoute { addr: A::zero(), generation: NEVER, next_hop: NextHop::NONE };
        RouteCache {
            entries: vec![empty; entries.next_power_of_two()].into(),
            counters: RouteCacheCounters::default(),
            missed: Vec::with_capacity(BURST),
            addrs: Vec::with_capacity(BURST),
            found: vec![NextHop::NONE; BURST].into(),
        }
    }

    pub fn counters(&self) -> RouteCacheCounters {
        self.counters
    }

    /// Looks up at most [`BURST`] destinations, as one call of the FIB for those that are not cached.
    pub fn lookup(&mut self, reader: &mut Reader<A>, addrs: &[A], next_hops: &mut [NextHop]) {
        // Before the FIB is read: an answer that is newer than its generation is only looked up once more.
        let generation = reader.generation();
        self.take_hits(generation, addrs, next_hops);
        let found = &mut self.found[..self.addrs.len()];
        reader.fib().lookup_batch(&self.addrs, found);
        for ((at, addr), hop) in self.missed.iter().zip(&self.addrs).zip(&*found) {
            next_hops[usize::from(*at)] = *hop;
            let place = place(&self.entries, *addr);
            self.entries[place] = CachedRoute { addr: *addr, generation, next_hop: *hop };
        }
    }

    fn take_hits(&mut self, generation: u64, addrs: &[A], next_hops: &mut [NextHop]) {
        self.missed.clear();
        self.addrs.clear();
        for (at, (addr, hop)) in addrs.iter().zip(next_hops).enumerate() {
            let entry = &self.entries[place(&self.entries, *addr)];
            let is_here = entry.addr == *addr && entry.generation != NEVER;
            if is_here && entry.generation == generation {
                *hop = entry.next_hop;
                continue;
            }
            self.counters.stale += u64::from(is_here);
            self.missed.push(at as u8);
            self.addrs.push(*addr);
        }
        let missed = self.missed.len() as u64;
        self.counters.hits += addrs.len() as u64 - missed;
        self.counters.misses += missed;
    }
}

/// Fibonacci hashing of both halves of the address. A sender that chooses destinations can make them share a place; then they
/// miss, which costs no more than the lookup.
#[inline(always)]
fn place<A: Address>(entries: &[CachedRoute<A>], addr: A) -> usize {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let wide = addr.to_u128().unwrap_or(0);
    let folded = (wide as u64) ^ ((wide >> 64) as u64).rotate_left(32);
    (folded.wrapping_mul(GOLDEN) >> 32) as usize & (entries.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullview_table::fib::framework::{Attachment, Origin, Time};
    use fullview_table::fib::registry::Registered;
    use fullview_table::{Change, Rib};
    use std::sync::Arc;

    struct Routed {
        rib: Arc<Rib<u32>>,
        attachment: Attachment<u32>,
    }

    impl Routed {
        fn new() -> Routed {
            let attachment = Attachment::new(Time::ZERO, 0, u32::ALGORITHMS.into(), Arc::default());
            Routed { rib: Arc::default(), attachment }
        }

        fn announce(&mut self, prefix: &str, next_hop: NextHop) {
            let change = Change { prefix: prefix.parse().unwrap(), next_hop: Some(next_hop) };
            Arc::make_mut(&mut self.rib).apply(change);
            self.attachment.changed(Time::from_secs(1), &self.rib, &[change], Origin::Static);
        }
    }

    fn cached(cache: &mut RouteCache<u32>, reader: &mut Reader<u32>, addrs: &[u32]) -> Vec<u16> {
        let mut next_hops = vec![NextHop::NONE; addrs.len()];
        cache.lookup(reader, addrs, &mut next_hops);
        next_hops.iter().map(|hop| hop.0).collect()
    }

    #[test]
    fn answers_are_those_of_the_fib_whatever_changes() {
        let mut routed = Routed::new();
        routed.announce("10.0.0.0/8", NextHop(1));
        let (mut cache, mut reader) = (RouteCache::new(8), routed.attachment.reader());
        let addrs = [0x0a00_0001, 0x0b00_0001, 0x0a00_0001];
        assert_eq!(cached(&mut cache, &mut reader, &addrs), [1, 0, 1]);
        assert_eq!(cached(&mut cache, &mut reader, &addrs), [1, 0, 1]);
        assert_eq!(cache.counters(), RouteCacheCounters { hits: 3, misses: 3, stale: 0 });
        routed.announce("10.0.0.0/24", NextHop(2));
        assert_eq!(cached(&mut cache, &mut reader, &addrs), [2, 0, 2]);
        assert_eq!(cache.counters(), RouteCacheCounters { hits: 3, misses: 6, stale: 3 });
    }

    #[test]
    fn destinations_that_share_a_place_take_it_from_each_other() {
        let (mut cache, mut reader) = (RouteCache::new(1), Routed::new().attachment.reader());
        for _ in 0..2 {
            cached(&mut cache, &mut reader, &[1]);
            cached(&mut cache, &mut reader, &[2]);
        }
        assert_eq!(cache.counters(), RouteCacheCounters { hits: 0, misses: 4, stale: 0 });
    }
}
