//! Search lines: cache lines of sorted numbers, each searched with one comparison, linked to trees.
//!
//! A [`BranchLine`] holds the last key below each of its 16 children, a [`LeafLine`] the last key of each of its 10
//! ranges; the child or the range of a key is the number of last keys below the key. Unused last keys are `u32::MAX`,
//! which is below nothing. Children lie in a row, so a branch stores the place of its first child only.
//!
//! # Why no lookup can leave the stores
//!
//! Lookups step from place to place without bounds checks, so this file is allowed `unsafe`.
//!
//! Readers never see a place: a [`Walk`] keeps the places of its lookups together with the stores that they belong to.
//! Places come from the roots, from the first child of a branch, or from a list. Every root and every first child was
//! zero at first or went through [`LineStore::place`], which checks that a whole row of 16 lines follows it in the
//! store of branches and in the store of leaves (both have the same length). A place from a list is checked when it is
//! read. A step finds at most 15 last keys below a key in a branch and 9 in a leaf, whatever they contain, so it ends
//! within the row and reads within the line. A caller's mistake, such as a place of another `LineStore`, leads to a
//! wrong answer and to nothing worse.
#![allow(unsafe_code)]

use std::io;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

use crate::memory::{Pages, Section, Word32, entries, prefetch_unchecked};
use crate::simd::{Lanes, LinkedLine, SearchLine};

/// Most children of a branch.
pub const FANOUT: usize = 16;
/// Most ranges of a leaf.
pub const RANGES: usize = 10;
/// Number of trees: one for each value of the first 16 bits.
pub const ROOTS: usize = 1 << 16;
/// Bytes of a line.
const LINE: usize = 64;

/// The order with which readers load links and answers. The writer stores the target of a link before it stores the
/// link, with release order. On x86 no load is executed before an earlier one, and a compiler cannot know the target of
/// a link before the link is loaded. Yet the compiler treats an acquire load as a barrier and reads the addresses to
/// look up from memory again after each.
const LINK: Ordering = if cfg!(target_arch = "x86_64") { Ordering::Relaxed } else { Ordering::Acquire };

/// A line that divides keys: child `i` holds those up to `lasts[i]`, the child after these holds all others.
#[repr(C, align(64))]
pub struct BranchLine {
    lasts: [AtomicU32; FANOUT - 1],
    first: AtomicU32,
}

/// A line that answers: keys up to `lasts[i]` go to `hops[i]`, keys beyond the ninth last key to the tenth hop. Only
/// the writer reads the tenth last key, to know where the range ends.
#[repr(C, align(64))]
pub struct LeafLine {
    lasts: [AtomicU32; RANGES],
    hops: [AtomicU16; RANGES],
    /// A line of the branches that holds a [`Deeper`] for each hop that has one, packed into its last keys; 0 if none
    /// has.
    deeper: AtomicU32,
}

// SAFETY: 15 words and one more, aligned by the `repr`.
unsafe impl SearchLine for BranchLine {
    const LASTS: usize = FANOUT - 1;
    #[inline(always)]
    fn lasts(&self) -> &[AtomicU32] {
        &self.lasts
    }
}

// SAFETY: `first` is an aligned word, and `child` adds to it whole lines.
unsafe impl LinkedLine for BranchLine {
    const FIRST: usize = std::mem::offset_of!(BranchLine, first);
    #[inline(always)]
    fn child(&self, number: u32) -> u32 {
        self.first.load(LINK).wrapping_add(number * LINE as u32)
    }
}

// SAFETY: 10 words, 10 half words and one more word, aligned by the `repr`.
unsafe impl SearchLine for LeafLine {
    const LASTS: usize = RANGES - 1;
    #[inline(always)]
    fn lasts(&self) -> &[AtomicU32] {
        &self.lasts[..RANGES - 1]
    }
}

/// Where a line begins, in bytes from the start of its store: see the head of this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place(u32);

impl Place {
    /// The number of the line.
    pub const fn line(self) -> usize {
        self.0 as usize / LINE
    }
}

/// One range of a leaf, as the writer handles it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The last key of the range.
    pub last: u32,
    /// The next hop of its keys.
    pub hop: u16,
    /// The tree that answers instead.
    pub deeper: Option<Deeper>,
}

/// Another tree, whose keys begin some bits further into the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deeper {
    /// The place of the root branch.
    pub tree: Place,
    /// How many bits further: a multiple of eight.
    pub bits: u32,
}

/// A table of roots, a store of branches and one of leaves. Readers search them while one writer stores.
pub struct LineStore {
    roots: Pages<Word32>,
    branches: Pages<Word32>,
    leaves: Pages<Word32>,
    /// Lines of either store, without the last row.
    capacity: usize,
}

impl LineStore {
    /// Most lines: more would lie beyond the reach of a place.
    pub const MOST: usize = u32::MAX as usize / LINE - FANOUT;

    /// Stores of so many lines each, [`Self::MOST`] at most, in which every link leads to line 0.
    pub fn zeroed(lines: usize) -> io::Result<Self> {
        let capacity = lines.min(Self::MOST);
        let words = (capacity + FANOUT) * LINE / size_of::<Word32>();
        Ok(LineStore {
            roots: Pages::zeroed(ROOTS)?,
            branches: Pages::zeroed(words)?,
            leaves: Pages::zeroed(words)?,
            capacity,
        })
    }

    /// The number of lines that may be used in either store.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Converts the number of a line to its place; panics beyond the capacity.
    pub fn place(&self, line: usize) -> Place {
        assert!(line < self.capacity, "line {line} of {}", self.capacity);
        Place((line * LINE) as u32)
    }

    /// The stores as readers use them during a batch.
    #[inline(always)]
    pub fn search(&self) -> LineSearch<'_> {
        LineSearch { roots: entries(self.roots.as_slice()), branches: self.branches(), leaves: self.leaves() }
    }

    fn branches(&self) -> &[BranchLine] {
        let words = self.branches.as_slice();
        // SAFETY: the same bytes, page-aligned and zeroed at first, of which zero is a valid branch; `Pages` hands them
        // out as atomics only, and this store is read as branches only.
        unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words) / LINE) }
    }

    fn leaves(&self) -> &[LeafLine] {
        let words = self.leaves.as_slice();
        // SAFETY: as for `branches`, with leaves.
        unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words) / LINE) }
    }

    /// The root of the tree of keys that begin with `top`.
    pub fn root(&self, top: u16) -> Place {
        self.search().root(top)
    }

    /// Makes a complete tree the one of keys that begin with `top`.
    pub fn set_root(&self, top: u16, tree: Place) {
        self.roots.set(usize::from(top), self.place(tree.line()).0);
    }

    /// Writes a branch that no reader can reach yet, with children from `first` on and these last keys.
    pub fn write_branch(&self, line: usize, first: Place, lasts: &[u32]) {
        let branch = &self.branches()[line];
        let padded = lasts.iter().copied().chain(std::iter::repeat(u32::MAX));
        for (place, last) in branch.lasts.iter().zip(padded) {
            place.store(last, Ordering::Relaxed);
        }
        branch.first.store(self.place(first.line()).0, Ordering::Release);
        note(&self.branches, line);
    }

    /// The last keys of a branch.
    pub fn lasts(&self, line: usize) -> [u32; FANOUT - 1] {
        std::array::from_fn(|i| self.branches()[line].lasts[i].load(Ordering::Relaxed))
    }

    /// The first child of a branch.
    pub fn first(&self, line: usize) -> Place {
        Place(self.branches()[line].first.load(Ordering::Acquire))
    }

    /// Writes a leaf that no reader can reach yet, of 1 to [`RANGES`] slots. `list` is a line of the branches for the
    /// deeper trees of some slots, and 0 if no slot has one. The line is cleared first: its old content, such as the
    /// keys of a branch, would be read as places.
    pub fn write_leaf(&self, line: usize, slots: &[Slot], list: usize) {
        let leaf = &self.leaves()[line];
        for (i, (last, hop)) in leaf.lasts.iter().zip(&leaf.hops).enumerate() {
            let slot = slots.get(i).copied().unwrap_or(Slot { last: u32::MAX, hop: 0, deeper: None });
            last.store(slot.last, Ordering::Relaxed);
            hop.store(slot.hop, Ordering::Relaxed);
        }
        if list != 0 {
            self.branches()[list].lasts.iter().for_each(|link| link.store(0, Ordering::Relaxed));
            note(&self.branches, list);
        }
        leaf.deeper.store(list as u32, Ordering::Relaxed);
        note(&self.leaves, line);
        for (i, slot) in slots.iter().enumerate() {
            slot.deeper.into_iter().for_each(|deeper| self.set_deeper(line, i, deeper));
        }
    }

    /// The slots of a leaf whose keys go up to `end`.
    pub fn slots(&self, line: usize, end: u32) -> impl Iterator<Item = Slot> + '_ {
        let leaf = &self.leaves()[line];
        let mut more = true;
        let slots = leaf.lasts.iter().zip(&leaf.hops).enumerate().map(move |(i, (last, hop))| Slot {
            last: last.load(Ordering::Relaxed),
            hop: hop.load(Ordering::Relaxed),
            deeper: self.deeper(line, i),
        });
        slots.take_while(move |slot| std::mem::replace(&mut more, slot.last < end))
    }

    /// The answer of one slot of a leaf.
    pub fn answer(&self, line: usize, slot: usize) -> u16 {
        self.leaves()[line].hops[slot].load(Ordering::Relaxed)
    }

    /// Changes one answer while readers read it.
    pub fn set_hop(&self, line: usize, slot: usize, hop: u16) {
        self.leaves()[line].hops[slot].store(hop, Ordering::Release);
        note(&self.leaves, line);
    }

    /// Changes the deeper tree of a slot while readers read it; the leaf has a list.
    pub fn set_deeper(&self, line: usize, slot: usize, deeper: Deeper) {
        let link = self.place(deeper.tree.line()).0 | (deeper.bits / 8);
        let list = self.list(line);
        self.branches()[list].lasts[slot].store(link, Ordering::Release);
        note(&self.branches, list);
    }

    /// The memory of roots, branches and leaves, for copies.
    pub fn sections(&self) -> [Section<'_>; 3] {
        [Section(&self.roots), Section(&self.branches), Section(&self.leaves)]
    }

    /// The line that lists the deeper trees of a leaf; 0 if there is none.
    pub fn list(&self, leaf: usize) -> usize {
        self.leaves()[leaf].deeper.load(Ordering::Acquire) as usize
    }

    /// The deeper tree of a slot.
    pub fn deeper(&self, leaf: usize, slot: usize) -> Option<Deeper> {
        self.search().listed(self.list(leaf), slot)
    }
}

/// Records that a line of this store was written.
fn note(store: &Pages<Word32>, line: usize) {
    store.note_written(line * LINE / size_of::<Word32>());
}

/// The stores as a reader sees them.
#[derive(Clone, Copy)]
pub struct LineSearch<'t> {
    roots: &'t [AtomicU32],
    branches: &'t [BranchLine],
    leaves: &'t [LeafLine],
}

impl<'t> LineSearch<'t> {
    /// `N` lookups side by side, all of them at line 0.
    #[inline(always)]
    pub fn walk<const N: usize>(self) -> Walk<'t, N> {
        Walk { search: self, places: [Place(0); N] }
    }

    /// The root of the tree of keys that begin with `top`.
    #[inline(always)]
    fn root(self, top: u16) -> Place {
        // SAFETY: `zeroed` makes 2^16 roots.
        Place(unsafe { self.roots.get_unchecked(usize::from(top)) }.load(LINK))
    }

    /// Reads an entry of a list, if it was set: no tree begins at line 0. Lists hold checked places, but a caller may
    /// pass any branch as a list, so the place is checked again as [`LineStore::place`] does: a whole row follows the
    /// last place allowed.
    fn listed(self, list: usize, slot: usize) -> Option<Deeper> {
        let link = self.branches.get(list)?.lasts.get(slot)?.load(Ordering::Acquire);
        let tree = Place(link & !(LINE as u32 - 1));
        let valid = list != 0 && tree.line() != 0 && tree.line() + FANOUT < self.branches.len();
        valid.then_some(Deeper { tree, bits: 8 * (link % LINE as u32) })
    }
}

/// `N` lookups in progress, and the place that each of them has reached.
#[derive(Clone, Copy)]
pub struct Walk<'t, const N: usize> {
    search: LineSearch<'t>,
    /// Places of these stores, at most 15 lines into a row: see the head of this file.
    places: [Place; N],
}

impl<const N: usize> Walk<'_, N> {
    /// Moves a lookup to the root of the tree of keys that begin with `top`.
    #[inline(always)]
    pub fn enter(&mut self, lookup: usize, top: u16) {
        self.places[lookup] = self.search.root(top);
    }

    /// Moves a lookup from a branch to the child that its key belongs to.
    #[inline(always)]
    pub fn descend<L: Lanes>(&mut self, lanes: L, lookup: usize, key: L::U32) {
        // SAFETY: a place of a walk is the place of a whole line in both of its stores.
        let branch = unsafe { &*self.search.branches.as_ptr().byte_add(self.places[lookup].0 as usize) };
        // The place is at most 15 lines into a row inside both stores, whose bytes fit in 32 bits.
        self.places[lookup] = Place(lanes.child(branch, key));
    }

    /// Reads the answer for the key of a lookup that has reached a leaf.
    #[inline(always)]
    pub fn hop<L: Lanes>(&self, lanes: L, lookup: usize, key: L::U32) -> u16 {
        // SAFETY: a place of a walk is the place of a whole line in both of its stores.
        let leaf = unsafe { &*self.search.leaves.as_ptr().byte_add(self.places[lookup].0 as usize) };
        let below = lanes.below(leaf, key) as usize;
        // SAFETY: the index is at most 9 of 10, by the contract of `below`.
        unsafe { leaf.hops.get_unchecked(below) }.load(LINK)
    }

    /// Moves a lookup from a leaf to the root of the deeper tree of its key's range, and returns how many bits further
    /// the keys of that tree begin; `None` if the range has no deeper tree.
    #[inline(always)]
    pub fn deeper<L: Lanes>(&mut self, lanes: L, lookup: usize, key: L::U32) -> Option<u32> {
        let leaf = self.search.leaves.get(self.places[lookup].line())?;
        let list = leaf.deeper.load(Ordering::Acquire) as usize;
        let Deeper { tree, bits } = self.search.listed(list, lanes.below(leaf, key) as usize)?;
        self.places[lookup] = tree;
        Some(bits)
    }

    /// Prefetches the branch that a lookup has reached.
    #[inline(always)]
    pub fn prefetch_branch(&self, lookup: usize) {
        let branches = self.search.branches.as_ptr().cast::<u8>();
        prefetch_unchecked(branches.wrapping_add(self.places[lookup].0 as usize));
    }

    /// Prefetches the leaf that a lookup has reached.
    #[inline(always)]
    pub fn prefetch_leaf(&self, lookup: usize) {
        let leaves = self.search.leaves.as_ptr().cast::<u8>();
        prefetch_unchecked(leaves.wrapping_add(self.places[lookup].0 as usize));
    }
}

#[cfg(test)]
mod tests {
    use std::array::from_fn;

    use super::*;
    use crate::simd::{Isa, Kernel, run};

    /// Finds the child and the answer of a key: line 1 is the root of a tree, as a branch and as a leaf. Child `i` of
    /// the branch is a leaf that answers `i`.
    struct Searched<'a> {
        lines: &'a LineStore,
        key: u32,
        found: &'a mut Vec<[u16; 2]>,
    }

    impl Kernel for Searched<'_> {
        #[inline(always)]
        fn run<L: Lanes>(self, lanes: L) {
            let key = lanes.splat(self.key);
            let mut walk = self.lines.search().walk::<2>();
            walk.enter(0, 7);
            walk.enter(1, 7);
            walk.descend(lanes, 0, key);
            self.found.push([walk.hop(lanes, 0, key), walk.hop(lanes, 1, key)]);
        }
    }

    #[test]
    fn every_instruction_set_finds_the_child_and_the_range_of_a_key() {
        let lasts: [u32; FANOUT - 1] =
            from_fn(|i| [5, 0x7fff_ffff, 0x8000_0000, 0xffff_fff0][i % 4] + (i / 4) as u32);
        for count in 0..FANOUT {
            let mut lasts = lasts[..count].to_vec();
            lasts.sort_unstable();
            let lines = LineStore::zeroed(20).unwrap();
            lines.set_root(7, lines.place(1));
            lines.write_branch(1, lines.place(3), &lasts);
            for child in 0..FANOUT {
                let slot = Slot { last: u32::MAX, hop: child as u16, deeper: None };
                lines.write_leaf(3 + child, &[slot], 0);
            }
            let ends = lasts.iter().copied().take(RANGES - 1).chain([u32::MAX]);
            let slots: Vec<Slot> =
                ends.zip(100..).map(|(last, hop)| Slot { last, hop, deeper: None }).collect();
            lines.write_leaf(1, &slots, 0);
            let near = lasts.iter().flat_map(|last| [last - 1, *last, last + 1]);
            for key in near.chain([0, u32::MAX]) {
                let child = lasts.partition_point(|last| *last < key);
                let range = slots.partition_point(|slot| slot.last < key);
                for isa in Isa::available() {
                    let mut found = Vec::new();
                    run(isa, Searched { lines: &lines, key, found: &mut found });
                    assert_eq!(found, [[child as u16, 100 + range as u16]], "{} {key:#x}", isa.name());
                }
            }
        }
    }

    #[test]
    fn a_list_holds_what_was_set_and_nothing_of_the_former_branch() {
        let lines = LineStore::zeroed(20).unwrap();
        // As places these keys are line 0, the last line that may be used, and the two lines after it.
        lines.write_branch(5, lines.place(1), &[7, 19 * 64, 20 * 64, 21 * 64]);
        let deeper = Deeper { tree: lines.place(19), bits: 32 };
        let slots: Vec<Slot> =
            (0..6).map(|i| Slot { last: i, hop: 1, deeper: (i == 5).then_some(deeper) }).collect();
        lines.write_leaf(3, &slots, 5);
        assert_eq!(lines.slots(3, 5).collect::<Vec<_>>(), slots);
    }

    #[test]
    fn a_branch_taken_for_a_list_leads_to_nothing_beyond_the_capacity() {
        let lines = LineStore::zeroed(20).unwrap();
        lines.write_leaf(3, &[Slot { last: u32::MAX, hop: 1, deeper: None }], 5);
        lines.write_branch(5, lines.place(1), &[7, 19 * 64, 20 * 64, 21 * 64]);
        let trees: Vec<_> =
            (0..5).map(|slot| lines.deeper(3, slot).map(|deeper| deeper.tree.line())).collect();
        assert_eq!(trees, [None, Some(19), None, None, None]);
    }

    #[test]
    #[should_panic(expected = "line 20 of 20")]
    fn a_place_beyond_the_stores_is_refused() {
        LineStore::zeroed(20).unwrap().place(20);
    }
}
