//! The entries of the index: the place of a block's answers, in 32 bits.

use crate::nexthop::NextHop;

/// Bits of an address that choose a block.
pub(super) const INDEX_BITS: u8 = 18;
/// Bits of an address inside a block.
pub(super) const BLOCK_BITS: u8 = 32 - INDEX_BITS;
/// Bits of an address inside a part, of which a divided block has 64: longer prefixes than /24 are rare.
pub(super) const PART_BITS: u8 = 8;

/// The place of an array of answers and the width of the addresses that share one, for one block or one part of a
/// block.
///
/// ```text
///   | divided | place − (first address >> shift)  mod 2^26 | shift |
///     1 bit     26 bits                                      5 bits
/// ```
///
/// The block's own address is subtracted beforehand, so the answer for an address is at `place + (addr >> shift)`: no
/// bits of the address need to be cut off, and the ring of leaves drops the carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockEntry(pub(super) u32);

impl BlockEntry {
    /// The bits of the shift; the other bits, moved down by this many, are the place.
    pub(super) const SHIFT_BITS: u32 = 5;
    const SHIFT_MASK: u32 = (1 << Self::SHIFT_BITS) - 1;
    const PLACES: u32 = 1 << 26;
    const DIVIDED: u32 = 1 << 31;
    /// The shift of a block with one answer: no address inside the block changes the place.
    const UNIFORM: u32 = 31;

    /// The entry of a block with one next hop: it leads to the leaf of that number.
    pub(super) fn uniform(next_hop: NextHop, first: u32) -> BlockEntry {
        BlockEntry::array(u32::from(next_hop.0), Self::UNIFORM, first)
    }

    /// The entry of an array at `place` for the block or part that begins at `first`, with `2^shift` addresses an
    /// answer.
    pub(super) fn array(place: u32, shift: u32, first: u32) -> BlockEntry {
        let biased = place.wrapping_sub(first >> shift) % Self::PLACES;
        BlockEntry(biased << Self::SHIFT_BITS | shift)
    }

    /// The same for a block that is divided into parts.
    pub(super) fn divided(place: u32, first: u32) -> BlockEntry {
        BlockEntry(BlockEntry::array(place, u32::from(PART_BITS), first).0 | Self::DIVIDED)
    }

    /// The number of the leaf for `addr`, in a ring of at most 2^26 leaves.
    #[inline(always)]
    pub(super) fn leaf(self, addr: u32) -> u32 {
        (self.0 >> Self::SHIFT_BITS).wrapping_add(addr >> (self.0 & Self::SHIFT_MASK))
    }

    pub(super) fn shift(self) -> u32 {
        self.0 & Self::SHIFT_MASK
    }

    pub(super) fn is_uniform(self) -> bool {
        self.shift() == Self::UNIFORM
    }

    pub(super) fn is_divided(self) -> bool {
        self.0 & Self::DIVIDED != 0
    }
}
