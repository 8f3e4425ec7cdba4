//! A table that the first bits of an address index, without a bounds check.

use std::sync::atomic::AtomicU32;

use super::word::{AtomicEntry as _, Word32, entries};

/// A table that the first `BITS` bits of an address index.
pub struct Top<'t, const BITS: u32> {
    /// At least `2^BITS`.
    entries: &'t [AtomicU32],
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

    /// All entries of the table: [`Self::place`] is inside them.
    #[cfg_attr(not(all(target_arch = "x86_64", not(fullview_portable))), allow(dead_code))] // plain code needs none
    #[inline(always)]
    pub(crate) fn entries(self) -> &'t [AtomicU32] {
        self.entries
    }

    /// The index of an address's entry: below `2^BITS`.
    #[inline(always)]
    pub(crate) fn place(addr: u32) -> usize {
        (addr >> (32 - BITS)) as usize
    }

    /// The entry of an address.
    #[inline(always)]
    pub fn get(self, addr: u32) -> u32 {
        // SAFETY: a place is below `2^BITS`.
        unsafe { self.entries.get_unchecked(Self::place(addr)) }.get()
    }
}
