//! The table as readers and the writer share it, and one lookup in it.

use std::io;
use std::sync::atomic::AtomicUsize;

use crate::memory::{CachePadded, Pages, Top, Word, Word32, prefetch};
use crate::nexthop::NextHop;

use super::entry::{BLOCK_BITS, BlockEntry, INDEX_BITS, PART_BITS};

pub(super) const NAME: &str = "dir18";

/// Parts of a divided block.
pub(super) const PARTS: u32 = 1 << (BLOCK_BITS - PART_BITS);

/// The table as readers and the writer share it; a word `W` is as many leaves as four bytes hold.
pub(super) struct Dir18Table<W: Word> {
    pub(super) index: Pages<Word32>,
    pub(super) leaves: Pages<W>,
    /// Leaves in use.
    pub(super) taken: CachePadded<AtomicUsize>,
}

impl<W: Word> Dir18Table<W> {
    /// The leaf of a /24 that has an array of its own. No next hop has this number.
    pub(super) const PARTED: NextHop = NextHop(W::HIGHEST as u16);
    /// The number of leaves that answer for blocks of one next hop: each of these first leaves holds its own number.
    pub(super) const OWN_NUMBERS: u32 = W::HIGHEST + 1;
    /// The number of leaves that hold the entry of a part.
    pub(super) const ENTRY_LEAVES: u32 = W::ENTRIES as u32;
    pub(super) const LEAF_BITS: u32 = u32::BITS / Self::ENTRY_LEAVES;
    /// The leaf in the array of a divided block at which the entries of its parts begin.
    pub(super) const PART_ENTRIES: u32 = Self::ENTRY_LEAVES * PARTS;

    /// Makes a table without routes, with so many leaves, a power of two.
    pub(super) fn empty(leaves: u32) -> io::Result<Self> {
        let table = Dir18Table {
            index: Pages::zeroed(1 << INDEX_BITS)?,
            leaves: Pages::zeroed(leaves as usize)?,
            taken: CachePadded(AtomicUsize::new(0)),
        };
        (0..Self::OWN_NUMBERS).for_each(|number| table.leaves.set(number as usize, number));
        (0..1u32 << INDEX_BITS).for_each(|block| {
            let none = BlockEntry::uniform(NextHop::NONE, block << BLOCK_BITS);
            table.index.set(block as usize, none.0);
        });
        Ok(table)
    }

    #[inline(always)]
    #[allow(clippy::expect_used)]
    pub(super) fn top(&self) -> Top<'_, { INDEX_BITS as u32 }> {
        Top::new(self.index.as_slice()).expect("`empty` makes the index of this length")
    }

    #[inline(always)]
    pub(super) fn entry(&self, addr: u32) -> BlockEntry {
        BlockEntry(self.top().get(addr))
    }

    /// Prefetches index entries only. The places of leaves are in the entries, and a load that waits for an entry
    /// delays the caller more than a missing leaf does.
    pub(super) fn prefetch(&self, addrs: &[u32]) {
        let index = self.index.as_slice();
        addrs.iter().for_each(|addr| prefetch(index, (addr >> BLOCK_BITS) as usize));
    }

    /// Prefetches leaves, once the index entries have arrived.
    pub(super) fn prefetch_leaves(&self, addrs: &[u32]) {
        let leaves = self.leaves.ring();
        addrs.iter().for_each(|addr| leaves.prefetch(self.entry(*addr).leaf(*addr)));
    }

    #[inline(always)]
    pub(super) fn leaf(&self, entry: BlockEntry, addr: u32) -> NextHop {
        NextHop(self.leaves.ring().get(entry.leaf(addr)) as u16)
    }

    #[inline(always)]
    pub(super) fn lookup(&self, addr: u32) -> NextHop {
        let entry = self.entry(addr);
        match self.leaf(entry, addr) {
            next_hop if next_hop == Self::PARTED => self.lookup_part(entry, addr),
            next_hop => next_hop,
        }
    }

    /// The rare case, kept out of the loops.
    #[cold]
    #[inline(never)]
    pub(super) fn lookup_part(&self, block: BlockEntry, addr: u32) -> NextHop {
        self.leaf(self.part(block, addr), addr)
    }

    /// The entry of the part that holds `addr`, in a divided block.
    pub(super) fn part(&self, block: BlockEntry, addr: u32) -> BlockEntry {
        let at = Self::part_entry(block, addr);
        let leaf = |i: u32| self.leaves.ring().get(at.wrapping_add(i));
        BlockEntry((0..Self::ENTRY_LEAVES).fold(0, |entry, i| entry | leaf(i) << (i * Self::LEAF_BITS)))
    }

    /// The number of the first leaf that holds that entry.
    pub(super) fn part_entry(block: BlockEntry, addr: u32) -> u32 {
        let number = addr >> PART_BITS & (PARTS - 1);
        let after_its_leaf = Self::PART_ENTRIES + (Self::ENTRY_LEAVES - 1) * number;
        block.leaf(addr).wrapping_add(after_its_leaf)
    }
}
