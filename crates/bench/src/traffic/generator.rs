//! The generator: fills packets with the next flows of a set.

use fullview_plane::burst::Packet;

use super::flow::FlowSet;
use super::frame::{Frames, Headers, Template, write};

/// Walks through a flow set and writes one packet after the other.
pub struct Generator<'f, A> {
    flows: &'f FlowSet<A>,
    frames: &'f Frames<A>,
    /// Port the packets come in by at the router.
    port: u16,
    sequence: u64,
    /// `sequence` modulo the packets of the set.
    at: usize,
    /// `sequence` modulo the turns of the sizes.
    turn: usize,
}

impl<'f, A: Headers> Generator<'f, A> {
    /// Starts with the first packet of the set.
    pub fn new(flows: &'f FlowSet<A>, frames: &'f Frames<A>, port: u16) -> Self {
        Generator { flows, frames, port, sequence: 0, at: 0, turn: 0 }
    }

    /// Writes the next packets, one into each slot, and returns the bytes of their frames without FCS. Slots must have
    /// been prepared by [`Frames::prepare`].
    pub fn fill(&mut self, slots: &mut [Packet<'_>]) -> u64 {
        let (mut rest, mut bytes) = (slots, 0);
        while !rest.is_empty() {
            let (run, later) = rest.split_at_mut(rest.len().min(self.flows.packets().len() - self.at));
            bytes += self.fill_run(run);
            rest = later;
        }
        bytes
    }

    /// As [`Generator::fill`], for no more packets than are left before the set begins again.
    fn fill_run(&mut self, slots: &mut [Packet<'_>]) -> u64 {
        let bytes = match self.frames.uniform() {
            Some(template) => self.write(slots, std::iter::repeat(template)),
            None => self.write(slots, self.frames.templates_from(self.turn)),
        };
        self.sequence += slots.len() as u64;
        self.at = (self.at + slots.len()) % self.flows.packets().len();
        self.turn = (self.turn + slots.len()) % self.frames.turns();
        bytes
    }

    /// The loop that limits what can be offered: everything that is the same for a run stays in registers.
    #[inline(always)]
    fn write<'t>(&self, slots: &mut [Packet<'_>], templates: impl Iterator<Item = &'t Template>) -> u64 {
        let (flows, port) = (&self.flows.packets()[self.at..], self.port);
        let (mut sequence, mut bytes) = (self.sequence, 0);
        for ((slot, flow), template) in slots.iter_mut().zip(flows).zip(templates) {
            slot.port = port;
            write(slot, template, flow, sequence);
            sequence += 1;
            bytes += template.frame_len() as u64;
        }
        bytes
    }
}
