//! The tables of a poptrie, which readers and the writer share: the direct table, the nodes and the leaves.
//!
//! # Readers during a write
//!
//! A node and its leaves are written while nothing leads to them, and do not change until no reader can be in them (see
//! `memory/reclaim.rs`). The entry of the direct table is stored last, with release order; lookups load it with acquire
//! order, so a reader that sees it sees everything below it. So a lookup descends through the old part or the new one
//! and never through both.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::fib::Footprint;
use crate::memory::{CachePadded, Pages, Word16, Word32};
use crate::nexthop::NextHop;

/// Bits of an address that index the direct table.
pub(super) const DIRECT_BITS: u8 = 18;
/// Bits that select a slot of a node.
pub(super) const SLOT_BITS: u8 = 6;
/// Slots of a node.
pub(super) const SLOTS: usize = 1 << SLOT_BITS;
/// Marks an entry of the direct table that is the number of a node; others are next hops.
pub(super) const NODE: u32 = 1 << 31;

/// Words of a node: `vector` in two halves, the low one first, `leafvec` in the same way, then the first leaf and the
/// first child.
pub(super) const NODE_WORDS: usize = 6;
pub(super) const LEAFVEC: usize = 2;
pub(super) const LEAVES: usize = 4;
pub(super) const CHILDREN: usize = 5;

/// The content of a node.
#[derive(Clone, Copy)]
pub(super) struct NodeContent {
    /// Slots that have a child.
    pub(super) vector: u64,
    /// Slots without a child whose next hop differs from that of the last slot without a child.
    pub(super) leafvec: u64,
    /// The first of its leaves, one for each bit of `leafvec`.
    pub(super) leaves: u32,
    /// The first of its children, one for each bit of `vector`.
    pub(super) children: u32,
}

impl NodeContent {
    #[inline(always)]
    pub(super) fn has_child(&self, slot: usize) -> bool {
        self.vector >> slot & 1 != 0
    }

    /// The child of a slot that has one.
    #[inline(always)]
    pub(super) fn child(&self, slot: usize) -> u32 {
        self.children + rank(self.vector, slot)
    }

    /// The leaf of a slot without a child.
    #[inline(always)]
    pub(super) fn leaf(&self, slot: usize) -> u32 {
        self.leaves + rank(self.leafvec, slot)
    }
}

/// The number of bits set before the last one at or below `slot`; there is one.
#[inline(always)]
fn rank(bits: u64, slot: usize) -> u32 {
    let up_to_slot = (2u64 << slot).wrapping_sub(1);
    (bits & up_to_slot).count_ones() - 1
}

/// The tables.
pub(super) struct PoptrieStore {
    pub(super) direct: Pages<Word32>,
    pub(super) nodes: Pages<Word32>,
    pub(super) leaves: Pages<Word16>,
    /// The number of nodes and of leaves that lookups can reach.
    used: CachePadded<[AtomicUsize; 2]>,
}

impl PoptrieStore {
    /// Makes tables that are all zero; places that are never written cost no memory.
    pub(super) fn zeroed(nodes: u32, leaves: u32) -> io::Result<Self> {
        Ok(PoptrieStore {
            direct: Pages::zeroed(1 << DIRECT_BITS)?,
            nodes: Pages::zeroed(nodes as usize * NODE_WORDS)?,
            leaves: Pages::zeroed(leaves as usize)?,
            used: CachePadded([const { AtomicUsize::new(0) }; 2]),
        })
    }

    #[inline(always)]
    pub(super) fn node(&self, number: u32) -> NodeContent {
        let base = number as usize * NODE_WORDS;
        let long = |word: usize| {
            u64::from(self.nodes.get(base + word + 1)) << 32 | u64::from(self.nodes.get(base + word))
        };
        NodeContent {
            vector: long(0),
            leafvec: long(LEAFVEC),
            leaves: self.nodes.get(base + LEAVES),
            children: self.nodes.get(base + CHILDREN),
        }
    }

    #[inline(always)]
    pub(super) fn leaf(&self, number: u32) -> NextHop {
        NextHop(self.leaves.get(number as usize) as u16)
    }

    /// Writes a node that nothing leads to.
    pub(super) fn write_node(&self, number: u32, content: &NodeContent) {
        let NodeContent { vector, leafvec, leaves, children } = *content;
        let halves = |bits: u64| [bits as u32, (bits >> 32) as u32];
        let ([v0, v1], [l0, l1]) = (halves(vector), halves(leafvec));
        let words = [v0, v1, l0, l1, leaves, children];
        for (index, word) in (number as usize * NODE_WORDS..).zip(words) {
            self.nodes.set(index, word);
        }
    }

    /// Writes a leaf that nothing leads to.
    pub(super) fn write_leaf(&self, number: u32, next_hop: NextHop) {
        self.leaves.set(number as usize, u32::from(next_hop.0));
    }

    /// Stores the number of nodes and of leaves that lookups can reach.
    pub(super) fn set_used(&self, used: [usize; 2]) {
        self.used.0.iter().zip(used).for_each(|(count, used)| count.store(used, Ordering::Relaxed));
    }

    pub(super) fn footprint(&self) -> Footprint {
        let used = |which: usize| self.used.0[which].load(Ordering::Relaxed);
        Footprint(vec![
            ("direct", size_of::<u32>() << DIRECT_BITS),
            ("nodes", used(0) * NODE_WORDS * size_of::<u32>()),
            ("leaves", used(1) * size_of::<u16>()),
        ])
    }
}
