//! What a generation and the table of a VRF are made of, in words: the same as `struct generation` and `struct vrf` in
//! `bpf/forward.c`.

use std::ops::Range;

/// Entries of dir18's index.
const INDEX: usize = 1 << 18;
/// Bytes of dir18's leaves: two and a half times what a full view of 2025 has if they are two bytes wide, five times
/// if they are one.
const LEAVES: usize = 1 << 24;
/// Trees of btree6.
const ROOTS: usize = 1 << 16;
/// Branches of btree6, and leaves: four times what a full view of 2025 has.
const LINES: usize = 1 << 16;
/// Words of a line.
const LINE: usize = 16;
/// Next hops, all that there can be.
pub(super) const HOPS: usize = 1 << 16;
/// Words of a next hop.
pub(super) const HOP: usize = 8;
/// Slots of all groups together.
pub(super) const SLOTS: usize = 1 << 17;
/// DevmapKeys for interfaces.
pub(super) const PORTS: usize = 1 << 10;
/// Words of an interface.
pub(super) const PORT: usize = 4;
/// Interfaces that are counted, and those that are none of ours together as the first.
pub(super) const COUNTED: usize = 1 << 10;
/// VRFs that an interface can name.
pub(super) const VRFS: usize = 255;
/// Words behind all others, of which four are used.
const REST: usize = 1 << 10;

/// One array of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WordRange {
    pub first: usize,
    pub words: usize,
}

impl WordRange {
    const fn of(words: usize) -> WordRange {
        WordRange { first: 0, words }
    }

    const fn behind(before: WordRange, words: usize) -> WordRange {
        WordRange { first: before.first + before.words, words }
    }

    pub fn range(self) -> Range<usize> {
        self.first..self.first + self.words
    }
}

pub(super) const DIR18_INDEX: WordRange = WordRange::of(INDEX);
pub(super) const DIR18_LEAVES: WordRange = WordRange::behind(DIR18_INDEX, LEAVES / 4);
pub(super) const BTREE6_ROOTS: WordRange = WordRange::behind(DIR18_LEAVES, ROOTS);
pub(super) const BTREE6_BRANCHES: WordRange = WordRange::behind(BTREE6_ROOTS, LINES * LINE);
pub(super) const BTREE6_LEAVES: WordRange = WordRange::behind(BTREE6_BRANCHES, LINES * LINE);
pub(super) const NEXT_HOPS: WordRange = WordRange::behind(BTREE6_LEAVES, HOPS * HOP);
pub(super) const GROUP_SLOTS: WordRange = WordRange::behind(NEXT_HOPS, SLOTS / 2);
pub(super) const INTERFACES: WordRange = WordRange::behind(GROUP_SLOTS, PORTS * PORT);
pub(super) const FLOW_SEED: WordRange = WordRange::behind(INTERFACES, 2);
pub(super) const DIR18_LEAF_BYTES: WordRange = WordRange::behind(FLOW_SEED, 1);
pub(super) const NUMBER: WordRange = WordRange::behind(DIR18_LEAF_BYTES, 1);

/// Bytes of a generation.
pub(super) const BYTES: usize = 4 * (FLOW_SEED.first + REST);

pub(super) const VRF_INDEX: WordRange = WordRange::of(INDEX);
pub(super) const VRF_ROOTS: WordRange = WordRange::behind(VRF_INDEX, ROOTS);
/// How wide its leaves are, and where they and its lines begin.
pub(super) const VRF_PLACES: WordRange = WordRange::behind(VRF_ROOTS, 4);

/// Words of a VRF.
pub(super) const VRF: usize = VRF_PLACES.first + REST;
