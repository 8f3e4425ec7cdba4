//! Search lines: cache lines of sorted numbers, each searched with one comparison, linked to trees.
//!
//! A [`Branch`] holds the last key below each of its 16 children, a [`Leaf`] the last key of each of its 10 ranges; the
//! child or the range of a key is the number of lasts below the key. Unused lasts are `u32::MAX`, which is below
//! nothing. Children lie in a row, so a branch needs to know its first one only.
//!
//! # Why no lookup can leave the stores
//!
//! Readers never see a place: a [`Walk`] keeps those of its lookups beside the stores they are of. They come from the
//! roots, from the first child of a branch, or from a list. Every root and every first child was zero at first or
//! went through [`Lines::place`], which checks that a whole row of 16 lines lies behind it in the store of branches as
//! well as that of leaves (they are of one length); what a list says is checked when it is read. A step finds at most
//! 15 lasts below a key in a branch and 9 in a leaf, however they were filled, so it ends within the row, and reads
//! within the line. A caller's mistake, a place of other `Lines` too, leads to a wrong answer and to nothing worse.

use std::io;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

use super::word::entries;
use super::{Lanes, Pages, Word32};
use crate::fib::image::Section;

/// Children of a branch at most.
pub const FANOUT: usize = 16;
/// Ranges of a leaf at most.
pub const RANGES: usize = 10;
/// Trees: one for each value of the first 16 bits.
pub const ROOTS: usize = 1 << 16;
/// Bytes of a line.
const LINE: usize = 64;

/// How readers load links and answers. What a link leads to was written before the link was stored with release order.
/// On x86 no load is done before an earlier one, and a compiler cannot know where a link leads before it is loaded;
/// but it takes an acquire load for a barrier and fetches the addresses looked up from memory again after each.
const LINK: Ordering = if cfg!(target_arch = "x86_64") { Ordering::Relaxed } else { Ordering::Acquire };

/// A line that divides keys: child `i` holds those up to `lasts[i]`, the child behind them all others.
#[repr(C, align(64))]
pub struct Branch {
    lasts: [AtomicU32; FANOUT - 1],
    first: AtomicU32,
}

impl Branch {
    /// Where the first child begins, in bytes from the beginning of the branch.
    #[cfg_attr(not(all(target_arch = "x86_64", not(fullview_portable))), allow(dead_code))] // plain code needs none
    pub(super) const FIRST: usize = std::mem::offset_of!(Branch, first);

    /// Where a child begins.
    #[inline(always)]
    pub(super) fn child(&self, number: u32) -> u32 {
        self.first.load(LINK).wrapping_add(number * LINE as u32)
    }
}

/// A line that answers: keys up to `lasts[i]` go to `hops[i]`, those behind the ninth last to the tenth hop. The tenth
/// last is for the writer, who wants to know where the range ends.
#[repr(C, align(64))]
pub struct Leaf {
    lasts: [AtomicU32; RANGES],
    hops: [AtomicU16; RANGES],
    /// A line that holds a [`Deeper`] for each hop that has one, packed into its lasts; 0 if none has.
    deeper: AtomicU32,
}

/// A line that can be searched.
///
/// # Safety
///
/// The type has 64 bytes, is aligned to 64, and begins with the numbers that [`Line::lasts`] gives, at most 16.
pub unsafe trait Line {
    /// Numbers searched.
    #[cfg_attr(not(all(target_arch = "x86_64", not(fullview_portable))), allow(dead_code))] // plain code needs none
    const LASTS: usize;
    /// They.
    fn lasts(&self) -> &[AtomicU32];
}

// SAFETY: 15 words and one more, aligned by the `repr`.
unsafe impl Line for Branch {
    const LASTS: usize = FANOUT - 1;
    #[inline(always)]
    fn lasts(&self) -> &[AtomicU32] {
        &self.lasts
    }
}

// SAFETY: 10 words, 10 half words and one more word, aligned by the `repr`.
unsafe impl Line for Leaf {
    const LASTS: usize = RANGES - 1;
    #[inline(always)]
    fn lasts(&self) -> &[AtomicU32] {
        &self.lasts[..RANGES - 1]
    }
}

/// Where a line begins, in bytes: see the head of this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place(u32);

impl Place {
    /// The line's number.
    pub const fn line(self) -> usize {
        self.0 as usize / LINE
    }
}

/// One range of a leaf, as the writer sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Its last key.
    pub last: u32,
    /// Its answer.
    pub hop: u16,
    /// Where its answer is instead.
    pub deeper: Option<Deeper>,
}

/// Another tree, whose keys begin some bits further on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deeper {
    /// The tree.
    pub tree: Place,
    /// How many bits: a multiple of eight.
    pub bits: u32,
}

/// A table of roots, a store of branches and one of leaves. Readers search them while one writer stores.
pub struct Lines {
    roots: Pages<Word32>,
    branches: Pages<Word32>,
    leaves: Pages<Word32>,
    /// Lines of either store, the last row not counted.
    capacity: usize,
}

impl Lines {
    /// Lines at most: more would lie beyond the reach of a place.
    pub const MOST: usize = u32::MAX as usize / LINE - FANOUT;

    /// Stores of so many lines each, [`Self::MOST`] at most, in which every link leads to line 0.
    pub fn zeroed(lines: usize) -> io::Result<Self> {
        let capacity = lines.min(Self::MOST);
        let words = (capacity + FANOUT) * LINE / size_of::<Word32>();
        Ok(Lines {
            roots: Pages::zeroed(ROOTS)?,
            branches: Pages::zeroed(words)?,
            leaves: Pages::zeroed(words)?,
            capacity,
        })
    }

    /// Lines that may be used in either store.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The place of a line; panics beyond the capacity.
    pub fn place(&self, line: usize) -> Place {
        assert!(line < self.capacity, "line {line} of {}", self.capacity);
        Place((line * LINE) as u32)
    }

    /// What readers hold on to during a batch.
    #[inline(always)]
    pub fn search(&self) -> Search<'_> {
        Search { roots: entries(self.roots.as_slice()), branches: self.branches(), leaves: self.leaves() }
    }

    fn branches(&self) -> &[Branch] {
        let words = self.branches.as_slice();
        // SAFETY: the same bytes, page-aligned and zeroed at first, of which zero is a valid branch; `Pages` hands them
        // out as atomics only, and this store is reached as branches only.
        unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words) / LINE) }
    }

    fn leaves(&self) -> &[Leaf] {
        let words = self.leaves.as_slice();
        // SAFETY: as for `branches`, with leaves.
        unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words) / LINE) }
    }

    /// The tree of keys that begin with `top`.
    pub fn root(&self, top: u16) -> Place {
        self.search().root(top)
    }

    /// Sets a tree, which is complete.
    pub fn set_root(&self, top: u16, tree: Place) {
        self.roots.set(usize::from(top), self.place(tree.line()).0);
    }

    /// Writes a branch that no reader can reach yet: the children from `first` on, divided after each of `lasts`.
    pub fn write_branch(&self, line: usize, first: Place, lasts: &[u32]) {
        let branch = &self.branches()[line];
        let padded = lasts.iter().copied().chain(std::iter::repeat(u32::MAX));
        for (place, last) in branch.lasts.iter().zip(padded) {
            place.store(last, Ordering::Relaxed);
        }
        branch.first.store(self.place(first.line()).0, Ordering::Release);
        note(&self.branches, line);
    }

    /// The lasts of a branch.
    pub fn lasts(&self, line: usize) -> [u32; FANOUT - 1] {
        std::array::from_fn(|i| self.branches()[line].lasts[i].load(Ordering::Relaxed))
    }

    /// The first child of a branch.
    pub fn first(&self, line: usize) -> Place {
        Place(self.branches()[line].first.load(Ordering::Acquire))
    }

    /// Writes a leaf that no reader can reach yet, of 1 to [`RANGES`] slots. `list` is a line of the branches for what
    /// some slots lead to, and 0 if none does. What the line held before, keys of a branch maybe, would be read as
    /// places: it is wiped.
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

    /// One answer of a leaf.
    pub fn answer(&self, line: usize, slot: usize) -> u16 {
        self.leaves()[line].hops[slot].load(Ordering::Relaxed)
    }

    /// Changes one answer under the eyes of readers.
    pub fn set_hop(&self, line: usize, slot: usize, hop: u16) {
        self.leaves()[line].hops[slot].store(hop, Ordering::Release);
        note(&self.leaves, line);
    }

    /// Changes where a slot leads, under the eyes of readers; the leaf has a list.
    pub fn set_deeper(&self, line: usize, slot: usize, deeper: Deeper) {
        let link = self.place(deeper.tree.line()).0 | (deeper.bits / 8);
        let list = self.list(line);
        self.branches()[list].lasts[slot].store(link, Ordering::Release);
        note(&self.branches, list);
    }

    /// Roots, branches and leaves, for copies.
    pub fn sections(&self) -> [Section<'_>; 3] {
        [Section(&self.roots), Section(&self.branches), Section(&self.leaves)]
    }

    /// The line with what the slots of a leaf lead to; 0 if there is none.
    pub fn list(&self, leaf: usize) -> usize {
        self.leaves()[leaf].deeper.load(Ordering::Acquire) as usize
    }

    /// Where a slot leads.
    pub fn deeper(&self, leaf: usize, slot: usize) -> Option<Deeper> {
        self.search().listed(self.list(leaf), slot)
    }
}

/// A line of this store was written.
fn note(store: &Pages<Word32>, line: usize) {
    store.note_written(line * LINE / size_of::<Word32>());
}

/// Asks for what lies so many bytes behind a block of a row, whether the row goes on that far or not.
#[inline(always)]
pub fn prefetch_behind<T>(block: &T, bytes: usize) {
    let first = std::ptr::from_ref(block).cast::<u8>().wrapping_add(bytes);
    for line in 0..size_of::<T>().div_ceil(LINE) {
        super::prefetch_unchecked(first.wrapping_add(line * LINE));
    }
}

/// The stores as a reader sees them.
#[derive(Clone, Copy)]
pub struct Search<'t> {
    roots: &'t [AtomicU32],
    branches: &'t [Branch],
    leaves: &'t [Leaf],
}

impl<'t> Search<'t> {
    /// Lookups side by side, all at line 0.
    #[inline(always)]
    pub fn walk<const N: usize>(self) -> Walk<'t, N> {
        Walk { search: self, places: [Place(0); N] }
    }

    /// The tree of keys that begin with `top`.
    #[inline(always)]
    fn root(self, top: u16) -> Place {
        // SAFETY: `zeroed` makes 2^16 of them.
        Place(unsafe { self.roots.get_unchecked(usize::from(top)) }.load(LINK))
    }

    /// A list's entry, if it was set: no tree begins at line 0. Lists hold checked places, but any branch may be taken
    /// for one, so this one is checked again, as [`Lines::place`] does: behind the last one allowed lies a row.
    fn listed(self, list: usize, slot: usize) -> Option<Deeper> {
        let link = self.branches.get(list)?.lasts.get(slot)?.load(Ordering::Acquire);
        let tree = Place(link & !(LINE as u32 - 1));
        let valid = list != 0 && tree.line() != 0 && tree.line() + FANOUT < self.branches.len();
        valid.then_some(Deeper { tree, bits: 8 * (link % LINE as u32) })
    }
}

/// `N` lookups on their way through the trees, and where each of them is.
#[derive(Clone, Copy)]
pub struct Walk<'t, const N: usize> {
    search: Search<'t>,
    /// Of these stores, and at most 15 lines into a row: see the head of this file.
    places: [Place; N],
}

impl<const N: usize> Walk<'_, N> {
    /// Takes a lookup to the tree of keys that begin with `top`.
    #[inline(always)]
    pub fn enter(&mut self, lookup: usize, top: u16) {
        self.places[lookup] = self.search.root(top);
    }

    /// Takes a lookup that is at a branch to the child that its key belongs to.
    #[inline(always)]
    pub fn descend<L: Lanes>(&mut self, lanes: L, lookup: usize, key: L::U32) {
        // SAFETY: a place of a walk is that of a whole line in each of its stores.
        let branch = unsafe { &*self.search.branches.as_ptr().byte_add(self.places[lookup].0 as usize) };
        // At most 15 lines into a row that lies within both stores, whose bytes fit 32 bits.
        self.places[lookup] = Place(lanes.child(branch, key));
    }

    /// The answer for the key of a lookup that is at a leaf.
    #[inline(always)]
    pub fn hop<L: Lanes>(&self, lanes: L, lookup: usize, key: L::U32) -> u16 {
        // SAFETY: a place of a walk is that of a whole line in each of its stores.
        let leaf = unsafe { &*self.search.leaves.as_ptr().byte_add(self.places[lookup].0 as usize) };
        let below = lanes.below(leaf, key) as usize;
        // SAFETY: at most 9 of 10, by the contract of `below`.
        unsafe { leaf.hops.get_unchecked(below) }.load(LINK)
    }

    /// Takes a lookup that is at a leaf to the tree that the range of its key leads to, and says how many bits
    /// further on that tree's keys begin; `None` if the range leads nowhere.
    #[inline(always)]
    pub fn deeper<L: Lanes>(&mut self, lanes: L, lookup: usize, key: L::U32) -> Option<u32> {
        let leaf = self.search.leaves.get(self.places[lookup].line())?;
        let list = leaf.deeper.load(Ordering::Acquire) as usize;
        let Deeper { tree, bits } = self.search.listed(list, lanes.below(leaf, key) as usize)?;
        self.places[lookup] = tree;
        Some(bits)
    }

    /// Asks for the branch a lookup is at.
    #[inline(always)]
    pub fn prefetch_branch(&self, lookup: usize) {
        let branches = self.search.branches.as_ptr().cast::<u8>();
        super::prefetch_unchecked(branches.wrapping_add(self.places[lookup].0 as usize));
    }

    /// Asks for the leaf a lookup is at.
    #[inline(always)]
    pub fn prefetch_leaf(&self, lookup: usize) {
        let leaves = self.search.leaves.as_ptr().cast::<u8>();
        super::prefetch_unchecked(leaves.wrapping_add(self.places[lookup].0 as usize));
    }
}
