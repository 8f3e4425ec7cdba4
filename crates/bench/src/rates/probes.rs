//! Which packets of a trial are probes.
//!
//! A share of the packets, drawn at random, has a stamp: a probe costs the receiver a copy on the device's core, which would
//! be missing for forwarding if every packet were one. Equal distances would meet the same place of every burst.

use std::time::Instant;

use fullview_plane::burst::Slot;
use fullview_table::Family;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::clock::ClockPair;
use super::generator::PacketMark;
use super::stamp::StampPlace;

/// Probes of a trial at most.
pub const MOST: usize = 10_000;
/// The share of them that is expected, so that hardly a trial reaches the limit.
const EXPECTED: f64 = 0.95;

/// Stamps packets at random.
pub struct ProbeMarker {
    place: StampPlace,
    clocks: ClockPair,
    share: f64,
    random: ChaCha8Rng,
    /// Packets until the next probe.
    gap: u64,
    marked: u64,
}

impl ProbeMarker {
    /// For a trial of so many packets.
    pub fn new(family: Family, packets: f64, seed: u64) -> ProbeMarker {
        let share = (MOST as f64 * EXPECTED / packets.max(1.0)).min(1.0);
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let gap = gap(share, &mut random);
        let place = StampPlace::of(family);
        ProbeMarker { place, clocks: ClockPair::now(), share, random, gap, marked: 0 }
    }

    /// The number of probes.
    pub fn marked(&self) -> u64 {
        self.marked
    }

    pub fn clocks(&self) -> &ClockPair {
        &self.clocks
    }
}

impl PacketMark for ProbeMarker {
    fn mark(&mut self, slot: &mut Slot, due: impl FnOnce() -> Instant) {
        if self.gap > 0 || self.marked == MOST as u64 {
            self.gap = self.gap.saturating_sub(1);
            self.place.clear(slot);
            return;
        }
        self.place.write(slot, self.clocks.real_at(due()));
        self.marked += 1;
        self.gap = gap(self.share, &mut self.random);
    }
}

/// Packets between two probes, if each packet is one with this probability.
fn gap(share: f64, random: &mut impl Rng) -> u64 {
    if share >= 1.0 {
        return 0;
    }
    let uniform: f64 = random.random();
    ((1.0 - uniform).ln() / (1.0 - share).ln()) as u64
}

#[cfg(test)]
mod tests {
    use fullview_plane::burst::Arena;

    use super::*;

    fn marked(packets: u64, expected: f64) -> u64 {
        let mut arena = Arena::new(1);
        let slot = arena.packets().next().unwrap();
        slot.set_frame(&[0; 60]);
        let mut marker = ProbeMarker::new(Family::Inet, expected, 1);
        let mut seen = 0;
        for _ in 0..packets {
            marker.mark(slot, Instant::now);
            seen +=
                u64::from(slot.frame()[42..46] == StampPlace::of(Family::Inet).probes().word.to_be_bytes());
        }
        assert_eq!(seen, marker.marked());
        seen
    }

    #[test]
    fn every_packet_of_a_slow_trial_is_a_probe() {
        assert_eq!(marked(5000, 5000.0), 5000);
    }

    #[test]
    fn about_the_expected_share_of_a_fast_trial_is_probes() {
        let seen = marked(200_000, 200_000.0);
        assert!((9_000..10_000).contains(&seen), "{seen}");
    }

    #[test]
    fn there_are_no_more_probes_than_the_receiver_has_room_for() {
        assert_eq!(marked(400_000, 200_000.0), MOST as u64);
    }
}
