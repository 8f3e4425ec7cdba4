//! Samples of the packets that a worker receives, one in N at random, for flow export.
//!
//! The numbers of packets between two samples are random, so that periodic traffic cannot escape them. A sample has the
//! first bytes of the frame as it came in, and what the loop decided about it. The worker never waits: while the ring is
//! full, the newest sample of each port stays here until there is room, and says how many older ones were lost.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::num::NonZeroU32;

use crate::burst::{BURST, Packet, Slot};
use crate::program_verdict::ProgramVerdict;
use crate::verdict::Verdict;

/// Bytes of a frame that a sample has at most.
pub const MOST_HEADER: usize = 128;

/// Samples that a worker's ring holds.
const RING: usize = 1024;

/// Who decided about a packet, and what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The loop of a worker.
    Loop(Verdict),
    /// The program in the kernel.
    Program(ProgramVerdict),
}

/// A sampled packet.
#[derive(Clone, Copy, Debug)]
pub struct PacketSample {
    /// The port that received it.
    pub port: u16,
    /// The length of the frame in bytes, without the FCS.
    pub frame_len: u32,
    /// What was decided about it.
    pub decision: Decision,
    /// Of a forwarded packet: the port to send it by. That port may still have no room for it.
    pub egress: Option<u16>,
    /// Packets that the port received since its last sample in the ring, up to this one.
    pub passed: u64,
    /// Samples of the port between the two, which the ring had no room for.
    pub lost: u64,
    pub(crate) header: [u8; MOST_HEADER],
}

impl PacketSample {
    /// A sample of a frame of which these are the first bytes.
    pub(crate) fn new(port: u16, frame_len: u32, decision: Decision, frame: &[u8]) -> PacketSample {
        let mut header = [0; MOST_HEADER];
        let copied = frame.len().min(MOST_HEADER);
        header[..copied].copy_from_slice(&frame[..copied]);
        PacketSample { port, frame_len, decision, egress: None, passed: 1, lost: 0, header }
    }

    fn of(packet: &Slot, passed: u64) -> PacketSample {
        let (frame_len, decision) = (packet.frame_len() as u32, Decision::Loop(packet.verdict));
        PacketSample { passed, ..PacketSample::new(packet.port, frame_len, decision, packet.frame()) }
    }

    /// The first bytes of the frame as it came in.
    pub fn header(&self) -> &[u8] {
        &self.header[..(self.frame_len as usize).min(MOST_HEADER)]
    }
}

/// Makes the two ends of a worker's ring: the worker, with that many ports, samples one packet in `rate`.
pub fn sampler(rate: NonZeroU32, ports: usize) -> (Sampler, rtrb::Consumer<PacketSample>) {
    let (ring, samples) = rtrb::RingBuffer::new(RING);
    let mut gaps = RandomGaps::new(rate);
    let (left, chosen) = (gaps.draw(), Vec::with_capacity(BURST));
    let ports = vec![SampledPort::default(); ports];
    (Sampler { gaps, left, ports, chosen, are_waiting: false, ring }, samples)
}

/// The worker's end of a ring, for [`Forwarder::set_sampler`](crate::forward::Forwarder::set_sampler). It does not allocate
/// once it is made.
pub struct Sampler {
    gaps: RandomGaps,
    /// The next sample is the last of so many packets, one at least.
    left: u64,
    ports: Vec<SampledPort>,
    /// Samples of this burst, by position.
    chosen: Vec<(usize, PacketSample)>,
    /// Whether a sample of some port waits for room in the ring.
    are_waiting: bool,
    ring: rtrb::Producer<PacketSample>,
}

#[derive(Clone, Default)]
struct SampledPort {
    /// Packets since its last sample.
    passed: u64,
    /// Its newest sample, if the ring had no room for it.
    waiting: Option<PacketSample>,
}

impl Sampler {
    /// Copies the packets whose turn it is; to be called before the loop changes them.
    pub(crate) fn begin(&mut self, packets: &[Packet<'_>]) {
        for (position, packet) in packets.iter().enumerate() {
            let Some(port) = self.ports.get_mut(usize::from(packet.port)) else { continue };
            port.passed += 1;
            self.left -= 1;
            if self.left == 0 {
                self.left = self.gaps.draw();
                self.chosen.push((position, PacketSample::of(packet, std::mem::take(&mut port.passed))));
            }
        }
    }

    /// Adds the verdicts on the packets of the last [`Self::begin`], and puts the samples into the ring.
    pub(crate) fn finish(&mut self, packets: &[Packet<'_>]) {
        self.push_waiting();
        for (position, sample) in self.chosen.drain(..) {
            let (Some(packet), Some(port)) =
                (packets.get(position), self.ports.get_mut(usize::from(sample.port)))
            else {
                continue;
            };
            let egress = (packet.verdict == Verdict::Forward).then_some(packet.port);
            let decision = Decision::Loop(packet.verdict);
            let sample = port.after_waiting(PacketSample { decision, egress, ..sample });
            if self.ring.push(sample).is_err() {
                (port.waiting, self.are_waiting) = (Some(sample), true);
            }
        }
    }

    /// Puts the samples that wait into the ring, as far as there is room. The worker also calls it while no packets come: what
    /// was lost at the end of a burst is reported then, and not by the next traffic.
    pub(crate) fn push_waiting(&mut self) {
        if !std::mem::take(&mut self.are_waiting) {
            return;
        }
        for port in &mut self.ports {
            if let Some(sample) = port.waiting.take()
                && self.ring.push(sample).is_err()
            {
                (port.waiting, self.are_waiting) = (Some(sample), true);
                break;
            }
        }
        self.are_waiting = self.ports.iter().any(|port| port.waiting.is_some());
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.push_waiting();
    }
}

impl SampledPort {
    /// This sample in place of the one that waits, which is lost.
    fn after_waiting(&mut self, sample: PacketSample) -> PacketSample {
        let Some(lost) = self.waiting.take() else { return sample };
        PacketSample { passed: lost.passed + sample.passed, lost: lost.lost + 1, ..sample }
    }
}

/// Random numbers of packets with the sampling rate as their mean, equally distributed.
struct RandomGaps {
    most: u64,
    state: u64,
}

impl RandomGaps {
    fn new(rate: NonZeroU32) -> RandomGaps {
        // The generator below never leaves the state zero.
        let seed = RandomState::new().build_hasher().finish() | 1;
        RandomGaps { most: 2 * u64::from(rate.get()) - 1, state: seed }
    }

    /// A number from 1 to twice the rate less one (xorshift64 of Marsaglia, 2003).
    fn draw(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        1 + self.state % self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::burst::Arena;

    /// Passes bursts of four packets, two each of ports 0 and 1, through a sampler.
    fn pass(sampler: &mut Sampler, bursts: usize) {
        let mut arena = Arena::new(4);
        let mut packets: Vec<_> = arena.packets().collect();
        for _ in 0..bursts {
            for (number, packet) in (0..).zip(&mut packets) {
                (packet.port, packet.verdict) = (number % 2, Verdict::Forward);
                packet.set_frame(&[number as u8; 200]);
            }
            sampler.begin(&packets);
            packets.iter_mut().for_each(|packet| packet.port = 7);
            sampler.finish(&packets);
        }
    }

    #[test]
    fn a_rate_of_one_samples_every_packet_as_it_came_in() {
        let (mut sampler, mut samples) = sampler(NonZeroU32::MIN, 2);
        pass(&mut sampler, 1);
        for number in 0..4 {
            let sample = samples.pop().unwrap();
            assert_eq!((sample.port, sample.egress, sample.passed), (number % 2, Some(7), 1));
            assert_eq!((sample.frame_len, sample.header()), (200, &[number as u8; MOST_HEADER][..]));
        }
        assert!(samples.pop().is_err());
    }

    fn drained(samples: &mut rtrb::Consumer<PacketSample>) -> Vec<(u64, u64)> {
        std::iter::from_fn(|| samples.pop().ok()).map(|sample| (sample.passed, sample.lost)).collect()
    }

    #[test]
    fn samples_that_find_no_room_are_reported_by_the_last_of_their_port_without_more_packets() {
        let (mut sampler, mut samples) = sampler(NonZeroU32::MIN, 2);
        pass(&mut sampler, RING / 4 + 3);
        sampler.push_waiting();
        assert_eq!(drained(&mut samples), [(1, 0); RING]);
        sampler.push_waiting();
        assert_eq!(drained(&mut samples), [(6, 5), (6, 5)]);
        sampler.push_waiting();
        assert_eq!(drained(&mut samples), []);
    }

    #[test]
    fn samples_that_wait_come_before_those_of_the_next_burst_and_are_not_lost_with_the_worker() {
        let (mut sampler, mut samples) = sampler(NonZeroU32::MIN, 2);
        pass(&mut sampler, RING / 4 + 1);
        assert_eq!(drained(&mut samples).len(), RING);
        pass(&mut sampler, RING / 4);
        assert_eq!(drained(&mut samples)[..3], [(2, 1), (2, 1), (1, 0)]);
        drop(sampler);
        assert_eq!(drained(&mut samples), [(2, 1), (2, 1)].map(|_| (1, 0)));
    }

    #[test]
    fn a_packet_of_a_port_without_a_number_is_not_sampled() {
        let (mut sampler, mut samples) = sampler(NonZeroU32::MIN, 1);
        pass(&mut sampler, 1);
        let ports: Vec<_> = std::iter::from_fn(|| samples.pop().ok()).map(|sample| sample.port).collect();
        assert_eq!(ports, [0, 0]);
    }

    #[test]
    fn gaps_have_the_rate_as_their_mean() {
        let mut gaps = RandomGaps { state: 1, ..RandomGaps::new(NonZeroU32::new(100).unwrap()) };
        let drawn: Vec<_> = (0..100_000).map(|_| gaps.draw()).collect();
        assert!(drawn.iter().all(|gap| (1..=199).contains(gap)));
        let mean = drawn.iter().sum::<u64>() as f64 / drawn.len() as f64;
        assert!((99.0..101.0).contains(&mean), "{mean}");
    }
}
