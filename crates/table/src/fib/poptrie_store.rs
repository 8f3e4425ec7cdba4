//! What `poptrie`'s readers and writer share: the direct table, the nodes and the leaves.
//!
//! # Readers during a write
//!
//! A node and its leaves are written while nothing leads to them, and change no more until no reader can be in them (see
//! `reclaim`). The direct table's entry is stored last, with release order; lookups load it with acquire order, so
//! whoever sees it sees all below it. So a lookup goes through the old part or the new one and never through both.

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use zerocopy::FromZeros;
use zerocopy::error::AllocError;

use crate::nexthop::NextHop;

use super::Footprint;

/// Bits of an address that index the direct table.
pub(super) const DIRECT_BITS: u8 = 18;
/// Bits that choose a slot of a node.
pub(super) const SLOT_BITS: u8 = 6;
/// Slots of a node.
pub(super) const SLOTS: usize = 1 << SLOT_BITS;
/// Marks an entry of the direct table that is a node's number; others are next hops.
pub(super) const NODE: u32 = 1 << 31;

/// A node as readers see it. Its atomics need no order of their own.
#[derive(FromZeros)]
pub(super) struct Node {
    vector: AtomicU64,
    leafvec: AtomicU64,
    leaves: AtomicU32,
    children: AtomicU32,
}

/// What a node says.
#[derive(Clone, Copy)]
pub(super) struct Content {
    /// Slots that have a child.
    pub(super) vector: u64,
    /// Slots without child where the next hop is another than in the slot without child before.
    pub(super) leafvec: u64,
    /// The first of its leaves, one for each bit of `leafvec`.
    pub(super) leaves: u32,
    /// The first of its children, one for each bit of `vector`.
    pub(super) children: u32,
}

impl Content {
    #[inline(always)]
    pub(super) fn has_child(&self, slot: usize) -> bool {
        self.vector >> slot & 1 != 0
    }

    /// The child of a slot that has one; for others a number without meaning.
    #[inline(always)]
    pub(super) fn child(&self, slot: usize) -> u32 {
        self.children.wrapping_add(rank(self.vector, slot))
    }

    /// The leaf of a slot without child; for others a number without meaning.
    #[inline(always)]
    pub(super) fn leaf(&self, slot: usize) -> u32 {
        self.leaves.wrapping_add(rank(self.leafvec, slot))
    }
}

/// How many bits are set before the last one at or below `slot`.
#[inline(always)]
fn rank(bits: u64, slot: usize) -> u32 {
    let up_to_slot = (2u64 << slot).wrapping_sub(1);
    (bits & up_to_slot).count_ones().wrapping_sub(1)
}

/// The tables.
pub(super) struct Store {
    pub(super) direct: Vec<AtomicU32>,
    pub(super) nodes: Vec<Node>,
    pub(super) leaves: Vec<AtomicU16>,
    /// Nodes and leaves that lookups can reach.
    used: [AtomicUsize; 2],
}

impl Store {
    /// Places that are never written to cost no memory.
    pub(super) fn zeroed(nodes: u32, leaves: u32) -> Result<Self, AllocError> {
        Ok(Store {
            direct: AtomicU32::new_vec_zeroed(1 << DIRECT_BITS)?,
            nodes: Node::new_vec_zeroed(nodes as usize)?,
            leaves: AtomicU16::new_vec_zeroed(leaves as usize)?,
            used: [const { AtomicUsize::new(0) }; 2],
        })
    }

    #[inline(always)]
    pub(super) fn entry(&self, index: usize) -> u32 {
        self.direct[index].load(Ordering::Acquire)
    }

    #[inline(always)]
    pub(super) fn node(&self, number: u32) -> Content {
        let node = &self.nodes[number as usize];
        Content {
            vector: node.vector.load(Ordering::Relaxed),
            leafvec: node.leafvec.load(Ordering::Relaxed),
            leaves: node.leaves.load(Ordering::Relaxed),
            children: node.children.load(Ordering::Relaxed),
        }
    }

    #[inline(always)]
    pub(super) fn leaf(&self, number: u32) -> NextHop {
        NextHop(self.leaves[number as usize].load(Ordering::Relaxed))
    }

    pub(super) fn publish(&self, index: usize, entry: u32) {
        self.direct[index].store(entry, Ordering::Release);
    }

    /// Writes a node that nothing leads to.
    pub(super) fn write_node(&self, number: u32, content: &Content) {
        let node = &self.nodes[number as usize];
        node.vector.store(content.vector, Ordering::Relaxed);
        node.leafvec.store(content.leafvec, Ordering::Relaxed);
        node.leaves.store(content.leaves, Ordering::Relaxed);
        node.children.store(content.children, Ordering::Relaxed);
    }

    /// Writes a leaf that nothing leads to.
    pub(super) fn write_leaf(&self, number: u32, next_hop: NextHop) {
        self.leaves[number as usize].store(next_hop.0, Ordering::Relaxed);
    }

    /// How many nodes and leaves lookups can reach.
    pub(super) fn set_used(&self, used: [usize; 2]) {
        self.used.iter().zip(used).for_each(|(count, used)| count.store(used, Ordering::Relaxed));
    }

    pub(super) fn footprint(&self) -> Footprint {
        let used = |which: usize| self.used[which].load(Ordering::Relaxed);
        Footprint(vec![
            ("direct", size_of_val(&self.direct[..])),
            ("nodes", used(0) * size_of::<Node>()),
            ("leaves", used(1) * size_of::<u16>()),
        ])
    }
}
