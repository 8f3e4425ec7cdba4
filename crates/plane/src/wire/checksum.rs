//! The Internet checksum: RFC 1071 in full, RFC 1624 in part.
//!
//! Everything here is one's complement arithmetic on 16-bit words, where 0x0000 and 0xffff both mean zero. A
//! sum of real data is never the positive zero, so [`Sum::checksum`] never stores 0xffff in a header; a received
//! header may hold either and verifies with both.

use super::Field;

/// A partial one's complement sum of words in network byte order, with the carries in the upper half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum(u64);

impl Sum {
    /// The empty sum.
    pub const ZERO: Sum = Sum(0);

    /// Adds bytes as 16-bit words; an odd last byte is the upper half of its word (RFC 1071, section 4.1).
    /// Parts may be added in sequence only if all but the last have an even length.
    #[inline]
    pub fn bytes(self, bytes: &[u8]) -> Sum {
        let mut total = self.0;
        let mut quads = bytes.chunks_exact(4);
        for quad in &mut quads {
            total += u64::from(Field::<4>(0).number(quad));
        }
        let mut last = [0; 4];
        last[..quads.remainder().len()].copy_from_slice(quads.remainder());
        // Folding here bounds the accumulator whatever the number of parts.
        Sum(u64::from(fold(total + u64::from(u32::from_be_bytes(last)))))
    }

    /// Adds one word.
    #[inline]
    pub fn word(self, word: u16) -> Sum {
        Sum(self.0 + u64::from(word))
    }

    /// The sum folded to 16 bits. Over data that includes a correct checksum it is 0xffff.
    #[inline]
    pub fn folded(self) -> u16 {
        fold(self.0)
    }

    /// The value to store in a checksum field: the complement of the sum over the rest.
    #[inline]
    pub fn checksum(self) -> u16 {
        !self.folded()
    }

    /// Whether the checksum of the summed data, checksum field included, is correct.
    #[inline]
    pub fn verifies(self) -> bool {
        self.folded() == 0xffff
    }
}

/// Adds the carries until none is left.
#[inline(always)]
fn fold(sum: u64) -> u16 {
    // 64 → 33 → 18 → 17 → 16 bits: three additions leave at most one carry, the fourth takes it.
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    ((sum >> 16) + (sum & 0xffff)) as u16
}

/// The checksum of `bytes`, RFC 1071.
#[inline]
pub fn checksum(bytes: &[u8]) -> u16 {
    Sum::ZERO.bytes(bytes).checksum()
}

/// Whether the checksum of an IPv4 header without options is correct. Straight-line code for the hot path; the one's complement sum
/// is the same in either byte order (RFC 1071, section 2.B), so no word is swapped.
#[inline(always)]
pub fn header_verifies(header: &[u8; 20]) -> bool {
    let word = |at: usize| u64::from(u32::from_ne_bytes(Field::<4>(at).get(header)));
    let sum = word(0) + word(4) + word(8) + word(12) + word(16);
    // 35 → 20 → 17 bits, at most 0x10007: of the values that fold to 0xffff only 0xffff itself is left.
    let sum = (sum >> 16) + (sum & 0xffff);
    (sum >> 16) + (sum & 0xffff) == 0xffff
}

/// The checksum after one 16-bit word under it changed from `old` to `new`: RFC 1624, equation 3,
/// HC' = ~(~HC + ~m + m').
///
/// Uses equation 3 and not the shorter forms of RFC 1141 and RFC 1624 equation 4, which turn a sum of 0xffff into the
/// wrong one of the two zeros. The result equals a full recomputation, except for data that is all zeros, which no IP
/// header can be.
#[inline(always)]
pub fn update(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    let sum = (sum >> 16) + (sum & 0xffff);
    !(((sum >> 16) + (sum & 0xffff)) as u16)
}

/// The checksum of an IPv4 header after its TTL was lowered by one: [`update`] for a word that became 0x0100 smaller. The
/// complements cancel, so that it takes three instructions: ~(~HC + ~0x0100) is HC + 0x0100 with the carry added again. A
/// sum of exactly 0xffff counts as a carry too, because it has to become the other zero.
#[inline(always)]
pub fn after_hop(checksum: u16) -> u16 {
    checksum.wrapping_add(0x0100).wrapping_add(u16::from(checksum >= 0xfeff))
}

/// What changed in the words under a checksum: the sum of ~m + m' over them (RFC 1624, equation 3). A word that is outside
/// of one checksum and under another is added to the latter only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change(Sum);

impl Change {
    /// No change.
    pub const NONE: Change = Change(Sum::ZERO);

    /// Adds the change of one word.
    #[inline]
    pub fn word(self, old: u16, new: u16) -> Change {
        Change(self.0.word(!old).word(new))
    }

    /// The change of words of which ~m + m' add up to this.
    #[inline]
    pub fn of_sum(sum: u16) -> Change {
        Change(Sum::ZERO.word(sum))
    }

    /// Adds further changes.
    #[inline]
    pub fn and(self, other: Change) -> Change {
        Change(Sum(self.0.0 + other.0.0))
    }

    /// The checksum after the changes: see [`update`], which does it for one word.
    #[inline]
    pub fn apply(self, checksum: u16) -> u16 {
        self.0.word(!checksum).checksum()
    }
}

/// The pseudo header of UDP, TCP and so on over IPv4 (RFC 768). `length` is that of the upper layer, in bytes.
pub fn pseudo_ipv4(source: u32, destination: u32, protocol: u8, length: u16) -> Sum {
    let addresses = Sum::ZERO.bytes(&source.to_be_bytes()).bytes(&destination.to_be_bytes());
    addresses.word(u16::from(protocol)).word(length)
}

/// The pseudo header over IPv6 (RFC 8200, section 8.1). `length` is that of the upper layer, in bytes.
pub fn pseudo_ipv6(source: u128, destination: u128, next_header: u8, length: u32) -> Sum {
    let addresses = Sum::ZERO.bytes(&source.to_be_bytes()).bytes(&destination.to_be_bytes());
    addresses.bytes(&length.to_be_bytes()).word(u16::from(next_header))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition of RFC 1071, word by word.
    fn slow_sum(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            let word = u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]);
            sum += u32::from(word);
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    #[test]
    fn the_example_of_rfc_1071_sums_to_ddf2() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::ZERO.bytes(&bytes).folded(), 0xddf2);
        assert_eq!(checksum(&bytes), !0xddf2);
    }

    #[test]
    fn the_example_of_rfc_1624_does_not_give_the_other_zero() {
        // Section 4 of the RFC: HC = 0xdd2f, m = 0x5555, m' = 0x3285.
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn after_a_hop_every_checksum_is_the_updated_one() {
        for checksum in 0..=u16::MAX {
            assert_eq!(after_hop(checksum), update(checksum, 0x0100, 0x0000), "{checksum:#06x}");
        }
    }

    #[test]
    fn both_zeros_update_alike() {
        for new in [0x0001, 0x3ffe, 0x4000, 0xfffe] {
            assert_eq!(update(0x0000, 0x4001, new), update(0xffff, 0x4001, new), "{new:#06x}");
        }
    }

    #[test]
    fn extreme_headers_verify_as_the_definition_says() {
        assert!(!header_verifies(&[0; 20]));
        assert!(header_verifies(&[0xff; 20]));
        let mut header = [0xff; 20];
        header[19] = 0;
        assert!(!header_verifies(&header));
    }

    #[test]
    fn the_largest_sums_fold_to_sixteen_bits() {
        assert_eq!(fold(u64::MAX), 0xffff);
        assert_eq!(fold(0x1_ffff_fffe), 0xffff);
        assert_eq!(fold(0xffff_0000_ffff_ffff), slow_sum(&0xffff_0000_ffff_ffffu64.to_be_bytes()));
        assert_eq!(Sum::ZERO.bytes(&[0xff; 65_535]).folded(), slow_sum(&[0xff; 65_535]));
    }

    proptest! {
        #[test]
        fn fast_sums_equal_the_definition(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(Sum::ZERO.bytes(&bytes).folded(), slow_sum(&bytes));
        }

        #[test]
        fn headers_verify_as_the_definition_says(mut header in any::<[u8; 20]>(), damage in 0u16..3) {
            header[10..12].fill(0);
            let value = checksum(&header).wrapping_add(damage);
            Field::<2>(10).set_number(&mut header, value);
            prop_assert_eq!(header_verifies(&header), slow_sum(&header) == 0xffff);
        }

        #[test]
        fn updating_equals_recomputing(mut header in any::<[u8; 20]>(), at in 0usize..10, new in any::<u16>()) {
            header[0] = 0x45; // no header is all zeros
            let at = if at == 0 { 8 } else { at * 2 };
            header[10..12].fill(0);
            let before = checksum(&header);
            let old = Field::<2>(at).number(&header);
            prop_assume!(at != 10);
            Field::<2>(at).set_number(&mut header, new);
            prop_assert_eq!(update(before, old, new), checksum(&header));
        }

        #[test]
        fn a_stored_checksum_verifies(mut header in any::<[u8; 20]>()) {
            header[10..12].fill(0);
            let value = checksum(&header);
            Field::<2>(10).set_number(&mut header, value);
            prop_assert!(Sum::ZERO.bytes(&header).verifies());
        }
    }
}
