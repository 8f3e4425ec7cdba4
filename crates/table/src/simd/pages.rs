//! Memory for large tables: zeroed, on huge pages where the system gives them.
//!
//! A table of 32 MiB on 4 KiB pages costs most lookups a TLB miss on top of the cache miss. Linux gives 2 MiB pages to
//! who asks (`madvise(2)`, MADV_HUGEPAGE). Pages that nobody writes to cost no memory, so a table may be mapped larger
//! than it is yet.

use std::io;
use std::marker::PhantomData;

use memmap2::{MmapMut, MmapRaw};

use super::word::entries;
use super::{Entry as _, Word, Words};

/// A table of words, all zero when made.
pub struct Pages<W> {
    mapping: MmapRaw,
    words: usize,
    content: PhantomData<[W]>,
}

impl<W: Word> Pages<W> {
    /// A table of so many entries, rounded up to whole words, and of one word at least. Fails as `mmap(2)` does.
    pub fn zeroed(entries: usize) -> io::Result<Self> {
        let words = entries.div_ceil(W::ENTRIES).max(1);
        let mapping = MmapMut::map_anon(mapped(words * size_of::<W>()))?;
        advise_huge(&mapping);
        Ok(Pages { mapping: mapping.into(), words, content: PhantomData })
    }

    /// The words.
    #[inline(always)]
    pub fn as_slice(&self) -> &[W] {
        let first = self.mapping.as_mut_ptr().cast::<W>().cast_const();
        // SAFETY: the mapping is private, page-aligned, `words` words long and zeroed, which are valid words, and lives
        // as long as `self`. Nothing reaches it except through these shared slices of atomics.
        unsafe { std::slice::from_raw_parts(first, self.words) }
    }

    /// The words, for gathers.
    #[inline(always)]
    #[allow(clippy::expect_used)]
    pub fn words(&self) -> Words<'_, W> {
        Words::new(self.as_slice()).expect("a table has one word at least")
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
    }
}

/// A size in whole huge pages, if it fills one: Linux (since 6.13) begins only such mappings at a huge page, and what
/// lies before the first huge page of another one stays on small pages.
fn mapped(bytes: usize) -> usize {
    const HUGE: usize = 2 << 20;
    if bytes < HUGE { bytes } else { bytes.next_multiple_of(HUGE) }
}

/// A hint: refused, the table works on small pages.
#[cfg(target_os = "linux")]
fn advise_huge(mapping: &MmapMut) {
    let _ = mapping.advise(memmap2::Advice::HugePage);
}

#[cfg(not(target_os = "linux"))]
fn advise_huge(_mapping: &MmapMut) {}
