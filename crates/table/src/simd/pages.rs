//! Memory for large tables: zeroed, on huge pages where the system gives them.
//!
//! A table of 32 MiB on 4 KiB pages costs most lookups a TLB miss on top of the cache miss. Linux gives 2 MiB pages to
//! who asks (`madvise(2)`, MADV_HUGEPAGE). Pages that nobody writes to cost no memory, so a table may be mapped larger
//! than it is yet.

use std::io;
use std::marker::PhantomData;

use memmap2::{MmapMut, MmapRaw};

use super::word::{entries, ring_mask};
use super::{Entry as _, Ring, Word, Words};
use crate::fib::image::{BLOCK, Memory, Written};

/// A table of words, all zero when made.
pub struct Pages<W> {
    mapping: MmapRaw,
    words: usize,
    /// See [`Ring`]; kept because every lookup needs it.
    ring_mask: u32,
    written: Written,
    content: PhantomData<[W]>,
}

impl<W: Word> Pages<W> {
    /// A table of so many entries, rounded up to whole words, and of one word at least. Fails as `mmap(2)` does.
    pub fn zeroed(entries: usize) -> io::Result<Self> {
        let words = entries.div_ceil(W::ENTRIES).max(1);
        let mapping = MmapMut::map_anon(whole_pages(words * size_of::<W>()))?;
        advise_huge(&mapping);
        let ring_mask = ring_mask(words * W::ENTRIES);
        Ok(Pages {
            mapping: mapping.into(),
            words,
            ring_mask,
            written: Written::new(words),
            content: PhantomData,
        })
    }

    /// The words.
    #[inline(always)]
    pub fn as_slice(&self) -> &[W] {
        let first = self.mapping.as_mut_ptr().cast::<W>().cast_const();
        // SAFETY: the mapping is private, page-aligned, at least `words` words long and zeroed, which are valid words, and
        // lives as long as `self`. Nothing reaches it except through these shared slices of atomics.
        unsafe { std::slice::from_raw_parts(first, self.words) }
    }

    /// The words, for gathers.
    #[inline(always)]
    #[allow(clippy::expect_used)]
    pub fn words(&self) -> Words<'_, W> {
        Words::new(self.as_slice()).expect("a table has one word at least")
    }

    /// The entries as a ring: as many as the highest power of two among their number.
    #[inline(always)]
    pub fn ring(&self) -> Ring<'_, W> {
        Ring::new(self.entries(), self.ring_mask)
    }

    /// The entries, rounded up to whole words.
    #[inline(always)]
    pub fn entries(&self) -> &[W::Entry] {
        entries(self.as_slice())
    }

    /// Entry `index`; panics beyond the end.
    #[inline(always)]
    pub fn get(&self, index: usize) -> u32 {
        self.entries()[index].get()
    }

    /// Sets entry `index`; panics beyond the end.
    pub fn set(&self, index: usize, value: u32) {
        self.entries()[index].set(value);
        self.written.note(index / W::ENTRIES);
    }

    /// Entries of this word were stored by other ways than [`Self::set`].
    pub(super) fn note_written(&self, word: usize) {
        self.written.note(word);
    }
}

impl<W: Word> Memory for Pages<W> {
    fn written(&self) -> &Written {
        &self.written
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
    /// The entries of a word as they lie in memory.
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

/// The size of a huge page, where there are some.
const HUGE_PAGE: usize = 2 << 20;

/// Linux (since 6.13) begins a mapping at a huge page only if it fills whole ones: a size that nearly does is rounded up.
fn whole_pages(bytes: usize) -> usize {
    if bytes < HUGE_PAGE / 2 { bytes } else { bytes.next_multiple_of(HUGE_PAGE) }
}

/// A hint: refused, the table works on small pages.
#[cfg(target_os = "linux")]
fn advise_huge(mapping: &MmapMut) {
    let _ = mapping.advise(memmap2::Advice::HugePage);
}

#[cfg(not(target_os = "linux"))]
fn advise_huge(_mapping: &MmapMut) {}
