//! Ranges of addresses as ranges of keys.

use crate::prefix::Prefix;
use crate::rib::Range;

use super::key::{ESCAPE, key};
use super::lines::Slot;

/// The bits of a block that lead to its tree: 16.
pub(super) const ROOT_BITS: u8 = 16;
/// Bits of a key.
pub(super) const KEY_BITS: u8 = 32;
/// The bits of an address, shifted as [`key`] does, that follow the key.
const AFTER_KEY: u128 = (1 << 80) - 1;

/// The number of bits of an address before the 16 that lead to the tree of this block.
pub(super) fn consumed(block: Prefix<u128>) -> u32 {
    u32::from(block.len() - ROOT_BITS)
}

/// The key of the last address of `prefix`, where bits after the end of an address count as ones.
pub(super) fn last_key(last: u128, consumed: u32) -> u32 {
    key(last, consumed) | (((1u128 << consumed) - 1) >> 80) as u32
}

/// The block of addresses of one key of a tree, or of its first `bits` bits.
pub(super) fn cell(block: Prefix<u128>, key: u32, bits: u8) -> Prefix<u128> {
    let len = block.len() + bits;
    Prefix::containing(block.first() | (u128::from(key) << 80) >> consumed(block), len)
}

/// Adds the slots of a range of addresses. Ranges come in order and without gaps; a key whose addresses belong to
/// several of them gets [`ESCAPE`].
pub(super) fn push(slots: &mut Vec<Slot>, range: &Range<u128>, consumed: u32) {
    let (first, last) = (range.first << consumed, range.last << consumed | ((1 << consumed) - 1));
    let (mut from, to) = ((first >> 80) as u32, (last >> 80) as u32);
    if first & AFTER_KEY != 0 {
        if from == to {
            return; // the range before has added the slot of this key
        }
        from += 1;
    }
    let mut slot = |last, hop| slots.push(Slot { last, hop, deeper: None });
    if last & AFTER_KEY == AFTER_KEY {
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

/// Merges neighbours with the same answer.
pub(super) fn merge(slots: &mut Vec<Slot>) {
    slots.dedup_by(|next, slot| {
        let same = next.hop == slot.hop && slot.hop != ESCAPE;
        if same {
            slot.last = next.last;
        }
        same
    });
}
