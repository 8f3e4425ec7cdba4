//! The writer's half: it writes blocks in place if their arrays are fine enough, otherwise elsewhere.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::fib::{CompileError, Fib, Instance, Outcome};
use crate::memory::{Full, Reclaim, Word};
use crate::nexthop::NextHop;
use crate::prefix::Prefix;
use crate::rib::{Change, Range, Rib};
use crate::simd::Isa;

use super::entry::{BLOCK_BITS, BlockEntry, INDEX_BITS, PART_BITS};
use super::space::{Array, LeafSpace};
use super::table::{Dir18Table, NAME, PARTS};
use super::view::View;

/// The number of retired arrays from which a new view begins. Each view that readers hold keeps up to this many from
/// being used again; a new view costs an allocation.
const VIEW_EVERY: usize = 256;
/// Fewest leaves: those of one large page, or two.
const FEWEST_LEAVES: usize = 1 << 21;
/// Most leaves: the places of an entry have 26 bits.
const MOST_LEAVES: usize = 1 << 26;

/// The single writer of its table.
pub(super) struct Writer<W: Word> {
    table: Arc<Dir18Table<W>>,
    space: LeafSpace,
    retired: Reclaim<Array>,
    view: Arc<View<W>>,
    /// Kept between changes to reuse its allocation.
    ranges: Vec<Range<u32>>,
}

impl<W: Word> Writer<W> {
    /// The number of leaves in a cache line, as a power of two.
    const LINE: u8 = (64 / size_of::<W>() * W::ENTRIES).ilog2() as u8;
    /// The class of the array of a divided block: its leaves, followed by the entries of its parts.
    const DIVIDED: u8 = (PARTS + Dir18Table::<W>::PART_ENTRIES).next_power_of_two().ilog2() as u8;

    pub(super) fn compile(rib: &Rib<u32>, isa: Isa) -> Result<Self, CompileError> {
        check_next_hops::<W>(rib.highest_next_hop())?;
        let ranges: Vec<_> = rib.ranges().collect();
        let needed = leaves_needed::<W>(&ranges);
        let limit = |_| CompileError::Limit { algorithm: NAME, what: "leaves", needed, limit: MOST_LEAVES };
        let mut writer = Writer::empty(capacity_for(needed), isa)?;
        writer.write_blocks(Prefix::default_route(), &ranges).map_err(limit)?;
        writer.publish();
        Ok(writer)
    }

    fn empty(leaves: u32, isa: Isa) -> Result<Self, CompileError> {
        let table = Dir18Table::empty(leaves)
            .map_err(|error| CompileError::Memory { algorithm: NAME, reason: error.to_string() })?;
        let table = Arc::new(table);
        let retired = Reclaim::new();
        let view = Arc::new(View { table: Arc::clone(&table), isa, _token: retired.token() });
        let space = LeafSpace::new(Self::LINE, Dir18Table::<W>::OWN_NUMBERS, leaves);
        Ok(Writer { table, space, retired, view, ranges: Vec::new() })
    }

    /// Brings the blocks that meet `prefix` up to `ranges`, which cover them all.
    fn write_blocks(&mut self, prefix: Prefix<u32>, ranges: &[Range<u32>]) -> Result<(), Full> {
        let mut rest = ranges;
        for block in prefix.first() >> BLOCK_BITS..=prefix.last() >> BLOCK_BITS {
            let within = overlapping(&mut rest, block << BLOCK_BITS, BLOCK_BITS);
            self.write_block(block, within)?;
        }
        Ok(())
    }

    /// Brings one block up to `ranges`, which cover it.
    fn write_block(&mut self, block: u32, ranges: &[Range<u32>]) -> Result<(), Full> {
        let first = block << BLOCK_BITS;
        let old = BlockEntry(self.table.index.get(block as usize));
        if let [range] = ranges {
            self.replace(block, old, BlockEntry::uniform(range.next_hop, first));
            return Ok(());
        }
        let mut cut = ranges.iter().map(|range| cut(range, first, BLOCK_BITS));
        if cut.all(|range| self.write_in_place(old, &range)) {
            return Ok(());
        }
        let new = match fineness(ranges, BLOCK_BITS) {
            class if class > BLOCK_BITS - PART_BITS => self.divided(first, ranges)?,
            class => self.array(first, BLOCK_BITS, class, ranges)?,
        };
        self.replace(block, old, new);
        Ok(())
    }

    /// Sets the answer of one range inside one block, if the existing arrays suffice. If it returns false, part of the
    /// range may be set.
    fn write_in_place(&self, entry: BlockEntry, range: &Range<u32>) -> bool {
        if entry.is_uniform() {
            self.table.leaf(entry, range.first) == range.next_hop
        } else if entry.is_divided() {
            let parts = range.first >> PART_BITS..=range.last >> PART_BITS;
            parts
                .map(|part| cut(range, part << PART_BITS, PART_BITS))
                .all(|range| self.write_part(entry, &range))
        } else {
            aligned(range, entry.shift()) && {
                self.fill(entry, range);
                true
            }
        }
    }

    /// Does what [`Self::write_in_place`] does, for a range inside one part.
    fn write_part(&self, block: BlockEntry, range: &Range<u32>) -> bool {
        let next_hop = self.table.leaf(block, range.first);
        if next_hop == Dir18Table::<W>::PARTED {
            let part = self.table.part(block, range.first);
            return aligned(range, part.shift()) && {
                self.fill(part, range);
                true
            };
        }
        if aligned(range, block.shift()) {
            self.fill(block, range);
            return true;
        }
        next_hop == range.next_hop
    }

    /// Sets the leaves of a range that begins and ends where leaves do.
    fn fill(&self, entry: BlockEntry, range: &Range<u32>) {
        let count = (range.last >> entry.shift()) - (range.first >> entry.shift()) + 1;
        let start = entry.leaf(range.first);
        (0..count).for_each(|leaf| self.set(start.wrapping_add(leaf), range.next_hop));
    }

    fn set(&self, leaf: u32, next_hop: NextHop) {
        self.set_value(leaf, u32::from(next_hop.0));
    }

    fn set_value(&self, leaf: u32, value: u32) {
        let leaves = self.table.leaves.entries();
        self.table.leaves.set(leaf as usize & (leaves.len() - 1), value);
    }

    /// Stores the entry of the part that `addr` is in into the leaves of its divided block.
    fn set_part(&self, block: BlockEntry, addr: u32, entry: BlockEntry) {
        let at = Dir18Table::<W>::part_entry(block, addr);
        for leaf in 0..Dir18Table::<W>::ENTRY_LEAVES {
            let value = entry.0 >> (leaf * Dir18Table::<W>::LEAF_BITS) & W::HIGHEST;
            self.set_value(at.wrapping_add(leaf), value);
        }
    }

    /// Writes a new array of `2^class` leaves for the block or part of `2^bits` addresses that begins at `first`.
    fn array(&mut self, first: u32, bits: u8, class: u8, ranges: &[Range<u32>]) -> Result<BlockEntry, Full> {
        let entry = BlockEntry::array(self.take(class)?, u32::from(bits - class), first);
        ranges.iter().for_each(|range| self.fill(entry, &cut(range, first, bits)));
        Ok(entry)
    }

    /// Writes a new array for a divided block, and the arrays of those parts that need one.
    fn divided(&mut self, first: u32, ranges: &[Range<u32>]) -> Result<BlockEntry, Full> {
        let block = BlockEntry::divided(self.take(Self::DIVIDED)?, first);
        let mut rest = ranges;
        for part in (0..PARTS).map(|part| first + (part << PART_BITS)) {
            let within = overlapping(&mut rest, part, PART_BITS);
            let entry = match within {
                [range] => {
                    self.set(block.leaf(part), range.next_hop);
                    BlockEntry(0)
                }
                _ => {
                    self.set(block.leaf(part), Dir18Table::<W>::PARTED);
                    self.array(part, PART_BITS, fineness(within, PART_BITS), within)?
                }
            };
            self.set_part(block, part, entry);
        }
        Ok(block)
    }

    /// Takes an array that no reader is in.
    fn take(&mut self, class: u8) -> Result<u32, Full> {
        if let Some(place) = self.space.take(class) {
            return Ok(place);
        }
        self.turn();
        self.space.take(class).ok_or(Full)
    }

    /// Leads lookups to the new arrays of a block instead of the old ones.
    fn replace(&mut self, block: u32, old: BlockEntry, new: BlockEntry) {
        if old != new {
            self.table.index.set(block as usize, new.0);
            self.retire_block(old, block << BLOCK_BITS);
        }
    }

    fn retire_block(&mut self, entry: BlockEntry, first: u32) {
        if entry.is_uniform() {
            return;
        }
        if !entry.is_divided() {
            return self.retire(entry, first, BLOCK_BITS - entry.shift() as u8);
        }
        for part in (0..PARTS).map(|part| first + (part << PART_BITS)) {
            if self.table.leaf(entry, part) == Dir18Table::<W>::PARTED {
                let array = self.table.part(entry, part);
                self.retire(array, part, PART_BITS - array.shift() as u8);
            }
        }
        self.retire(entry, first, Self::DIVIDED);
    }

    fn retire(&mut self, entry: BlockEntry, first: u32, class: u8) {
        let place = entry.leaf(first) & (self.table.leaves.entries().len() as u32 - 1);
        let array = Array { class, place };
        self.space.leave(array);
        self.retired.retire(array);
    }

    /// Begins a new view, and frees the arrays that no reader can be in any more.
    fn turn(&mut self) {
        let (table, isa) = (Arc::clone(&self.table), self.view.isa);
        self.view = Arc::new(View { table, isa, _token: self.retired.turn() });
        self.retired.reclaim().into_iter().for_each(|array| self.space.give_back(array));
    }

    /// Stores the number of leaves in use for readers of the footprint.
    fn publish(&self) {
        self.table.taken.0.store(self.space.taken(), Ordering::Relaxed);
    }

    fn change(&mut self, rib: &Rib<u32>, prefix: Prefix<u32>) -> Result<(), Full> {
        let mut ranges = std::mem::take(&mut self.ranges);
        ranges.clear();
        ranges.extend(rib.ranges_within(prefix));
        let result = self.change_to(rib, prefix, &mut ranges);
        self.ranges = ranges;
        result
    }

    fn change_to(
        &mut self,
        rib: &Rib<u32>,
        prefix: Prefix<u32>,
        ranges: &mut Vec<Range<u32>>,
    ) -> Result<(), Full> {
        if prefix.len() <= INDEX_BITS {
            return self.write_blocks(prefix, ranges);
        }
        let entry = self.table.entry(prefix.first());
        if ranges.iter().all(|range| self.write_in_place(entry, range)) {
            return Ok(());
        }
        let block = Prefix::containing(prefix.first(), INDEX_BITS);
        ranges.clear();
        ranges.extend(rib.ranges_within(block));
        self.write_blocks(block, ranges)
    }
}

impl<W: Word> Instance<u32> for Writer<W> {
    fn fib(&self) -> Arc<dyn Fib<u32>> {
        Arc::<View<W>>::clone(&self.view)
    }

    fn patch(&mut self, rib: &Rib<u32>, changes: &[Change<u32>]) -> Outcome {
        // Each change writes what the RIB has there by now, from later changes too. The compile returns the error for a next
        // hop that does not fit.
        if check_next_hops::<W>(rib.highest_next_hop()).is_err() {
            return Outcome::Rebuild;
        }
        for change in changes {
            if self.change(rib, change.prefix).is_err() {
                return Outcome::Rebuild;
            }
        }
        if self.retired.retired() >= VIEW_EVERY {
            self.turn();
        }
        self.publish();
        Outcome::Applied
    }
}

/// Checks that no next hop has the number that marks parts.
fn check_next_hops<W: Word>(highest: NextHop) -> Result<(), CompileError> {
    let (needed, limit) = (highest.index(), Dir18Table::<W>::PARTED.index() - 1);
    let error = CompileError::Limit { algorithm: NAME, what: "next hops", needed, limit };
    if needed > limit { Err(error) } else { Ok(()) }
}

/// Takes from the front of `rest` the ranges that overlap the `2^bits` addresses from `first` on, and leaves in it
/// those that reach further. `rest` begins at `first` or before.
fn overlapping<'r>(rest: &mut &'r [Range<u32>], first: u32, bits: u8) -> &'r [Range<u32>] {
    let last = first | ((1 << bits) - 1);
    let ended = rest.iter().take_while(|range| range.last < last).count();
    let within = &rest[..(ended + 1).min(rest.len())];
    let used = ended + usize::from(rest.get(ended).is_some_and(|range| range.last == last));
    *rest = &rest[used..];
    within
}

/// The part of a range in the `2^bits` addresses from `first` on.
fn cut(range: &Range<u32>, first: u32, bits: u8) -> Range<u32> {
    let last = first | ((1 << bits) - 1);
    Range { first: range.first.max(first), last: range.last.min(last), ..*range }
}

/// Whether a range begins and ends where leaves of `2^shift` addresses do.
fn aligned(range: &Range<u32>, shift: u32) -> bool {
    let inside = (1 << shift) - 1;
    range.first & inside == 0 && range.last & inside == inside
}

/// The number of times that `2^bits` addresses must be halved until every boundary between these ranges lies between
/// two leaves.
fn fineness(ranges: &[Range<u32>], bits: u8) -> u8 {
    let starts = ranges.iter().skip(1).fold(0, |starts, range| starts | range.first);
    bits - starts.trailing_zeros().min(u32::from(bits)) as u8
}

/// Counts the leaves of all arrays that the whole address space needs.
fn leaves_needed<W: Word>(ranges: &[Range<u32>]) -> usize {
    let mut rest = ranges;
    let blocks = (0..1u32 << INDEX_BITS).map(|block| {
        let within = overlapping(&mut rest, block << BLOCK_BITS, BLOCK_BITS);
        block_leaves::<W>(block << BLOCK_BITS, within)
    });
    blocks.sum::<usize>() + Dir18Table::<W>::OWN_NUMBERS as usize
}

fn block_leaves<W: Word>(first: u32, ranges: &[Range<u32>]) -> usize {
    match (ranges, fineness(ranges, BLOCK_BITS)) {
        ([_], _) => 0,
        (_, class) if class <= BLOCK_BITS - PART_BITS => 1 << class,
        _ => {
            let mut rest = ranges;
            let parts = (0..PARTS).map(|part| overlapping(&mut rest, first + (part << PART_BITS), PART_BITS));
            let arrays = parts.filter(|part| part.len() > 1).map(|part| 1 << fineness(part, PART_BITS));
            (1 << Writer::<W>::DIVIDED) + arrays.sum::<usize>()
        }
    }
}

/// Twice as many leaves as needed, so that growth does not soon cause a rebuild. Leaves that are never used cost no
/// memory, except for the first large page.
fn capacity_for(needed: usize) -> u32 {
    (2 * needed).next_power_of_two().clamp(FEWEST_LEAVES, MOST_LEAVES) as u32
}
