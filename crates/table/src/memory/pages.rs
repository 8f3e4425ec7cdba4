//! Memory for large tables: zeroed, on huge pages where the system gives them.
//!
//! With a table of 32 MiB on 4 KiB pages most lookups miss the TLB on top of the cache. Linux gives 2 MiB pages to a
//! process that asks for them (`madvise(2)`, MADV_HUGEPAGE). Pages that were never written cost no memory, so a table
//! may be mapped larger than it is yet.

use std::io;
use std::marker::PhantomData;

use memmap2::{MmapMut, MmapRaw};

use super::ring::{Ring, ring_mask};
use super::tracking::{BLOCK, TrackedMemory, WriteTracker};
use super::word::{AtomicEntry as _, Word, Words, entries};

/// A table of words, all zero when made.
pub struct Pages<W> {
    mapping: MmapRaw,
    words: usize,
    /// The index mask of [`Self::ring`], kept because every lookup needs it.
    ring_mask: u32,
    tracker: WriteTracker,
    content: PhantomData<[W]>,
}

impl<W: Word> Pages<W> {
    /// A table of so many entries, rounded up to whole words, and of at least one word. Fails if `mmap(2)` does.
    pub fn zeroed(entries: usize) -> io::Result<Self> {
        let words = entries.div_ceil(W::ENTRIES).max(1);
        let mapping = MmapMut::map_anon(whole_pages(words * size_of::<W>()))?;
        advise_huge(&mapping);
        let ring_mask = ring_mask(words * W::ENTRIES);
        Ok(Pages {
            mapping: mapping.into(),
            words,
            ring_mask,
            tracker: WriteTracker::new(words),
            content: PhantomData,
        })
    }

    /// All words of the table.
    #[inline(always)]
    pub fn as_slice(&self) -> &[W] {
        let first = self.mapping.as_mut_ptr().cast::<W>().cast_const();
        // SAFETY: the mapping is private, page-aligned, at least `words` words long and zeroed, which are valid words,
        // and lives as long as `self`. Nothing reaches it except through these shared slices of atomics.
        unsafe { std::slice::from_raw_parts(first, self.words) }
    }

    /// The table as gathers read it.
    #[inline(always)]
    #[allow(clippy::expect_used)]
    pub fn words(&self) -> Words<'_, W> {
        Words::new(self.as_slice()).expect("a table has at least one word")
    }

    /// The entries as a ring: as many as the highest power of two among their number.
    #[inline(always)]
    pub fn ring(&self) -> Ring<'_, W> {
        Ring::new(self.entries(), self.ring_mask)
    }

    /// All entries, rounded up to whole words.
    #[inline(always)]
    pub fn entries(&self) -> &[W::Entry] {
        entries(self.as_slice())
    }

    /// Loads entry `index`; panics beyond the end.
    #[inline(always)]
    pub fn get(&self, index: usize) -> u32 {
        self.entries()[index].get()
    }

    /// Sets entry `index`; panics beyond the end.
    pub fn set(&self, index: usize, value: u32) {
        self.entries()[index].set(value);
        self.tracker.note(index / W::ENTRIES);
    }

    /// Records a store to a word that did not go through [`Self::set`].
    pub(crate) fn note_written(&self, word: usize) {
        self.tracker.note(word);
    }
}

impl<W: Word> TrackedMemory for Pages<W> {
    fn tracker(&self) -> &WriteTracker {
        &self.tracker
    }

    fn read(&self, first: usize, words: &mut [u32; BLOCK]) {
        let held = self.words.min(first + BLOCK).saturating_sub(first);
        words[held..].fill(0);
        for (at, word) in (first..).zip(&mut words[..held]) {
            *word = self.word(at);
        }
    }
}

impl<W: Word> Pages<W> {
    /// The bytes of a word as they lie in memory, as a number.
    fn word(&self, word: usize) -> u32 {
        let (mut bytes, width) = ([0; 4], 4 / W::ENTRIES);
        let entries = &self.entries()[word * W::ENTRIES..][..W::ENTRIES];
        for (bytes, entry) in bytes.chunks_exact_mut(width).zip(entries) {
            match (entry.get(), bytes) {
                (value, [byte]) => *byte = value as u8,
                (value, bytes @ [_, _]) => bytes.copy_from_slice(&(value as u16).to_ne_bytes()),
                (value, bytes) => bytes.copy_from_slice(&value.to_ne_bytes()),
            }
        }
        u32::from_ne_bytes(bytes)
    }
}

/// The size of a huge page, where the system has them.
const HUGE_PAGE: usize = 2 << 20;

/// Linux (since 6.13) aligns a mapping to a huge page only if its size is a multiple of one, so a size of half a page
/// and more is rounded up.
fn whole_pages(bytes: usize) -> usize {
    if bytes < HUGE_PAGE / 2 { bytes } else { bytes.next_multiple_of(HUGE_PAGE) }
}

/// Asks for huge pages. If the system refuses, the table works on small pages.
#[cfg(target_os = "linux")]
fn advise_huge(mapping: &MmapMut) {
    let _ = mapping.advise(memmap2::Advice::HugePage);
}

#[cfg(not(target_os = "linux"))]
fn advise_huge(_mapping: &MmapMut) {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Word16, Word32};

    #[test]
    fn tables_have_at_least_one_word() {
        assert_eq!(Pages::<Word16>::zeroed(0).unwrap().as_slice().len(), 1);
        assert_eq!(Pages::<Word16>::zeroed(3).unwrap().as_slice().len(), 2);
        assert!(Words::<Word32>::new(&[]).is_none());
    }
}
