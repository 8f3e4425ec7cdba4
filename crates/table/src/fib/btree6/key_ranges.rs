//! Ranges of addresses as ranges of keys.

use crate::prefix::Prefix;
use crate::rib::Range;

use super::key::{ESCAPE, key};
use super::lines::Slot;

/// Bits before the key that lead to a tree, in its own block: 16.
pub(super) const ROOT_BITS: u8 = 16;
/// Bits of a key.
pub(super) const KEY_BITS: u8 = 32;
/// Bits of an address, shifted as [`key`] does, that lie behind the key.
const BEHIND: u128 = (1 << 80) - 1;

/// Bits of an address before the 16 that lead to the tree of this block.
pub(super) fn consumed(block: Prefix<u128>) -> u32 {
    u32::from(block.len() - ROOT_BITS)
}

/// The key of the last address of `prefix`, where the bits behind the end of an address count as ones.
pub(super) fn last_key(last: u128, consumed: u32) -> u32 {
    key(last, consumed) | (((1u128 << consumed) - 1) >> 80) as u32
}

/// The block of addresses of one key of a tree, or of its first `bits` bits.
pub(super) fn cell(block: Prefix<u128>, key: u32, bits: u8) -> Prefix<u128> {
    let len = block.len() + bits;
    Prefix::containing(block.first() | (u128::from(key) << 80) >> consumed(block), len)
}

/// Adds what a range means for the keys of a tree. Ranges come in order and without gaps; a key whose addresses belong
/// to several of them gets [`ESCAPE`].
pub(super) fn push(slots: &mut Vec<Slot>, range: &Range<u128>, consumed: u32) {
    let (first, last) = (range.first << consumed, range.last << consumed | ((1 << consumed) - 1));
    let (mut from, to) = ((first >> 80) as u32, (last >> 80) as u32);
    if first & BEHIND != 0 {
        if from == to {
            return; // the key has its slot since the range before
        }
        from += 1;
    }
    let mut slot = |last, hop| slots.push(Slot { last, hop, deeper: None });
    if last & BEHIND == BEHIND {
        slot(to, range.next_hop.0);
    } else {
        if from < to {
            slot(to - 1, range.next_hop.0);
        }
        slot(to, ESCAPE);
    }
}

/// The slots of a block or of a part of it.
pub(super) fn slots(ranges: impl Iterator<Item = Range<u128>>, consumed: u32) -> Vec<Slot> {
    let mut slots = Vec::new();
    ranges.for_each(|range| push(&mut slots, &range, consumed));
    slots
}

/// Joins neighbours of one answer.
pub(super) fn merge(slots: &mut Vec<Slot>) {
    slots.dedup_by(|next, slot| {
        let same = next.hop == slot.hop && slot.hop != ESCAPE;
        if same {
            slot.last = next.last;
        }
        same
    });
}
