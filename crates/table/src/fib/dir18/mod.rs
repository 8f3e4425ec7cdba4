//! `dir18`: an index by the first 18 bits, and for each block an array of answers as fine as the block needs.
//!
//! ```text
//!   address   |   18 bits    |      14 bits       |
//!                    │                 │
//!   index    [ … place, shift … ]      │ >> shift
//!                    │                 │
//!   leaves   [ … 3 3 7 3 … ]◀──────────┘   2, 4, … 64 next hops, in one cache line (two where they take two bytes)
//! ```
//!
//! Like DIR-24-8 a lookup is two loads without any branch on data, but a block without long prefixes costs a few bytes
//! and a block with one answer none at all, so that a full view takes 4.3 MB instead of 33.8, which the third-level
//! cache holds. Leaves have one byte in a table whose next hops have numbers below 255, and two bytes in any other
//! (7.6 MB).
//!
//! Blocks with prefixes longer than /24 are *divided*: the leaf of such a /24 is `PARTED`, and an array of its own, up
//! to 256 leaves, holds its answers. Lookups branch on that rare value.
//!
//! # Readers during a write
//!
//! One writer stores while readers look up; index entries and leaves are atomics. A lookup reads one index entry and
//! one leaf of the array it leads to (and in a divided block the place of a part's array, and one leaf there).
//! - An answer that changes is stored into its leaf. Arrays stay as fine as they once had to be, so a route that comes
//!   and goes costs stores only.
//! - An array that must become finer is written anew elsewhere, complete, and the index entry set to it, with release
//!   order. The old one is retired (`reclaim.rs`): its leaves are not written again before every reader that may be in
//!   it is gone. The places of the parts' arrays lie behind the leaves of a divided block and never change; another
//!   place means another array for the whole block.
//!
//! So each lookup is answered by the table before or after a change. When leaves run out the table is compiled anew.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::nexthop::NextHop;
use crate::rib::{Rib, Summary};
use crate::simd::{self, Isa, Pages, Top, Word, Word8, Word16, Word32};
use crate::sync::Arc as Held;

use super::apart::Apart;
use super::image::{Image, Section};
use super::reclaim::Token;
use super::{Algorithm, CompileError, Fib, Footprint, Instance};

mod batch;
mod entry;
mod space;
mod writer;

use batch::Batch;
use entry::{BLOCK_BITS, Entry, INDEX_BITS, PART_BITS};
use writer::Writer;

const NAME: &str = "dir18";

/// The algorithm.
pub struct Dir18 {
    /// The instruction set of batches; the best of the machine unless given.
    isa: Option<Isa>,
}

impl Dir18 {
    /// With the widest vectors of the machine.
    pub const BEST: Dir18 = Dir18 { isa: None };

    /// With this instruction set, to compare them.
    pub const fn with_isa(isa: Isa) -> Self {
        Dir18 { isa: Some(isa) }
    }
}

/// Parts of a divided block.
const PARTS: u32 = 1 << (BLOCK_BITS - PART_BITS);

/// The table as readers and the writer share it; a word `W` is as many leaves as four bytes hold.
struct Table<W: Word> {
    index: Pages<Word32>,
    leaves: Pages<W>,
    /// Leaves in use.
    taken: Apart<AtomicUsize>,
}

impl<W: Word> Table<W> {
    /// The leaf of a /24 that has an array of its own. No next hop has this number.
    const PARTED: NextHop = NextHop(W::HIGHEST as u16);
    /// The first leaves answer for blocks of one next hop: each leaf holds its own number.
    const OWN_NUMBERS: u32 = W::HIGHEST + 1;
    /// Leaves that hold the entry of a part.
    const ENTRY_LEAVES: u32 = W::ENTRIES as u32;
    const LEAF_BITS: u32 = u32::BITS / Self::ENTRY_LEAVES;
    /// Where, in the array of a divided block, the entries of its parts begin.
    const PART_ENTRIES: u32 = Self::ENTRY_LEAVES * PARTS;

    /// A table without routes, with so many leaves, a power of two.
    fn empty(leaves: u32) -> io::Result<Self> {
        let table = Table {
            index: Pages::zeroed(1 << INDEX_BITS)?,
            leaves: Pages::zeroed(leaves as usize)?,
            taken: Apart(AtomicUsize::new(0)),
        };
        (0..Self::OWN_NUMBERS).for_each(|number| table.leaves.set(number as usize, number));
        (0..1u32 << INDEX_BITS).for_each(|block| {
            let none = Entry::uniform(NextHop::NONE, block << BLOCK_BITS);
            table.index.set(block as usize, none.0);
        });
        Ok(table)
    }

    #[inline(always)]
    #[allow(clippy::expect_used)]
    fn top(&self) -> Top<'_, { INDEX_BITS as u32 }> {
        Top::new(self.index.as_slice()).expect("`empty` makes the index of this length")
    }

    #[inline(always)]
    fn entry(&self, addr: u32) -> Entry {
        Entry(self.top().get(addr))
    }

    /// Asks for index entries alone. To ask for leaves they would have to be there already, and a load that waits for them
    /// holds up the caller more than the leaves would.
    fn prefetch(&self, addrs: &[u32]) {
        let index = self.index.as_slice();
        addrs.iter().for_each(|addr| simd::prefetch(index, (addr >> BLOCK_BITS) as usize));
    }

    /// Asks for leaves, once the index entries are there.
    fn prefetch_leaves(&self, addrs: &[u32]) {
        let leaves = self.leaves.ring();
        addrs.iter().for_each(|addr| leaves.prefetch(self.entry(*addr).leaf(*addr)));
    }

    #[inline(always)]
    fn leaf(&self, entry: Entry, addr: u32) -> NextHop {
        NextHop(self.leaves.ring().get(entry.leaf(addr)) as u16)
    }

    #[inline(always)]
    fn lookup(&self, addr: u32) -> NextHop {
        let entry = self.entry(addr);
        match self.leaf(entry, addr) {
            next_hop if next_hop == Self::PARTED => self.lookup_part(entry, addr),
            next_hop => next_hop,
        }
    }

    /// The rare way, kept out of the loops.
    #[cold]
    #[inline(never)]
    fn lookup_part(&self, block: Entry, addr: u32) -> NextHop {
        self.leaf(self.part(block, addr), addr)
    }

    /// The entry of the part that holds `addr`, in a divided block.
    fn part(&self, block: Entry, addr: u32) -> Entry {
        let at = Self::part_entry(block, addr);
        let leaf = |i: u32| self.leaves.ring().get(at.wrapping_add(i));
        Entry((0..Self::ENTRY_LEAVES).fold(0, |entry, i| entry | leaf(i) << (i * Self::LEAF_BITS)))
    }

    /// The number of the first of the leaves that hold that entry.
    fn part_entry(block: Entry, addr: u32) -> u32 {
        let number = addr >> PART_BITS & (PARTS - 1);
        let from_its_leaf = Self::PART_ENTRIES + (Self::ENTRY_LEAVES - 1) * number;
        block.leaf(addr).wrapping_add(from_its_leaf)
    }
}

/// What readers hold: the table, and the proof that they may be in arrays it had when they fetched it.
/// Why it is aligned stands at [`Apart`].
#[repr(align(128))]
struct View<W: Word> {
    table: Arc<Table<W>>,
    isa: Isa,
    _token: Held<Token>,
}

impl<W: Word> Fib<u32> for View<W> {
    fn lookup(&self, addr: u32) -> NextHop {
        self.table.lookup(addr)
    }

    fn lookup_batch(&self, addrs: &[u32], next_hops: &mut [NextHop]) {
        simd::run(self.isa, Batch { table: &self.table, addrs, next_hops });
    }

    fn prefetch(&self, addrs: &[u32]) {
        self.table.prefetch(addrs);
    }

    fn prefetch_deeper(&self, addrs: &[u32]) {
        self.table.prefetch_leaves(addrs);
    }

    fn footprint(&self) -> Footprint {
        let leaves = self.table.taken.0.load(Ordering::Relaxed);
        let leaves = leaves * size_of::<W>() / W::ENTRIES;
        Footprint(vec![("index", size_of::<u32>() << INDEX_BITS), ("leaves", leaves)])
    }

    fn image(&self) -> Option<Image<'_>> {
        let (index, leaves) = (Section(&self.table.index), Section(&self.table.leaves));
        Some(Image::Dir18 { index, leaves, leaf_bytes: size_of::<W>() / W::ENTRIES })
    }
}

impl Algorithm<u32> for Dir18 {
    fn name(&self) -> &'static str {
        NAME
    }

    /// The fastest for large tables; below a hundred routes its index is most of what it costs.
    fn preference(&self, summary: &Summary) -> u8 {
        match summary.prefixes {
            0..10 => 10,
            10..100 => 200,
            _ => 254,
        }
    }

    fn compile(&self, rib: &Rib<u32>) -> Result<Box<dyn Instance<u32>>, CompileError> {
        let isa = self.isa.unwrap_or_else(Isa::best);
        if rib.highest_next_hop() < Table::<Word8>::PARTED {
            Ok(Box::new(Writer::<Word8>::compile(rib, isa)?))
        } else {
            Ok(Box::new(Writer::<Word16>::compile(rib, isa)?))
        }
    }
}
