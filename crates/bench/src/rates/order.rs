//! The order in which devices are measured.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// A random order of the devices for each repetition.
pub fn orders(devices: &[String], repetitions: u32, seed: u64) -> Vec<(u32, String)> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut devices = devices.to_vec();
    let mut turns = Vec::new();
    for repetition in 1..=repetitions {
        devices.shuffle(&mut random);
        turns.extend(devices.iter().map(|device| (repetition, device.clone())));
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_an_order_in_which_every_device_has_every_repetition() {
        let devices = ["kernel", "xdp", "tc", "off", "link"].map(str::to_owned);
        let turns = orders(&devices, 3, 7);
        assert_eq!(turns, orders(&devices, 3, 7));
        assert_ne!(turns, orders(&devices, 3, 8));
        for repetition in 1..=3 {
            let of = turns.iter().filter(|turn| turn.0 == repetition);
            assert_eq!(of.collect::<std::collections::BTreeSet<_>>().len(), devices.len());
        }
    }
}
