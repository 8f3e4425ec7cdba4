//! The memory of a BPF array map as words, which this process and programs in the kernel access.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, AtomicU64};

use memmap2::{MmapOptions, MmapRaw};

/// A mapping of the values of an array map (`BPF_F_MMAPABLE`).
#[derive(Debug)]
pub struct SharedWords(MmapRaw);

impl SharedWords {
    /// Maps this number of bytes; the kernel refuses more than the map has. The mapping keeps the map alive after `map` is
    /// closed.
    pub fn new(map: BorrowedFd<'_>, bytes: usize) -> io::Result<SharedWords> {
        Ok(SharedWords(MmapOptions::new().len(bytes).map_raw(map.as_raw_fd())?))
    }

    /// All words of the mapping.
    pub fn words(&self) -> &[AtomicU32] {
        let first = self.0.as_mut_ptr().cast::<AtomicU32>().cast_const();
        // SAFETY: the mapping is page-aligned, has this length, is readable and writable, and lives as long as `self`. All
        // bits are valid words. Other processes and the kernel access this memory by loads and stores of words or parts
        // of words, which atomics allow; no plain reference to it is ever made.
        unsafe { std::slice::from_raw_parts(first, self.0.len() / size_of::<AtomicU32>()) }
    }

    /// The same memory as words of 64 bits.
    pub fn double_words(&self) -> &[AtomicU64] {
        let first = self.0.as_mut_ptr().cast::<AtomicU64>().cast_const();
        // SAFETY: as for `words`. The kernel's programs access each of these words as one, or its halves by plain loads.
        unsafe { std::slice::from_raw_parts(first, self.0.len() / size_of::<AtomicU64>()) }
    }
}
