//! Second stage: the gathered destinations of each table are looked up, all of a burst in one call, and groups pick
//! the members that the flows go to.
//!
//! The table's memory is asked for earlier, while the first stage still reads headers: see [`Keys::push`].

use fullview_table::fib::Fib;
use fullview_table::fib::framework::{Reader, SharedReader};
use fullview_table::group::GroupView;
use fullview_table::{Address, NextHop};

use super::{Stages, flow, sources};
use crate::burst::{BURST, Packet, Slot};
use crate::view::{TableReaders, View};

/// One table, and what of a burst is looked up in it.
pub(super) struct TableKeys {
    pub inet: Keys<u32>,
    pub inet6: Keys<u128>,
}

impl TableKeys {
    pub fn new(readers: &TableReaders) -> TableKeys {
        TableKeys { inet: Keys::new(&readers.inet), inet6: Keys::new(&readers.inet6) }
    }

    pub fn clear(&mut self) {
        self.inet.destinations.len = 0;
        self.inet6.destinations.len = 0;
    }
}

/// One family of one table: what of a burst is looked up in it.
pub(super) struct Keys<A: Address> {
    pub reader: Reader<A>,
    pub destinations: Box<Batch<A>>,
    /// Of the interfaces that have them checked.
    pub sources: Box<Batch<A>>,
}

/// Addresses of one burst, and what was found for them.
pub(super) struct Batch<A> {
    len: usize,
    addrs: [A; BURST],
    next_hops: [NextHop; BURST],
    /// Whose address it is, as a place in the burst.
    places: [u8; BURST],
}

/// Destinations whose part of the table is asked for in one call: enough that the call costs each of them little, few
/// enough that most of a burst is asked for before the first one is looked up.
const AHEAD: usize = 32;

// A place in a burst is one byte.
const _: () = assert!(BURST <= 256);

impl<A: Address> Keys<A> {
    fn new(reader: &SharedReader<A>) -> Keys<A> {
        Keys { reader: reader.reader(), destinations: Batch::boxed(), sources: Batch::boxed() }
    }

    /// Adds the destination of the packet at `place`; at most [`BURST`] a burst. Every so many destinations the FIB is
    /// told of them, so that its memory comes nearer while the next headers are read.
    #[inline(always)]
    pub fn push(&mut self, addr: A, place: usize) {
        let batch = &mut *self.destinations;
        batch.push(addr, place);
        if batch.len.is_multiple_of(AHEAD) {
            self.reader.fib().prefetch(&batch.addrs[batch.len - AHEAD..batch.len]);
        }
    }

    /// The next hop of one address, for the slow path.
    #[cold]
    pub fn find(&mut self, addr: A) -> NextHop {
        self.reader.fib().lookup(addr)
    }

    fn lookup(&mut self) {
        self.destinations.lookup(self.reader.fib());
    }
}

impl<A: Address> Batch<A> {
    fn boxed() -> Box<Batch<A>> {
        let (addrs, next_hops) = ([A::zero(); BURST], [NextHop::NONE; BURST]);
        Box::new(Batch { len: 0, addrs, next_hops, places: [0; BURST] })
    }

    pub fn clear(&mut self) {
        self.len = 0;
    }

    #[inline(always)]
    pub fn push(&mut self, addr: A, place: usize) {
        // The remainder never differs from the length; it tells the compiler that no check is needed.
        let at = self.len % BURST;
        self.addrs[at] = addr;
        self.places[at] = place as u8;
        self.len += 1;
    }

    pub fn lookup(&mut self, fib: &dyn Fib<A>) {
        if self.len > 0 {
            fib.lookup_batch(&self.addrs[..self.len], &mut self.next_hops[..self.len]);
        }
    }

    /// Each packet's place in the burst, and its next hop.
    #[inline(always)]
    pub fn found(&self) -> impl Iterator<Item = (usize, NextHop)> {
        let places = self.places[..self.len].iter().map(|place| usize::from(*place));
        places.zip(self.next_hops[..self.len].iter().copied())
    }

    /// As [`Self::found`], with next hops that can be changed.
    pub fn found_mut(&mut self) -> impl Iterator<Item = (usize, &mut NextHop)> {
        let places = self.places[..self.len].iter().map(|place| usize::from(*place));
        places.zip(&mut self.next_hops[..self.len])
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
                sources::check(table, view, groups, packets);
            }
        }
    }
}
