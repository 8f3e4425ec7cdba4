//! Table memory that vector code may read while one writer stores to it.

use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

#[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
use crate::nexthop::NextHop;

#[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
use super::LANES;

/// One table entry: an atomic of its own.
pub trait Entry: Send + Sync + 'static {
    /// Its value. What was written before the entry was set is seen by who reads it here.
    fn get(&self) -> u32;
    /// Sets it; `value` fits.
    fn set(&self, value: u32);
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

/// An aligned 32-bit word of table entries. Gathers load whole words: an aligned word never crosses a cache line, and no
/// load reaches beyond the table.
///
/// # Safety
///
/// The type has the size and alignment of `u32` and is an array of `Word::ENTRIES` entries without padding, for which
/// zero bytes are valid.
pub unsafe trait Word: Send + Sync + Sized + 'static {
    /// What it is made of.
    type Entry: Entry;
    /// Entries in a word: 1 or 2.
    const ENTRIES: usize;
    /// The highest bit of an entry.
    const TOP_BIT: u32 = 1 << (32 / Self::ENTRIES - 1);
}

/// Two 16-bit entries.
#[repr(C, align(4))]
pub struct Word16([AtomicU16; 2]);

/// One 32-bit entry.
#[repr(transparent)]
pub struct Word32(AtomicU32);

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
    // SAFETY: by the contract of `Word` the same bytes are this many entries in a row, and what is aligned for a word is
    // aligned for its entries.
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

/// A table of 2^n entries whose indices wrap: the bits of an index beyond the n lowest do not count.
pub struct Ring<'t, W: Word> {
    pub(super) entries: &'t [W::Entry],
    /// One less than the number of entries.
    pub(super) mask: u32,
}

impl<W: Word> Clone for Ring<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W: Word> Copy for Ring<'_, W> {}

impl<'t, W: Word> Ring<'t, W> {
    /// The largest ring that begins with the first of these words, of which there is one at least.
    #[inline(always)]
    pub(super) fn new(words: &'t [W]) -> Self {
        let entries = entries(words);
        let length = 1usize << entries.len().ilog2().min(31);
        Ring { entries: &entries[..length], mask: (length - 1) as u32 }
    }

    /// The entry that `index` wraps to.
    #[inline(always)]
    pub fn get(self, index: u32) -> u32 {
        // SAFETY: `new` made the slice one entry longer than the mask.
        unsafe { self.entries.get_unchecked((index & self.mask) as usize) }.get()
    }

    /// The entries at these indices.
    ///
    /// # Safety
    ///
    /// No index is beyond the mask.
    #[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
    #[inline(always)]
    pub(super) unsafe fn fetch(self, indices: &[u32; LANES], out: &mut [NextHop; LANES]) {
        for (index, out) in indices.iter().zip(out) {
            // SAFETY: the caller's.
            *out = NextHop(unsafe { self.entries.get_unchecked(*index as usize) }.get() as u16);
        }
    }
}
