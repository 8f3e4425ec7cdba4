//! The hash by which states are found: keyed, and the same for both directions of a flow.
//!
//! Each end is folded with secret keys by 64 × 64 → 128-bit multiplications whose halves are combined (as in wyhash and
//! foldhash), the two ends are added, so their order does not matter, and the sum is folded once more with the protocol.
//! Who does not know the keys cannot choose flows that meet in one bucket, except by watching which packets are slow. The
//! keys are drawn when the worker starts. An address and its port are folded one after the other: combining them by
//! exclusive or first would let a sender choose both so that they cancel out.

use super::flow_key::FlowKey;
use crate::address::Address;

/// The keys.
#[derive(Clone, Copy, Debug)]
pub struct FlowHasher {
    keys: [u64; 4],
}

impl FlowHasher {
    /// Keys from a secret seed.
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        FlowHasher { keys: [(); 4].map(|()| split_mix(&mut state)) }
    }

    /// The hash of a flow, equal for both directions.
    #[inline(always)]
    pub fn hash(&self, key: &FlowKey) -> u64 {
        let one = self.end(key.source, key.source_port);
        let other = self.end(key.destination, key.destination_port);
        fold(one.wrapping_add(other) ^ self.keys[2], u64::from(key.protocol) ^ self.keys[3])
    }

    #[inline(always)]
    fn end(&self, address: Address, port: u16) -> u64 {
        let address = fold(address.0 as u64 ^ self.keys[0], (address.0 >> 64) as u64 ^ self.keys[1]);
        fold(address ^ u64::from(port), self.keys[3])
    }
}

#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// The generator of Steele, Lea and Flood ("Fast splittable pseudorandom number generators", 2014).
pub(super) fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn both_directions_have_one_hash_and_different_flows_differ() {
        let hasher = FlowHasher::new(7);
        let mut seen = HashSet::new();
        for number in 0..20_000_u32 {
            let key = FlowKey {
                source: Address(0x2001 << 112 | u128::from(number & 0xff) << 96),
                destination: Address::inet(number >> 12),
                source_port: (number >> 8) as u16 & 15,
                destination_port: 53,
                protocol: 17,
            };
            assert_eq!(hasher.hash(&key), hasher.hash(&key.reversed()));
            assert!(seen.insert(hasher.hash(&key)), "{key:?}");
        }
    }
}
