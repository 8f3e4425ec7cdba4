//! The segments of known flows in a burst, between the loop that finds their flows and the one that follows them.

use fullview_filter::packet::TcpSegment;
use fullview_filter::state::flow::FlowCache;

use super::flow_set::KnownMarks;
use super::wire_flow::{FlowPacket, WireFamily};
use crate::burst::{BURST, Slot};

/// A plain segment of a known flow.
#[derive(Clone, Copy, Default)]
pub(super) struct SeenSegment {
    pub segment: TcpSegment,
    /// The length that the filter counts.
    pub length: u16,
    pub marks: KnownMarks,
}

impl SeenSegment {
    /// The segment of a whole packet without IP options, whose entry has this place, if it is a plain one.
    #[inline(always)]
    pub fn of<A: WireFamily>(cache: &FlowCache<A>, place: usize, slot: &Slot) -> Option<SeenSegment> {
        let FlowPacket { flow, length, .. } = A::read(slot);
        let segment = A::segment(slot, length)?;
        Some(SeenSegment { segment, length, marks: KnownMarks::of(cache, place as u32, &flow) })
    }
}

/// The segments by their positions in the burst.
pub(super) struct SeenSegments {
    segments: Box<[SeenSegment; BURST]>,
    positions: [u64; BURST / 64],
}

impl SeenSegments {
    pub fn new() -> SeenSegments {
        SeenSegments { segments: Box::new([SeenSegment::default(); BURST]), positions: [0; BURST / 64] }
    }

    pub fn clear(&mut self) {
        self.positions = [0; BURST / 64];
    }

    #[inline(always)]
    pub fn add(&mut self, position: usize, segment: SeenSegment) {
        let at = position % BURST;
        self.segments[at] = segment;
        self.positions[at / 64] |= 1 << (at % 64);
    }

    /// The segment at this position, if it is one.
    #[inline(always)]
    pub fn get(&self, position: usize) -> Option<&SeenSegment> {
        let at = position % BURST;
        let is_one = self.positions[at / 64] >> (at % 64) & 1 == 1;
        is_one.then(|| &self.segments[at])
    }

    pub fn iter(&self) -> impl Iterator<Item = &SeenSegment> {
        let positions = (0..).step_by(64).zip(self.positions).flat_map(|(first, bits)| {
            let rest = std::iter::successors(Some(bits), |bits| Some(bits & bits.wrapping_sub(1)));
            rest.take_while(|bits| *bits != 0).map(move |bits| first + bits.trailing_zeros() as usize)
        });
        positions.map(|position| &self.segments[position % BURST])
    }
}
