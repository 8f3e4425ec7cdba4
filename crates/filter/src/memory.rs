//! Memory for large arrays, on huge pages where the system gives them.
//!
//! The entries of thousands of flows lie on as many 4 KiB pages, more than the first level of a TLB has room for. Linux gives
//! 2 MiB pages to a process that asks for them (`madvise(2)`, MADV_HUGEPAGE).
#![allow(unsafe_code)]

use std::alloc::{Layout, handle_alloc_error};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::slice;

use memmap2::MmapMut;

/// An array that keeps its length.
pub(crate) struct LargeArray<T> {
    mapping: MmapMut,
    len: usize,
    elements: PhantomData<T>,
}

impl<T: Copy> LargeArray<T> {
    /// So many times this value. Without memory for them the program ends, as it does when a vector finds none.
    pub fn new(value: T, len: usize) -> Self {
        const { assert!(align_of::<T>() <= SMALLEST_PAGE) };
        let mut mapping = map::<T>(len);
        let places = mapping.as_mut_ptr().cast::<MaybeUninit<T>>();
        // SAFETY: the mapping has room for `len` elements, begins with a page, which is aligned for them, and is not shared.
        unsafe { slice::from_raw_parts_mut(places, len) }.fill(MaybeUninit::new(value));
        LargeArray { mapping, len, elements: PhantomData }
    }
}

impl<T> Deref for LargeArray<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `new` has written `len` elements to the mapping, which nothing reaches but through `self`.
        unsafe { slice::from_raw_parts(self.mapping.as_ptr().cast(), self.len) }
    }
}

impl<T> DerefMut for LargeArray<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above.
        unsafe { slice::from_raw_parts_mut(self.mapping.as_mut_ptr().cast(), self.len) }
    }
}

impl<T> std::fmt::Debug for LargeArray<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} elements", self.len)
    }
}

const SMALLEST_PAGE: usize = 4096;
const HUGE_PAGE: usize = 2 << 20;

fn map<T>(len: usize) -> MmapMut {
    let bytes = len.checked_mul(size_of::<T>()).and_then(whole_pages);
    let mapping = bytes.and_then(|bytes| MmapMut::map_anon(bytes).ok());
    let mapping = mapping.unwrap_or_else(|| handle_alloc_error(Layout::new::<T>()));
    advise_huge(&mapping);
    mapping
}

/// Linux (since 6.13) aligns a mapping to a huge page only if its size is a multiple of one, so a size of half a page
/// and more is rounded up.
fn whole_pages(bytes: usize) -> Option<usize> {
    if bytes < HUGE_PAGE / 2 { Some(bytes.max(1)) } else { bytes.checked_next_multiple_of(HUGE_PAGE) }
}

/// Asks for huge pages. If the system refuses, the array works on small pages.
#[cfg(target_os = "linux")]
fn advise_huge(mapping: &MmapMut) {
    let _ = mapping.advise(memmap2::Advice::HugePage);
}

#[cfg(not(target_os = "linux"))]
fn advise_huge(_mapping: &MmapMut) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_elements_have_the_value_and_can_be_written() {
        for len in [0, 1, 100, HUGE_PAGE / 16 - 1, HUGE_PAGE / 16, HUGE_PAGE / 8 + 1] {
            let mut array = LargeArray::new([3_u64, 5], len);
            assert_eq!((array.len(), array.iter().all(|pair| *pair == [3, 5])), (len, true));
            if let Some(last) = array.last_mut() {
                *last = [7, 9];
                assert_eq!(array[len - 1], [7, 9]);
            }
        }
    }
}
