//! Ring entries found by vectors, read later by plain loads.

use crate::memory::{Ring, Word};
use crate::nexthop::NextHop;

use super::lanes::{Found, LANES, Lanes};

/// Ring entries found by vectors, `N` vectors of them, to be read by plain loads: as long as the entries are in a near
/// cache, these are quicker than a gather.
///
/// A vector that has just been stored delays single loads from it, so let some turns of the loop lie between
/// [`Self::set`] and [`Self::read`].
pub(crate) struct Places<'t, W: Word, const N: usize> {
    ring: Ring<'t, W>,
    /// None beyond the mask of the ring.
    places: [AlignedRow; N],
}

/// A vector of numbers in one cache line: a vector that crosses two lines is stored in two steps.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct AlignedRow([u32; LANES]);

impl<'t, W: Word, const N: usize> Places<'t, W, N> {
    /// Places in this ring; each is that of the first entry for now.
    #[inline(always)]
    pub(crate) fn new(ring: Ring<'t, W>) -> Self {
        Places { ring, places: [AlignedRow([0; LANES]); N] }
    }

    /// Makes vector `number` the places that these indices wrap to.
    #[inline(always)]
    pub(crate) fn set<L: Lanes>(&mut self, lanes: L, number: usize, indices: L::U32) {
        lanes.store(lanes.and(indices, lanes.splat(self.ring.mask())), &mut self.places[number].0);
    }

    /// Reads the entries of vector `number` as next hops. Returns whether any of them has the highest value that an
    /// entry can hold.
    #[inline(always)]
    pub(crate) fn read<L: Lanes>(&self, lanes: L, number: usize, out: &mut [NextHop; LANES]) -> bool {
        // `new` and `set` admit no place beyond the mask, which is below the number of entries; no code outside this
        // module can decide what lanes compute.
        lanes.read_next_hops::<W>(Found { entries: self.ring.entries(), places: &self.places[number].0 }, out)
    }
}
