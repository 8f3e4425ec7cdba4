//! A table of a power of two entries, indexed without a bounds check.

use super::prefetch;
use super::word::{AtomicEntry as _, Word};

/// The index mask of the ring in a table of so many entries, one at least.
pub(super) fn ring_mask(entries: usize) -> u32 {
    ((1u64 << entries.ilog2().min(31)) - 1) as u32
}

/// A table of 2^n entries whose indices wrap: only the n lowest bits of an index count.
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

    /// All entries of the table, more than [`Self::mask`].
    #[inline(always)]
    pub(crate) fn entries(self) -> &'t [W::Entry] {
        self.entries
    }

    /// The bits of an index that count; every masked index is that of an entry.
    #[inline(always)]
    pub(crate) fn mask(self) -> u32 {
        self.mask
    }

    /// The entry that `index` wraps to.
    #[inline(always)]
    pub fn get(self, index: u32) -> u32 {
        // SAFETY: the mask is below the number of entries.
        unsafe { self.entries.get_unchecked((index & self.mask) as usize) }.get()
    }

    /// Prefetches the entry that `index` wraps to.
    #[inline(always)]
    pub fn prefetch(self, index: u32) {
        prefetch(self.entries, (index & self.mask) as usize);
    }
}
