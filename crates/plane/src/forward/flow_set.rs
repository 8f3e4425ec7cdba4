//! A set of flows in both directions, which may also hold some that were not added.

use fullview_filter::state::flow::FlowMarks;

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

    /// Whether the flow of a packet may be in the set.
    pub fn contains<A: WireFamily>(&self, slot: &Slot) -> bool {
        let FlowMarks { flow, addresses, .. } = A::read(slot).flow.marks();
        is_set(&self.flows, flow) || is_set(&self.addresses, addresses)
    }

    /// Notes a segment of a known flow.
    pub fn note_segment(&mut self, marks: FlowMarks) {
        set(&mut self.segments[usize::from(marks.is_descending)], marks.flow);
    }

    /// Whether the order matters in which the states of this segment's flow follow its packets: the flow is in the set, or a
    /// packet is that depends on what states follow, or the flow has noted segments in both directions. The packets of a burst
    /// pass their first interface one after the other, and then the second one.
    pub fn depends_on_order(&self, FlowMarks { flow, addresses, .. }: FlowMarks) -> bool {
        self.connections
            || is_set(&self.flows, flow)
            || is_set(&self.addresses, addresses)
            || self.segments.iter().all(|direction| is_set(direction, flow))
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
