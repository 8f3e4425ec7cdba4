//! Second stage: the gathered destinations of each table are looked up, all of a burst in one call, and groups pick
//! the members that the flows go to.
//!
//! The table's memory is asked for earlier, while the first stage still reads headers: see [`TableKeys::ask_ahead`].

use fullview_table::fib::Fib;
use fullview_table::fib::framework::{Reader, SharedReader};
use fullview_table::group::GroupView;
use fullview_table::{Address, NextHop};

use super::{Stages, flow, source_check};
use crate::burst::{BURST, Packet, Slot};
use crate::view::{TableReaders, View};

/// One table, and what of a burst is looked up in it.
pub(super) struct TableKeys {
    pub inet: FamilyKeys<u32>,
    pub inet6: FamilyKeys<u128>,
}

impl TableKeys {
    pub fn new(readers: &TableReaders) -> TableKeys {
        TableKeys { inet: FamilyKeys::new(&readers.inet), inet6: FamilyKeys::new(&readers.inet6) }
    }

    /// For another burst.
    pub fn clear(&mut self) {
        self.inet.clear();
        self.inet6.clear();
    }

    /// Asks for the memory that the destinations added last will need, so that it comes nearer while the next headers are
    /// read.
    #[inline]
    pub fn ask_ahead(&mut self) {
        self.inet.ask_ahead();
        self.inet6.ask_ahead();
    }
}

/// One family of one table: what of a burst is looked up in it.
pub(super) struct FamilyKeys<A: Address> {
    pub reader: Reader<A>,
    pub destinations: Box<LookupBatch<A>>,
    /// Of the interfaces that have them checked.
    pub sources: Box<LookupBatch<A>>,
    /// Destinations whose memory has been asked for.
    asked: usize,
}

/// BurstPositions of packets in a burst.
pub(super) struct BurstPositions {
    len: usize,
    places: [u8; BURST],
}

// A place in a burst is one byte.
const _: () = assert!(BURST <= 256);

impl BurstPositions {
    pub const NONE: BurstPositions = BurstPositions { len: 0, places: [0; BURST] };

    pub fn clear(&mut self) {
        self.len = 0;
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn get(&self, at: usize) -> usize {
        usize::from(self.places[at])
    }

    /// Adds a place, at most [`BURST`] a burst, and returns how many there were before.
    #[inline(always)]
    pub fn push(&mut self, place: usize) -> usize {
        // The remainder never differs from the length; it tells the compiler that no check is needed.
        let at = self.len % BURST;
        self.places[at] = place as u8;
        self.len += 1;
        at
    }

    #[inline(always)]
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.places[..self.len].iter().map(|place| usize::from(*place))
    }
}

/// Addresses of one burst, and what was found for them.
pub(super) struct LookupBatch<A> {
    /// Whose addresses they are.
    places: BurstPositions,
    addrs: [A; BURST],
    next_hops: [NextHop; BURST],
}

impl<A: Address> FamilyKeys<A> {
    fn new(reader: &SharedReader<A>) -> FamilyKeys<A> {
        FamilyKeys {
            reader: reader.reader(),
            destinations: LookupBatch::boxed(),
            sources: LookupBatch::boxed(),
            asked: 0,
        }
    }

    /// Adds the destination of the packet at `place`.
    pub fn push(&mut self, addr: A, place: usize) {
        self.destinations.push(addr, place);
    }

    #[inline]
    fn ask_ahead(&mut self) {
        let len = self.destinations.places.len;
        if len > self.asked {
            self.reader.fib().prefetch(&self.destinations.addrs[self.asked..len]);
            self.asked = len;
        }
    }

    /// Asks for what the destinations of a whole burst will need, before any is added.
    pub fn ask_for(&mut self, addrs: &[A]) {
        self.reader.fib().prefetch(addrs);
        self.asked = BURST;
    }

    /// Asks for the rest of it, when the first has come.
    pub fn ask_deeper(&mut self, addrs: &[A]) {
        self.reader.fib().prefetch_deeper(addrs);
    }

    /// The next hop of one address, for the slow path.
    #[cold]
    pub fn find(&mut self, addr: A) -> NextHop {
        self.reader.fib().lookup(addr)
    }

    fn clear(&mut self) {
        (self.asked, self.destinations.places.len) = (0, 0);
    }

    fn lookup(&mut self) {
        self.destinations.lookup(self.reader.fib());
    }
}

impl<A: Address> LookupBatch<A> {
    fn boxed() -> Box<LookupBatch<A>> {
        let (addrs, next_hops) = ([A::zero(); BURST], [NextHop::NONE; BURST]);
        Box::new(LookupBatch { places: BurstPositions::NONE, addrs, next_hops })
    }

    pub fn clear(&mut self) {
        self.places.clear();
    }

    /// Adds the address of the packet at `place`; at most [`BURST`] a burst.
    #[inline(always)]
    pub fn push(&mut self, addr: A, place: usize) {
        self.addrs[self.places.push(place)] = addr;
    }

    pub fn lookup(&mut self, fib: &dyn Fib<A>) {
        let len = self.places.len;
        if len > 0 {
            fib.lookup_batch(&self.addrs[..len], &mut self.next_hops[..len]);
        }
    }

    /// Each packet's place in the burst, and its next hop.
    #[inline(always)]
    pub fn found(&self) -> impl Iterator<Item = (usize, NextHop)> {
        self.places.iter().zip(self.next_hops[..self.places.len].iter().copied())
    }

    /// As [`Self::found`], with next hops that can be changed.
    pub fn found_mut(&mut self) -> impl Iterator<Item = (usize, &mut NextHop)> {
        self.places.iter().zip(&mut self.next_hops[..self.places.len])
    }

    /// Puts the members that the flows go to in the place of groups.
    fn pick_members(&mut self, groups: &GroupView, hash: impl Fn(usize) -> u32) {
        for (place, hop) in self.found_mut() {
            if groups.is_group(*hop) {
                *hop = groups.select(*hop, hash(place));
            }
        }
    }
}

impl Stages {
    #[inline]
    pub(super) fn lookup(&mut self, view: &View, packets: &mut [Packet<'_>]) {
        // Before any FIB is asked: see "When an index is used again" in the table's `group`.
        let groups = self.groups.groups();
        for table in &mut self.tables {
            table.inet.lookup();
            table.inet6.lookup();
            if !groups.is_empty() {
                let hash = |hash: fn(&Slot, u64) -> u32| {
                    let (packets, seed) = (&*packets, view.parts().policy.flow_seed);
                    move |place: usize| hash(packets[place], seed)
                };
                table.inet.destinations.pick_members(groups, hash(flow::inet));
                table.inet6.destinations.pick_members(groups, hash(flow::inet6));
            }
            if view.checks_sources() {
                source_check::check(table, view, groups, packets);
            }
        }
    }
}
