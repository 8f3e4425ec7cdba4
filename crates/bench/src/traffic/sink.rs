//! The receiver: counts every packet, and checks every one or a random sample.
//!
//! Packets, bytes and distinct flows are counted over all packets. Faults, duplicates and reordering cover the
//! checked ones; [`Tally::checked`] counts those. Which packets a sample takes is random (mean distance as
//! set), so that it cannot fall in step with flows sent in turn.

use std::fmt::{self, Display};
use std::num::NonZeroU32;

use fullview_plane::burst::{Packet, Slot};

use super::check::{Checker, Fault, Faults, Passage};
use super::flow::FlowSet;
use super::frame::{Frames, Headers};
use super::sequence::{Order, Sequence};

/// A packet that came out wrong, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// How many packets had been received before it.
    pub position: u64,
    /// The number of its flow, as the packet carries it.
    pub flow: u32,
    /// What was wrong.
    pub faults: Faults,
}

impl Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "packet {} received (flow {}) has wrong", self.position, self.flow)?;
        let mut separator = " ";
        for fault in self.faults.iter() {
            write!(f, "{separator}{}", fault.name())?;
            separator = ", ";
        }
        Ok(())
    }
}

/// What a receiver has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Packets received.
    pub packets: u64,
    /// Bytes of their frames, without FCS.
    pub bytes: u64,
    /// Distinct flows among them, by the flow numbers the packets carry.
    pub distinct_flows: u64,
    /// Packets checked.
    pub checked: u64,
    /// Checked packets with at least one fault.
    pub wrong: u64,
    /// Checked packets by fault, in the order of [`Fault::ALL`].
    pub faults: [u64; Fault::ALL.len()],
    /// The first wrong packet.
    pub first_wrong: Option<Wrong>,
    /// Duplicates and reordering among checked packets that carry a number.
    pub order: Order,
}

impl Tally {
    /// Adds what was seen in a later run of the same flows.
    pub fn add(&mut self, later: &Tally) {
        self.packets += later.packets;
        self.bytes += later.bytes;
        self.distinct_flows = self.distinct_flows.max(later.distinct_flows);
        self.checked += later.checked;
        self.wrong += later.wrong;
        self.faults.iter_mut().zip(later.faults).for_each(|(fault, more)| *fault += more);
        self.first_wrong = self.first_wrong.or(later.first_wrong);
        self.order.add(later.order);
    }
}

/// Counts and checks what comes out.
pub struct Sink<'f, A> {
    checker: Checker<'f, A>,
    packets: u64,
    bytes: u64,
    flows_seen: FlowBits,
    sample: Sample,
    checked: Checked,
}

impl<'f, A: Headers> Sink<'f, A> {
    /// A receiver of these flows that checks one packet in `check_one_in` on average; 1 checks all.
    pub fn new(
        flows: &'f FlowSet<A>,
        frames: &'f Frames<A>,
        passage: Passage<'f>,
        check_one_in: NonZeroU32,
    ) -> Self {
        Sink {
            checker: Checker::new(flows, frames, passage),
            packets: 0,
            bytes: 0,
            flows_seen: FlowBits::new(flows.distinct()),
            sample: Sample::new(check_one_in),
            checked: Checked::new(flows.distinct()),
        }
    }

    /// Counts packets, and checks those whose turn it is.
    pub fn receive(&mut self, packets: &[Packet<'_>]) {
        let mut bytes = 0;
        for slot in packets {
            bytes += slot.frame_len();
            self.flows_seen.note(A::flow_id(slot.head()));
        }
        self.bytes += bytes as u64;
        self.check_sample(packets);
        self.packets += packets.len() as u64;
    }

    fn check_sample(&mut self, packets: &[Packet<'_>]) {
        while let Some(at) = self.sample.next_below(packets.len()) {
            self.check(packets[at], self.packets + at as u64);
        }
        self.sample.pass_by(packets.len());
    }

    fn check(&mut self, slot: &Slot, position: u64) {
        let (faults, stamp) = self.checker.check(slot);
        self.checked.note(Wrong { position, flow: A::flow_id(slot.head()), faults });
        if let Some(stamp) = stamp {
            self.checked.sequence.note(stamp.sequence, stamp.flow);
        }
    }

    /// Packets received so far.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Everything seen so far.
    pub fn tally(&self) -> Tally {
        Tally {
            packets: self.packets,
            bytes: self.bytes,
            distinct_flows: self.flows_seen.distinct,
            order: self.checked.sequence.order(),
            ..self.checked.tally.clone()
        }
    }
}

/// What the checks found.
struct Checked {
    tally: Tally,
    sequence: Sequence,
}

impl Checked {
    fn new(flows: usize) -> Self {
        Checked { tally: Tally::default(), sequence: Sequence::new(flows) }
    }

    fn note(&mut self, packet: Wrong) {
        self.tally.checked += 1;
        if packet.faults.is_empty() {
            return;
        }
        self.tally.wrong += 1;
        self.tally.first_wrong.get_or_insert(packet);
        for fault in packet.faults.iter() {
            self.tally.faults[fault as usize] += 1;
        }
    }
}

/// One bit per flow.
struct FlowBits {
    words: Vec<u64>,
    distinct: u64,
}

impl FlowBits {
    fn new(flows: usize) -> Self {
        FlowBits { words: vec![0; flows.div_ceil(64)], distinct: 0 }
    }

    /// Numbers that no flow has are left to the check. A bit already set is not written again: consecutive packets
    /// share words, and each would have to wait for the store of the one before.
    #[inline(always)]
    fn note(&mut self, id: u32) {
        let Some(word) = self.words.get_mut(id as usize / 64) else { return };
        let bit = 1 << (id % 64);
        if *word & bit == 0 {
            *word |= bit;
            self.distinct += 1;
        }
    }
}

/// Chooses packets at random distances, `mean` on average: uniform over 1 to 2 × mean − 1.
struct Sample {
    mean: u32,
    /// The next packet to take, counted from the first of the burst at hand.
    next: usize,
    state: u64,
}

impl Sample {
    fn new(mean: NonZeroU32) -> Self {
        // The state must not be 0; beyond that any constant does: it decides only which packets are looked at.
        Sample { mean: mean.get(), next: 0, state: 0x9e37_79b9_7f4a_7c15 }
    }

    /// The next packet to take among the first `count` of the burst at hand.
    fn next_below(&mut self, count: usize) -> Option<usize> {
        let taken = (self.next < count).then_some(self.next)?;
        self.next += self.distance();
        Some(taken)
    }

    /// Goes on to the burst after one of `count` packets.
    fn pass_by(&mut self, count: usize) {
        self.next -= count;
    }

    /// Marsaglia's xorshift, scaled by multiplication.
    fn distance(&mut self) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let choices = u64::from(self.mean) * 2 - 1;
        1 + (((self.state >> 32) * choices) >> 32) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The packets taken out of `count`, which come in bursts of 1 to 7.
    fn positions(mean: u32, count: usize) -> Vec<usize> {
        let mut sample = Sample::new(NonZeroU32::new(mean).unwrap());
        let (mut taken, mut start) = (Vec::new(), 0);
        for len in (1..=7).cycle() {
            let len = len.min(count - start);
            taken.extend(std::iter::from_fn(|| sample.next_below(len)).map(|at| start + at));
            sample.pass_by(len);
            start += len;
            if start == count {
                return taken;
            }
        }
        taken
    }

    #[test]
    fn samples_have_the_mean_distance_and_no_rhythm() {
        let taken = positions(64, 640_000);
        assert!((9_700..10_300).contains(&taken.len()), "{}", taken.len());
        let mut residues: Vec<usize> = taken.iter().map(|position| position % 64).collect();
        residues.sort_unstable();
        residues.dedup();
        assert_eq!(residues.len(), 64);
    }

    #[test]
    fn one_in_one_takes_all() {
        assert_eq!(positions(1, 1000), (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn flows_are_counted_once() {
        let mut flows = FlowBits::new(65);
        [0, 64, 0, 64, 3, 4_000_000_000].into_iter().for_each(|id| flows.note(id));
        assert_eq!(flows.distinct, 3);
    }
}
