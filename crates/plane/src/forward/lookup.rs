//! Second stage: the gathered destinations of each family are looked up, all of a burst in one call.

use fullview_table::NextHop;

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

// A place in a burst is one byte.
const _: () = assert!(BURST <= 256);

impl<A: Copy + Default> Keys<A> {
    pub(super) fn boxed() -> Box<Keys<A>> {
        let (addrs, next_hops) = ([A::default(); BURST], [NextHop::NONE; BURST]);
        Box::new(Keys { addrs, next_hops, places: [0; BURST], len: 0 })
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// Adds the destination of the packet at `place`; at most [`BURST`] between two calls of `clear`.
    #[inline(always)]
    pub(super) fn push(&mut self, addr: A, place: usize) {
        // The remainder never differs from the length; it tells the compiler that no check is needed.
        let at = self.len % BURST;
        self.addrs[at] = addr;
        self.places[at] = place as u8;
        self.len += 1;
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
