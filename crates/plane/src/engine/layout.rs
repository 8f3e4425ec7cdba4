//! The layout of a generation and of a VRF table in words: the same as `struct generation` and `struct vrf` in
//! `bpf/forward.c`.

use std::ops::Range;

use crate::noted_links::FAILED;

/// Entries of dir18's index.
const INDEX: usize = 1 << 18;
/// Bytes of dir18's leaves: 2.5 times the need of a full view of 2025 with leaves of two bytes, 5 times with one byte.
const LEAVES: usize = 1 << 24;
/// Trees of btree6.
const ROOTS: usize = 1 << 16;
/// Branches, and leaves, of btree6: four times the need of a full view of 2025.
const LINES: usize = 1 << 16;
/// Words of a line.
const LINE: usize = 16;
/// All possible next hops.
pub(super) const HOPS: usize = 1 << 16;
/// Words of a next hop.
pub(super) const HOP: usize = 8;
/// Slots of all groups together.
pub(super) const SLOTS: usize = 1 << 17;
/// Bits of a place in the hash table of interfaces.
pub(super) const PORT_BITS: u32 = 12;
/// Places in the hash table of interfaces: four times those with counters.
pub(super) const PORTS: usize = 1 << PORT_BITS;
/// Words of an interface.
pub(super) const PORT: usize = 4;
/// Interfaces with counters; the first entry counts frames without an interface.
pub(super) const COUNTED: usize = 1 << 10;
/// Counters of reasons for each interface, not all of them in use.
pub(super) const REASONS: usize = 32;
/// Rules of policy routing in all lists together.
pub(super) const RULES: usize = 1 << 12;
/// Words of a rule.
pub(super) const RULE: usize = 20;
/// Words of the place of an interface's two lists of rules.
pub(super) const RULE_LIST: usize = 2;
/// VRFs that an interface can name.
pub(super) const VRFS: usize = 255;
/// Words after all others, of which ten are used at most.
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

    const fn after(before: WordRange, words: usize) -> WordRange {
        WordRange { first: before.first + before.words, words }
    }

    pub fn range(self) -> Range<usize> {
        self.first..self.first + self.words
    }
}

pub(super) const DIR18_INDEX: WordRange = WordRange::of(INDEX);
pub(super) const DIR18_LEAVES: WordRange = WordRange::after(DIR18_INDEX, LEAVES / 4);
pub(super) const BTREE6_ROOTS: WordRange = WordRange::after(DIR18_LEAVES, ROOTS);
pub(super) const BTREE6_BRANCHES: WordRange = WordRange::after(BTREE6_ROOTS, LINES * LINE);
pub(super) const BTREE6_LEAVES: WordRange = WordRange::after(BTREE6_BRANCHES, LINES * LINE);
pub(super) const NEXT_HOPS: WordRange = WordRange::after(BTREE6_LEAVES, HOPS * HOP);
pub(super) const GROUP_SLOTS: WordRange = WordRange::after(NEXT_HOPS, SLOTS / 2);
pub(super) const INTERFACES: WordRange = WordRange::after(GROUP_SLOTS, PORTS * PORT);
pub(super) const RULE_LISTS: WordRange = WordRange::after(INTERFACES, COUNTED * RULE_LIST);
pub(super) const POLICY_RULES: WordRange = WordRange::after(RULE_LISTS, RULES * RULE);
/// Places for devices whose links have failed: each device has that of its index modulo [`FAILED`].
pub(super) const FAILED_DEVICES: WordRange = WordRange::after(POLICY_RULES, FAILED);
pub(super) const FLOW_SEED: WordRange = WordRange::after(FAILED_DEVICES, 2);
pub(super) const PORT_FACTOR: WordRange = WordRange::after(FLOW_SEED, 2);
pub(super) const DIR18_LEAF_BYTES: WordRange = WordRange::after(PORT_FACTOR, 1);
pub(super) const NUMBER: WordRange = WordRange::after(DIR18_LEAF_BYTES, 1);
pub(super) const LAST_REPORT: WordRange = WordRange::after(NUMBER, 1);
/// The network namespace in which the program notes links itself.
pub(super) const NAMESPACE: WordRange = WordRange::after(LAST_REPORT, 1);
/// What the flow hash covers: of IPv4 packets, of IPv6 packets.
pub(super) const FLOW_FIELDS: WordRange = WordRange::after(NAMESPACE, 2);

/// Bytes of a generation.
pub(super) const BYTES: usize = 4 * (FLOW_SEED.first + REST);

pub(super) const VRF_INDEX: WordRange = WordRange::of(INDEX);
pub(super) const VRF_ROOTS: WordRange = WordRange::after(VRF_INDEX, ROOTS);
/// The width of its leaves, and the offsets of leaves and lines.
pub(super) const VRF_PLACES: WordRange = WordRange::after(VRF_ROOTS, 4);

/// Words of a VRF.
pub(super) const VRF: usize = VRF_PLACES.first + REST;
