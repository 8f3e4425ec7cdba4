//! The addresses of one burst, gathered by table and family, so that one call looks up all of them.

use std::ops::Range;

use fullview_table::fib::Fib;
use fullview_table::fib::framework::{Reader, SharedReader};
use fullview_table::group::GroupView;
use fullview_table::{Address, Family, NextHop};

use super::route_cache::{RouteCache, RouteCacheCounters};
use crate::burst::BURST;
use crate::view::TableReaders;

/// The destination address of a packet, which is the key of its lookup.
pub(super) enum Destination {
    Inet(u32),
    Inet6(u128),
}

impl Destination {
    pub fn family(&self) -> Family {
        match self {
            Destination::Inet(_) => Family::Inet,
            Destination::Inet6(_) => Family::Inet6,
        }
    }

    /// The address as a number.
    pub fn bits(&self) -> u128 {
        match self {
            Destination::Inet(addr) => u128::from(*addr),
            Destination::Inet6(addr) => *addr,
        }
    }
}

/// The addresses of a burst that are looked up in one routing table.
pub(super) struct TableKeys {
    pub inet: FamilyKeys<u32>,
    pub inet6: FamilyKeys<u128>,
}

impl TableKeys {
    pub fn new(readers: &TableReaders) -> TableKeys {
        TableKeys { inet: FamilyKeys::new(&readers.inet), inet6: FamilyKeys::new(&readers.inet6) }
    }

    /// Takes the newest FIBs.
    pub fn catch_up(&mut self) {
        self.inet.reader.fib();
        self.inet6.reader.fib();
    }

    /// Removes the addresses of the burst before.
    pub fn clear(&mut self) {
        self.inet.clear();
        self.inet6.clear();
    }

    /// Prefetches the table memory of the destinations that were added since the last call, so that it arrives while the
    /// parser reads the next headers.
    #[inline]
    pub fn prefetch_added(&mut self) {
        self.inet.prefetch_added();
        self.inet6.prefetch_added();
    }
}

/// The addresses of a burst that are looked up in the FIB of one family.
pub(super) struct FamilyKeys<A: Address> {
    pub reader: Reader<A>,
    pub destinations: Box<LookupBatch<A>>,
    /// Source addresses of packets from interfaces with a source check.
    pub sources: Box<LookupBatch<A>>,
    /// Destinations whose table memory has been prefetched.
    prefetched: usize,
    cache: Option<RouteCache<A>>,
}

/// Positions of packets in a burst.
pub(super) struct BurstPositions<const ROOM: usize = BURST> {
    len: usize,
    positions: [u8; ROOM],
}

// A position in a burst is one byte.
const _: () = assert!(BURST <= 256);

impl<const ROOM: usize> BurstPositions<ROOM> {
    pub const NONE: BurstPositions<ROOM> = BurstPositions { len: 0, positions: [0; ROOM] };

    pub fn clear(&mut self) {
        self.len = 0;
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn get(&self, at: usize) -> usize {
        usize::from(self.positions[at])
    }

    /// Adds a position, at most as many as there is room for, and returns how many there were before.
    #[inline(always)]
    pub fn push(&mut self, position: usize) -> usize {
        // The remainder always equals the length; it lets the compiler leave out the bounds check.
        let at = self.len % ROOM;
        self.positions[at] = position as u8;
        self.len += 1;
        at
    }

    #[inline(always)]
    pub fn iter(&self) -> impl Iterator<Item = usize> + Clone {
        self.positions[..self.len].iter().map(|position| usize::from(*position))
    }
}

/// Addresses of one burst and the next hops found for them.
pub(super) struct LookupBatch<A> {
    /// The packets that the addresses belong to.
    positions: BurstPositions,
    addrs: [A; BURST],
    next_hops: [NextHop; BURST],
    /// How many packets at the end the stages do not see.
    hidden: usize,
}

impl<A: Address> FamilyKeys<A> {
    fn new(reader: &SharedReader<A>) -> FamilyKeys<A> {
        let (destinations, sources) = (LookupBatch::boxed(), LookupBatch::boxed());
        FamilyKeys { reader: reader.reader(), destinations, sources, prefetched: 0, cache: None }
    }

    /// Adds the destination of the packet at `position`.
    pub fn push(&mut self, addr: A, position: usize) {
        self.destinations.push(addr, position);
    }

    #[inline]
    fn prefetch_added(&mut self) {
        let len = self.destinations.positions.len;
        if len > self.prefetched {
            self.reader.fib().prefetch(&self.destinations.addrs[self.prefetched..len]);
            self.prefetched = len;
        }
    }

    /// Prefetches the table memory of all destinations of a burst before any of them is added.
    pub fn prefetch_all(&mut self, addrs: &[A]) {
        self.reader.fib().prefetch(addrs);
        self.prefetched = BURST;
    }

    /// Prefetches the second level of table memory, once the first level has arrived.
    pub fn prefetch_deeper(&mut self, addrs: &[A]) {
        self.reader.fib().prefetch_deeper(addrs);
    }

    /// Looks up one address, for the slow parser.
    #[cold]
    pub fn find(&mut self, addr: A) -> NextHop {
        self.reader.fib().lookup(addr)
    }

    fn clear(&mut self) {
        (self.prefetched, self.destinations.positions.len) = (0, 0);
    }

    /// Looks up all destinations.
    pub fn lookup(&mut self) {
        match &mut self.cache {
            None => self.destinations.lookup(self.reader.fib()),
            Some(cache) => {
                let batch = &mut *self.destinations;
                let len = batch.positions.len;
                cache.lookup(&mut self.reader, &batch.addrs[..len], &mut batch.next_hops[..len]);
            }
        }
    }

    pub fn set_cache(&mut self, entries: usize) {
        self.cache = Some(RouteCache::new(entries));
    }

    pub fn cache_counters(&self) -> RouteCacheCounters {
        self.cache.as_ref().map_or(RouteCacheCounters::default(), RouteCache::counters)
    }
}

impl<A: Address> LookupBatch<A> {
    fn boxed() -> Box<LookupBatch<A>> {
        let (addrs, next_hops) = ([A::zero(); BURST], [NextHop::NONE; BURST]);
        Box::new(LookupBatch { positions: BurstPositions::NONE, addrs, next_hops, hidden: 0 })
    }

    pub fn clear(&mut self) {
        self.positions.clear();
        self.hidden = 0;
    }

    /// Adds the address of the packet at `position`, at most [`BURST`] in a burst.
    #[inline(always)]
    pub fn push(&mut self, addr: A, position: usize) {
        self.addrs[self.positions.push(position)] = addr;
    }

    /// Room for more positions and addresses, four at a time, which [`Self::added`] adds.
    #[inline(always)]
    pub fn room(&mut self) -> impl Iterator<Item = (&mut [u8; 4], &mut [A; 4])> {
        let len = self.positions.len;
        let positions = self.positions.positions[len..].as_chunks_mut().0;
        positions.iter_mut().zip(self.addrs[len..].as_chunks_mut().0)
    }

    /// Adds as many packets as were written to [`Self::room`].
    #[inline(always)]
    pub fn added(&mut self, count: usize) {
        self.positions.len += count;
    }

    /// How many packets there are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.positions.len
    }

    /// The position in the burst of a packet of the batch.
    #[inline(always)]
    pub fn position(&self, at: usize) -> usize {
        self.positions.get(at)
    }

    /// The positions in the burst of some packets of the batch.
    #[inline(always)]
    pub fn positions_in(&self, packets: Range<usize>) -> &[u8] {
        &self.positions.positions[packets]
    }

    /// The next hops of some packets of the batch.
    #[inline(always)]
    pub fn next_hops_in(&mut self, packets: Range<usize>) -> &mut [NextHop] {
        &mut self.next_hops[packets]
    }

    /// The positions in the burst of some packets of the batch, and their next hops.
    #[inline(always)]
    pub fn parts_in(&mut self, packets: Range<usize>) -> (&[u8], &mut [NextHop]) {
        (&self.positions.positions[packets.clone()], &mut self.next_hops[packets])
    }

    /// The address of a packet of the batch.
    #[inline(always)]
    pub fn addr(&self, at: usize) -> A {
        self.addrs[at]
    }

    /// The next hop of a packet of the batch.
    pub fn next_hop(&self, at: usize) -> NextHop {
        self.next_hops[at]
    }

    /// Sets the next hop of a packet of the batch.
    #[inline(always)]
    pub fn set_next_hop(&mut self, at: usize, hop: NextHop) {
        self.next_hops[at] = hop;
    }

    /// Hides the packets at these positions, whose next hops are set, until [`Self::show`].
    #[inline]
    pub fn hide(&mut self, is_hidden: impl Fn(usize) -> bool) {
        let len = self.positions.len;
        let all = self.positions.iter().all(&is_hidden);
        let seen = if all { 0 } else { self.move_back(is_hidden) };
        (self.positions.len, self.hidden) = (seen, len - seen);
    }

    /// Hides all packets, whose next hops are set, until [`Self::show`].
    #[inline(always)]
    pub fn hide_all(&mut self) {
        (self.positions.len, self.hidden) = (0, self.positions.len);
    }

    /// Shows the hidden packets again, after the others.
    #[inline(always)]
    pub fn show(&mut self) {
        self.positions.len += self.hidden;
        self.hidden = 0;
    }

    /// Moves packets behind the others, which stay in order. Returns how many those are.
    #[cold]
    fn move_back(&mut self, moves: impl Fn(usize) -> bool) -> usize {
        let (mut hidden, mut hops) = (<BurstPositions>::NONE, [NextHop::NONE; BURST]);
        let mut seen = 0;
        for at in 0..self.positions.len {
            let position = self.positions.get(at);
            if moves(position) {
                hops[hidden.push(position)] = self.next_hops[at];
                continue;
            }
            self.positions.positions[seen] = position as u8;
            self.addrs[seen] = self.addrs[at];
            seen += 1;
        }
        for (at, position) in hidden.iter().enumerate() {
            self.positions.positions[seen + at] = position as u8;
            self.next_hops[seen + at] = hops[at];
        }
        seen
    }

    pub fn lookup(&mut self, fib: &dyn Fib<A>) {
        let len = self.positions.len;
        if len > 0 {
            fib.lookup_batch(&self.addrs[..len], &mut self.next_hops[..len]);
        }
    }

    /// The position of each packet in the burst.
    #[inline(always)]
    pub fn positions(&self) -> impl Iterator<Item = usize> + Clone {
        self.positions.iter()
    }

    /// The position of each packet in the burst, and its next hop.
    #[inline(always)]
    pub fn found(&self) -> impl Iterator<Item = (usize, NextHop)> {
        self.positions.iter().zip(self.next_hops[..self.positions.len].iter().copied())
    }

    /// The position of each packet in the burst, and its address.
    pub fn keys_mut(&mut self) -> impl Iterator<Item = (usize, &mut A)> {
        self.positions.iter().zip(&mut self.addrs[..self.positions.len])
    }

    /// As [`Self::found`], with mutable next hops.
    pub fn found_mut(&mut self) -> impl Iterator<Item = (usize, &mut NextHop)> {
        self.positions.iter().zip(&mut self.next_hops[..self.positions.len])
    }

    /// Replaces each group by what `member` says, which gets it with the packet's position.
    pub fn pick_members(&mut self, groups: &GroupView, member: impl Fn(NextHop, usize) -> NextHop) {
        for (position, hop) in self.found_mut() {
            if groups.is_group(*hop) {
                *hop = member(*hop, position);
            }
        }
    }
}
