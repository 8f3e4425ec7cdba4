//! Where the flows of a burst's packets are in the cache of known flows.

use crate::burst::BURST;

/// The place of a packet whose flow is not known.
pub(super) const UNKNOWN: u32 = u32::MAX;
/// Instead of the place of a packet that is counted already.
pub(super) const COUNTED: u32 = u32::MAX - 1;

/// A place for each position in the burst. In most bursts all packets are just counted, so that nothing is written here.
pub(super) struct FlowPlaces {
    places: Box<[u32; BURST]>,
    /// How many packets the burst has, and whether any place was set.
    len: usize,
    are_set: bool,
}

impl FlowPlaces {
    pub fn new() -> FlowPlaces {
        FlowPlaces { places: Box::new([COUNTED; BURST]), len: 0, are_set: false }
    }

    /// Begins a burst of so many packets, each of which is counted until its place is set.
    pub fn begin(&mut self, len: usize) {
        if self.are_set {
            self.places[..self.len].fill(COUNTED);
        }
        (self.len, self.are_set) = (len, false);
    }

    #[inline(always)]
    pub fn get(&self, position: usize) -> u32 {
        self.places[position % BURST]
    }

    #[inline(always)]
    pub fn set(&mut self, position: usize, place: u32) {
        self.places[position % BURST] = place;
        self.are_set = true;
    }
}
