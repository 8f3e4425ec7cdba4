//! The hash of a flow: the same on every machine and in every release, so that a flow keeps its path.

/// An odd multiplier with as many ones as zeros: 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Hashes a five-tuple; IPv4 addresses are widened. Consecutive routers should have different seeds: with equal seeds a
/// router receives only flows whose hashes the router before has selected, and uses only some of its members
/// (polarisation).
pub fn flow_hash(seed: u64, source: u128, destination: u128, protocol: u8, ports: (u16, u16)) -> u32 {
    let rest = u64::from(protocol) << 32 | u64::from(ports.0) << 16 | u64::from(ports.1);
    let halves = [source, destination].map(|addr| [addr as u64, (addr >> 64) as u64]);
    let hash = halves.as_flattened().iter().chain([&rest]).fold(seed, |hash, word| mix(hash ^ word));
    (hash ^ hash >> 32) as u32
}

/// Another hash of the flow with this one: its low bits do not follow from the low bits of this one.
pub(super) fn remixed(flow_hash: u32) -> u32 {
    mix(flow_hash.into()) as u32
}

/// Combines both halves of a product, so that every bit of the word affects the low bits.
fn mix(word: u64) -> u64 {
    let product = u128::from(word ^ SPREAD.rotate_left(17)) * u128::from(SPREAD);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, the hash has changed, and with it the path of every flow of every installation.
    #[test]
    fn the_hash_never_changes() {
        assert_eq!(flow_hash(0, 0xc612_0a01, 0xc613_0a01, 17, (2_000, 2_000)), 452_782_990);
        assert_eq!(flow_hash(7, 0x2001_0002 << 96, 1, 6, (1, 65_535)), 1_939_649_093);
    }

    /// Flows that differ in one field only, as real flows do, use all slots evenly: no slot of 64 gets more than twice
    /// its share of 6,400 flows.
    #[test]
    fn neighbouring_flows_spread() {
        let flows: [fn(u32) -> u32; 4] = [
            |n| flow_hash(1, 0xc612_0000 + u128::from(n), 0xc613_0a01, 17, (2_000, 2_000)),
            |n| flow_hash(1, 0xc612_0a01, 0xc613_0000 + u128::from(n), 17, (2_000, 2_000)),
            |n| flow_hash(1, 0xc612_0a01, 0xc613_0a01, 17, (n as u16, 80)),
            |n| flow_hash(1, 0x2001_0002 << 96, u128::from(n) << 64, 17, (53, 53)),
        ];
        for flow in flows {
            let mut slots = [0u32; 64];
            (0..6_400).for_each(|n| slots[flow(n) as usize % 64] += 1);
            assert!(slots.iter().all(|count| (50..200).contains(count)), "{slots:?}");
        }
    }
}
