//! Addresses that reveal errors in a compiled table, and the check that uses them.
//!
//! Most errors are at the edges of prefixes. Random keys, drawn with a seed, find errors elsewhere.

use std::iter;

use crate::addr::Address;
use crate::fib::Fib;
use crate::nexthop::NextHop;
use crate::prefix::Prefix;
use crate::rib::Rib;

/// A compiled table whose answer differs from that of its RIB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} goes to next hop {} by the routing table and to {} by the compiled one ({by} lookup): \
     compile it again, or use another algorithm and report this one",
    addr.to_ip(), expected.0, found.0
)]
pub struct Mismatch<A: Address> {
    /// The address.
    pub addr: A,
    /// The RIB's answer.
    pub expected: NextHop,
    /// The FIB's answer.
    pub found: NextHop,
    /// The kind of lookup: `single` or `batch`.
    pub by: &'static str,
}

/// For every prefix the last address before it, its first, its last, and the first address after it.
pub fn edges<A: Address>(rib: &Rib<A>) -> impl Iterator<Item = A> + '_ {
    rib.iter().flat_map(|route| {
        let (first, last) = (route.prefix.first(), route.prefix.last());
        let before = first.checked_sub(&A::one());
        let after = last.checked_add(&A::one());
        before.into_iter().chain([first, last]).chain(after)
    })
}

/// Keys that [`verify`] looks up in one batch: an odd number, so that every batch has a remainder.
const BATCH: usize = 251;

/// Compares single and batch lookups of every key with the RIB. Returns how many keys were compared.
///
/// ```
/// use fullview_table::{NextHop, Rib, fib::registry, probe};
///
/// let mut rib = Rib::<u32>::default();
/// rib.announce("198.18.0.0/15".parse()?, NextHop(1));
/// let keys = probe::edges(&rib).chain(probe::uniform(7).take(1000));
/// let algorithm = registry::find::<u32>("dpdk_lpm4").ok_or("no such algorithm")?;
/// assert_eq!(probe::verify(&*algorithm.compile(&rib)?.fib(), &rib, keys), Ok(1004));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The first [`Mismatch`].
pub fn verify<A: Address>(
    fib: &dyn Fib<A>,
    rib: &Rib<A>,
    keys: impl Iterator<Item = A>,
) -> Result<usize, Mismatch<A>> {
    let mut keys = keys.peekable();
    let mut compared = 0;
    while keys.peek().is_some() {
        let batch: Vec<A> = keys.by_ref().take(BATCH).collect();
        verify_batch(fib, rib, &batch)?;
        compared += batch.len();
    }
    Ok(compared)
}

fn verify_batch<A: Address>(fib: &dyn Fib<A>, rib: &Rib<A>, addrs: &[A]) -> Result<(), Mismatch<A>> {
    // No table has this index, so an answer that was not written is detected.
    let mut answers = vec![NextHop(u16::MAX); addrs.len()];
    fib.lookup_batch(addrs, &mut answers);
    for (&addr, &batch) in addrs.iter().zip(&answers) {
        let expected = rib.longest_match(addr).map_or(NextHop::NONE, |route| route.next_hop);
        for (by, found) in [("single", fib.lookup(addr)), ("batch", batch)] {
            if found != expected {
                return Err(Mismatch { addr, expected, found, by });
            }
        }
    }
    Ok(())
}

/// Addresses drawn uniformly from the whole address space, without end.
pub fn uniform<A: Address>(seed: u64) -> impl Iterator<Item = A> {
    let mut random = SplitMix64(seed);
    iter::repeat_with(move || random.address())
}

/// Random addresses, each from a uniformly drawn prefix of the table, without end; none from an empty table.
pub fn in_prefix<A: Address>(rib: &Rib<A>, seed: u64) -> impl Iterator<Item = A> + use<A> {
    let prefixes: Vec<Prefix<A>> = rib.iter().map(|route| route.prefix).collect();
    let mut random = SplitMix64(seed);
    iter::from_fn(move || {
        let prefix = prefixes.get(random.below(prefixes.len()))?;
        Some(prefix.first() | (random.address::<A>() & !A::mask(prefix.len())))
    })
}

/// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014): eight bytes of
/// state, and the same keys for the same seed on every machine and in every release.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Draws a number below `limit` by multiplication; 0 for a limit of 0. The bias of at most limit / 2^64 is too
    /// small to show in any number of keys.
    fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.next()) * limit as u128) >> 64) as usize
    }

    #[allow(clippy::expect_used)]
    fn address<A: Address>(&mut self) -> A {
        let bits = u128::from(self.next()) << 64 | u128::from(self.next());
        A::from(bits >> (128 - u32::from(A::BITS))).expect("the shift leaves as many bits as an address has")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fib::{Algorithm, linear::Linear};

    fn rib(routes: &[(&str, u16)]) -> Rib<u32> {
        let mut rib = Rib::default();
        for (prefix, hop) in routes {
            rib.announce(prefix.parse().unwrap(), NextHop(*hop));
        }
        rib
    }

    #[test]
    fn edges_stay_inside_the_address_space() {
        let all: Vec<u32> = edges(&rib(&[("0.0.0.0/0", 1), ("10.0.0.0/8", 2)])).collect();
        assert_eq!(all, [0, u32::MAX, 0x09ff_ffff, 0x0a00_0000, 0x0aff_ffff, 0x0b00_0000]);
    }

    #[test]
    fn a_wrong_answer_is_found_and_named() {
        let right = rib(&[("10.0.0.0/8", 1), ("10.1.0.0/16", 2)]);
        let fib = Linear.compile(&right).unwrap().fib();
        assert_eq!(verify(&*fib, &right, edges(&right)), Ok(8));
        let wrong = rib(&[("10.0.0.0/8", 1), ("10.1.0.0/16", 3)]);
        let mismatch = verify(&*fib, &wrong, edges(&wrong)).unwrap_err();
        assert_eq!((mismatch.addr, mismatch.expected, mismatch.found), (0x0a01_0000, NextHop(3), NextHop(2)));
        assert!(mismatch.to_string().starts_with("10.1.0.0 goes to next hop 3"), "{mismatch}");
    }

    #[test]
    fn random_keys_repeat_with_their_seed_and_are_inside_prefixes() {
        let rib = rib(&[("10.0.0.0/8", 1), ("192.0.2.0/24", 2)]);
        let keys: Vec<u32> = in_prefix(&rib, 7).take(100).collect();
        assert_eq!(keys, in_prefix(&rib, 7).take(100).collect::<Vec<u32>>());
        assert!(keys.iter().all(|key| rib.longest_match(*key).is_some()));
        assert!(keys.iter().any(|key| key >> 24 == 10) && keys.iter().any(|key| key >> 24 == 192));
        assert_ne!(uniform::<u128>(1).next(), uniform::<u128>(2).next());
        assert_eq!(in_prefix(&Rib::<u128>::default(), 1).next(), None);
    }
}
