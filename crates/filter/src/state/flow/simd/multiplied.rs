//! A hash by multiplications, which every processor has.

use super::super::ends::{EndParts, WireEnds};
use super::flow_loop::{WireHasher, sealed::Sealed};

#[derive(Clone, Copy)]
pub(super) struct Multiplied;

impl Sealed for Multiplied {}

/// Addresses and ports that follow each other make a lattice of what one multiplication gives, of which many points may meet:
/// another one mixes that.
impl WireHasher for Multiplied {
    #[inline(always)]
    fn of_two(self, keys: &[u64; 4], [a, b]: [u64; 2]) -> u64 {
        fold(fold(a ^ keys[0], b ^ keys[1]), keys[2])
    }

    #[inline(always)]
    fn of_five(self, keys: &[u64; 4], [a, b, c, d]: [u64; 4], last: u64) -> u64 {
        let four = fold(a ^ keys[0], b ^ keys[1]).wrapping_add(fold(c ^ keys[2], d ^ keys[3]));
        fold(fold(four, last ^ keys[1]), keys[2])
    }

    #[inline(always)]
    fn inet(self, keys: &[u64; 4], bytes: [u8; 16], interface: u16) -> (u64, WireEnds, u64) {
        let [_, protocol, _, _, addresses @ .., a, b, c, d] = bytes;
        let addresses = u64::from_le_bytes(addresses);
        let ends = WireEnds::new(EndParts { ports: [a, b, c, d], protocol, interface });
        (addresses, ends, self.of_two(keys, [addresses, ends.without_interface()]))
    }

    #[inline(always)]
    fn inet6(self, keys: &[u64; 4], addresses: [u8; 32], ends: EndParts) -> (WireEnds, u64) {
        let (words, ends) = (addresses.as_chunks().0, WireEnds::new(ends));
        let words = std::array::from_fn(|word| u64::from_le_bytes(words[word]));
        (ends, self.of_five(keys, words, ends.without_interface()))
    }
}

/// A multiplication whose halves are combined, as in the hash of states.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}
