//! Second stage: the gathered destinations of each family are looked up, all of a burst in one call.
//!
//! The table's memory is asked for earlier, while the first stage still reads headers: see [`Keys::push`].

use fullview_table::fib::Fib;
use fullview_table::{Address, NextHop};

use super::Forwarder;
use crate::burst::BURST;

/// The destinations of one family in a burst, and what was found for them.
pub(super) struct Keys<A> {
    addrs: [A; BURST],
    next_hops: [NextHop; BURST],
    /// Whose destination it is, as a place in the burst.
    places: [u8; BURST],
    len: usize,
}

/// Destinations whose part of the table is asked for in one call: enough that the call costs each of them little, few
/// enough that most of a burst is asked for before the first one is looked up.
const AHEAD: usize = 32;

// A place in a burst is one byte.
const _: () = assert!(BURST <= 256);

impl<A: Address> Keys<A> {
    pub(super) fn boxed() -> Box<Keys<A>> {
        let (addrs, next_hops) = ([A::zero(); BURST], [NextHop::NONE; BURST]);
        Box::new(Keys { addrs, next_hops, places: [0; BURST], len: 0 })
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// Adds the destination of the packet at `place`; at most [`BURST`] between two calls of `clear`. Every so many
    /// destinations `fib` is told of them, so that its memory comes nearer while the next headers are read.
    #[inline(always)]
    pub(super) fn push(&mut self, addr: A, place: usize, fib: &dyn Fib<A>) {
        // The remainder never differs from the length; it tells the compiler that no check is needed.
        let at = self.len % BURST;
        self.addrs[at] = addr;
        self.places[at] = place as u8;
        self.len += 1;
        if self.len.is_multiple_of(AHEAD) {
            fib.prefetch(&self.addrs[self.len - AHEAD..self.len]);
        }
    }

    /// Each packet's place in the burst, and its next hop.
    #[inline(always)]
    pub(super) fn found(&self) -> impl Iterator<Item = (usize, NextHop)> {
        let places = self.places[..self.len].iter().map(|place| usize::from(*place));
        places.zip(self.next_hops[..self.len].iter().copied())
    }
}

impl Forwarder {
    pub(super) fn lookup(&mut self) {
        let keys = &mut *self.inet_keys;
        if keys.len > 0 {
            self.inet.lookup_batch(&keys.addrs[..keys.len], &mut keys.next_hops[..keys.len]);
        }
        let keys = &mut *self.inet6_keys;
        if keys.len > 0 {
            self.inet6.lookup_batch(&keys.addrs[..keys.len], &mut keys.next_hops[..keys.len]);
        }
    }
}
