//! Table entries as atomics, packed into 32-bit words that vector code may read while one writer stores to them.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering};

/// One table entry: an atomic of its own.
pub trait AtomicEntry: Send + Sync + 'static {
    /// Loads the entry with acquire order: the reader also sees everything that the writer stored before it set the
    /// entry.
    fn get(&self) -> u32;
    /// Stores `value`, which fits, with release order.
    fn set(&self, value: u32);
}

impl AtomicEntry for AtomicU8 {
    #[inline(always)]
    fn get(&self) -> u32 {
        u32::from(self.load(Ordering::Acquire))
    }
    fn set(&self, value: u32) {
        self.store(value as u8, Ordering::Release);
    }
}

impl AtomicEntry for AtomicU16 {
    #[inline(always)]
    fn get(&self) -> u32 {
        u32::from(self.load(Ordering::Acquire))
    }
    fn set(&self, value: u32) {
        self.store(value as u16, Ordering::Release);
    }
}

impl AtomicEntry for AtomicU32 {
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
    /// The atomic that each entry is.
    type Entry: AtomicEntry;
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
pub(crate) fn entries<W: Word>(words: &[W]) -> &[W::Entry] {
    // SAFETY: by the contract of `Word` the same bytes are this many entries in a row, and what is aligned for a word
    // is aligned for its entries.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), words.len() * W::ENTRIES) }
}

/// A table for gathers: never empty, so that an index beyond the end can be clamped to the last word.
pub struct Words<'t, W> {
    words: &'t [W],
    last: u32,
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

    /// All words of the table.
    #[inline(always)]
    pub(crate) fn as_slice(self) -> &'t [W] {
        self.words
    }

    /// The index of the last word that gathers may read: below 2^31, and inside the table.
    #[inline(always)]
    pub(crate) fn last(self) -> u32 {
        self.last
    }
}
