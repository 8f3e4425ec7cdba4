//! Table memory that vector code may read while one writer stores to it.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering};

use crate::nexthop::NextHop;

use super::{LANES, Lanes};

/// One table entry: an atomic of its own.
pub trait Entry: Send + Sync + 'static {
    /// Its value. What was written before the entry was set is seen by who reads it here.
    fn get(&self) -> u32;
    /// Sets it; `value` fits.
    fn set(&self, value: u32);
}

impl Entry for AtomicU8 {
    #[inline(always)]
    fn get(&self) -> u32 {
        u32::from(self.load(Ordering::Acquire))
    }
    fn set(&self, value: u32) {
        self.store(value as u8, Ordering::Release);
    }
}

impl Entry for AtomicU16 {
    #[inline(always)]
    fn get(&self) -> u32 {
        u32::from(self.load(Ordering::Acquire))
    }
    fn set(&self, value: u32) {
        self.store(value as u16, Ordering::Release);
    }
}

impl Entry for AtomicU32 {
    #[inline(always)]
    fn get(&self) -> u32 {
        self.load(Ordering::Acquire)
    }
    fn set(&self, value: u32) {
        self.store(value, Ordering::Release);
    }
}

/// An aligned 32-bit word of table entries. Gathers load whole words: an aligned word never crosses a cache line, and
/// no load reaches beyond the table.
///
/// # Safety
///
/// The type has the size and alignment of `u32` and is an array of `Word::ENTRIES` entries without padding, for which
/// zero bytes are valid.
pub unsafe trait Word: Send + Sync + Sized + 'static {
    /// What it is made of.
    type Entry: Entry;
    /// Entries in a word: 1, 2 or 4.
    const ENTRIES: usize;
    /// The highest value of an entry.
    const HIGHEST: u32 = u32::MAX >> (32 - 32 / Self::ENTRIES);
    /// The highest bit of an entry.
    const TOP_BIT: u32 = 1 << (32 / Self::ENTRIES - 1);
}

/// Four 8-bit entries.
#[repr(C, align(4))]
pub struct Word8([AtomicU8; 4]);

/// Two 16-bit entries.
#[repr(C, align(4))]
pub struct Word16([AtomicU16; 2]);

/// One 32-bit entry.
#[repr(transparent)]
pub struct Word32(AtomicU32);

// SAFETY: four 8-bit atomics without padding, aligned to four bytes by its `repr`.
unsafe impl Word for Word8 {
    type Entry = AtomicU8;
    const ENTRIES: usize = 4;
}

// SAFETY: two 16-bit atomics without padding, aligned to four bytes by its `repr`.
unsafe impl Word for Word16 {
    type Entry = AtomicU16;
    const ENTRIES: usize = 2;
}

// SAFETY: one 32-bit atomic.
unsafe impl Word for Word32 {
    type Entry = AtomicU32;
    const ENTRIES: usize = 1;
}

/// The entries that these words consist of.
#[inline(always)]
pub(super) fn entries<W: Word>(words: &[W]) -> &[W::Entry] {
    // SAFETY: by the contract of `Word` the same bytes are this many entries in a row, and what is aligned for a word
    // is aligned for its entries.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), words.len() * W::ENTRIES) }
}

/// A table for gathers: never empty, so that there is a last word to clamp to.
pub struct Words<'t, W> {
    pub(super) words: &'t [W],
    /// The index of the last word.
    pub(super) last: u32,
}

impl<W> Clone for Words<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Words<'_, W> {}

impl<'t, W: Word> Words<'t, W> {
    /// `None` for an empty table. Words beyond the 2^31st are out of reach, because vector code counts in `i32`.
    pub fn new(words: &'t [W]) -> Option<Self> {
        let last = words.len().checked_sub(1)?.min(i32::MAX as usize) as u32;
        Some(Words { words, last })
    }
}

/// The mask of the ring in a table of so many entries, one at least.
pub(super) fn ring_mask(entries: usize) -> u32 {
    ((1u64 << entries.ilog2().min(31)) - 1) as u32
}

/// A table of 2^n entries whose indices wrap: the bits of an index beyond the n lowest do not count.
pub struct Ring<'t, W: Word> {
    entries: &'t [W::Entry],
    /// One less than the power of two; below the number of entries.
    mask: u32,
}

impl<W: Word> Clone for Ring<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W: Word> Copy for Ring<'_, W> {}

impl<'t, W: Word> Ring<'t, W> {
    /// The first entries of this table: as many as the highest power of two among their number, which is not zero.
    #[inline(always)]
    pub(super) fn new(entries: &'t [W::Entry], mask: u32) -> Self {
        debug_assert_eq!(mask, ring_mask(entries.len()));
        Ring { entries, mask }
    }

    /// The entry that `index` wraps to.
    #[inline(always)]
    pub fn get(self, index: u32) -> u32 {
        // SAFETY: the mask is below the number of entries.
        unsafe { self.entries.get_unchecked((index & self.mask) as usize) }.get()
    }

    /// Asks for the entry that `index` wraps to.
    #[inline(always)]
    pub fn prefetch(self, index: u32) {
        super::prefetch(self.entries, (index & self.mask) as usize);
    }
}

/// A table that the first `BITS` bits of an address index.
pub struct Top<'t, const BITS: u32> {
    /// `2^BITS` at least.
    pub(super) entries: &'t [AtomicU32],
}

impl<const BITS: u32> Clone for Top<'_, BITS> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<const BITS: u32> Copy for Top<'_, BITS> {}

impl<'t, const BITS: u32> Top<'t, BITS> {
    /// `None` if the table is too short.
    #[inline(always)]
    pub fn new(words: &'t [Word32]) -> Option<Self> {
        const { assert!(BITS > 0 && BITS < 32) };
        let entries = entries(words);
        (entries.len() >= 1 << BITS).then_some(Top { entries })
    }

    #[inline(always)]
    pub(super) fn place(addr: u32) -> usize {
        (addr >> (32 - BITS)) as usize
    }

    /// The entry of an address.
    #[inline(always)]
    pub fn get(self, addr: u32) -> u32 {
        // SAFETY: so many bits count to less than `2^BITS`.
        unsafe { self.entries.get_unchecked(Self::place(addr)) }.get()
    }
}

/// Ring entries found by vectors, `N` vectors of them, to be read by plain loads: as long as the entries are near, these
/// are quicker than a gather.
///
/// A vector that has just been stored makes single loads from it wait, so let some turns of the loop lie between
/// [`Self::set`] and [`Self::read`].
pub struct Places<'t, W: Word, const N: usize> {
    ring: Ring<'t, W>,
    /// None beyond the mask of the ring.
    places: [Row; N],
}

/// A vector of numbers, each in one cache line: one that lies across two is stored in two steps.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Row([u32; LANES]);

/// One vector of [`Places`].
pub struct Found<'p, W: Word> {
    pub(super) entries: &'p [W::Entry],
    /// Numbers of entries, none beyond the last.
    pub(super) places: &'p [u32; LANES],
}

impl<W: Word> Found<'_, W> {
    /// The entries, in the order of the lanes.
    #[inline(always)]
    pub(super) fn each(&self) -> impl Iterator<Item = u32> {
        // SAFETY: see `places`.
        self.places.iter().map(|place| unsafe { self.entries.get_unchecked(*place as usize) }.get())
    }
}

impl<'t, W: Word, const N: usize> Places<'t, W, N> {
    /// Places in this ring, the first entry for now.
    #[inline(always)]
    pub fn new(ring: Ring<'t, W>) -> Self {
        Places { ring, places: [Row([0; LANES]); N] }
    }

    /// Makes vector `number` the places that these indices wrap to.
    #[inline(always)]
    pub fn set<L: Lanes>(&mut self, lanes: L, number: usize, indices: L::U32) {
        lanes.store(lanes.and(indices, lanes.splat(self.ring.mask)), &mut self.places[number].0);
    }

    /// The entries of vector `number` as next hops. Says whether any is the highest that an entry can hold.
    #[inline(always)]
    pub fn read<L: Lanes>(&self, lanes: L, number: usize, out: &mut [NextHop; LANES]) -> bool {
        // `new` and `set` let no place in that is beyond the mask, which is below the number of entries; nobody outside
        // this module can say what lanes compute.
        lanes.read_next_hops::<W>(Found { entries: self.ring.entries, places: &self.places[number].0 }, out)
    }
}
