//! A set of flows in both directions, which may also hold some that were not added.

use fullview_filter::state::flow::{FlowCache, FlowMarks, WireFlow};

use super::wire_flow::{Judged, WireFamily};
use crate::burst::Slot;

/// Bits of each half of the set.
const BITS: usize = 1024;

/// Flows by their ends, and pairs of addresses for packets that do not show their ends.
pub(super) struct FlowSet {
    flows: [u64; BITS / 64],
    addresses: [u64; BITS / 64],
    /// Whether connections of all ends may be concerned.
    connections: bool,
    /// Flows with segments in each direction.
    segments: [[u64; BITS / 64]; 2],
}

/// To which flows a packet of a known flow belongs: those that the wire shows before and after both passes, and the one between
/// them, by which both directions of a translated connection are recognized.
#[derive(Clone, Copy, Default)]
pub(super) struct KnownMarks {
    pub between: FlowMarks,
    /// If they are others.
    wire: Option<[FlowMarks; 2]>,
}

impl KnownMarks {
    /// Of a packet whose entry has this place, or is counted already.
    #[inline(always)]
    pub fn of<A: WireFamily>(cache: &FlowCache<A>, place: u32, flow: &WireFlow<A>) -> KnownMarks {
        match cache.translation(place as usize) {
            None => KnownMarks { between: flow.marks(), wire: None },
            Some(translation) => KnownMarks {
                between: translation.between(flow).marks(),
                wire: Some([flow.marks(), translation.to.marks()]),
            },
        }
    }

    pub fn is_translated(&self) -> bool {
        self.wire.is_some()
    }

    /// Whether this is true of any of them.
    #[inline(always)]
    pub fn any(&self, is_true: impl Fn(FlowMarks) -> bool) -> bool {
        is_true(self.between) || self.wire.is_some_and(|wire| wire.into_iter().any(is_true))
    }

    pub fn all(&self) -> impl Iterator<Item = FlowMarks> + use<> {
        std::iter::once(self.between).chain(self.wire.into_iter().flatten())
    }
}

impl Default for FlowSet {
    fn default() -> FlowSet {
        let none = [0; BITS / 64];
        FlowSet { flows: none, addresses: none, connections: false, segments: [none; 2] }
    }
}

impl FlowSet {
    /// Adds the flow that a packet may belong to.
    pub fn add<A: WireFamily>(&mut self, slot: &Slot) {
        let FlowMarks { flow, addresses, .. } = A::read(slot).flow.marks();
        match A::judged(slot) {
            Judged::Flow => set(&mut self.flows, flow),
            Judged::AnyOfAddresses => {
                set(&mut self.addresses, addresses);
                self.connections = true;
            }
            Judged::AnyConnection => self.connections = true,
            Judged::NoKnownFlow => {}
        }
    }

    /// Adds a flow.
    pub fn add_flow(&mut self, marks: FlowMarks) {
        set(&mut self.flows, marks.flow);
    }

    /// Whether a flow may be in the set.
    pub fn contains(&self, FlowMarks { flow, addresses, .. }: FlowMarks) -> bool {
        is_set(&self.flows, flow) || is_set(&self.addresses, addresses)
    }

    /// Notes a segment of a known flow.
    pub fn note_segment(&mut self, marks: FlowMarks) {
        set(&mut self.segments[usize::from(marks.is_descending)], marks.flow);
    }

    /// Whether the order matters in which the states of this segment's flow follow its packets: the flow is in the set, or a
    /// packet is that depends on what states follow, or the flow has noted segments in both directions. The packets of a burst
    /// pass their first interface one after the other, and then the second one.
    #[inline(always)]
    pub fn depends_on_order(&self, marks: FlowMarks) -> bool {
        self.connections
            || self.contains(marks)
            || self.segments.iter().all(|direction| is_set(direction, marks.flow))
    }
}

fn set(bits: &mut [u64; BITS / 64], mark: u32) {
    let bit = mark as usize % BITS;
    bits[bit / 64] |= 1 << (bit % 64);
}

fn is_set(bits: &[u64; BITS / 64], mark: u32) -> bool {
    let bit = mark as usize % BITS;
    bits[bit / 64] >> (bit % 64) & 1 == 1
}
