//! A slice on huge pages: one that readers and writers enter anywhere misses the TLB less.

use std::alloc::{Layout, handle_alloc_error};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use memmap2::{MmapMut, MmapRaw};

use super::pages::{advise_huge, whole_pages};

/// Values on huge pages, where the system gives them.
pub struct HugeSlice<T> {
    mapping: MmapRaw,
    len: usize,
    content: PhantomData<[T]>,
}

/// Mappings begin at a page.
const PAGE: usize = 4096;

impl<T: Copy> HugeSlice<T> {
    /// So many copies of a value. Aborts as a `Vec` does if there is no memory.
    pub fn filled(len: usize, value: T) -> Self {
        const { assert!(align_of::<T>() <= PAGE) };
        let bytes = whole_pages(size_of::<T>().saturating_mul(len)).max(1);
        let Ok(mapping) = MmapMut::map_anon(bytes) else { handle_alloc_error(Layout::new::<T>()) };
        advise_huge(&mapping);
        let slice: Self = HugeSlice { mapping: mapping.into(), len, content: PhantomData };
        let first: *mut T = slice.first();
        for at in 0..len {
            // SAFETY: the mapping is writable, aligned for `T`, long enough for `len` values, and nothing else has it yet.
            unsafe { first.add(at).write(value) };
        }
        slice
    }
}

impl<T> HugeSlice<T> {
    fn first(&self) -> *mut T {
        self.mapping.as_mut_ptr().cast()
    }
}

impl<T> Deref for HugeSlice<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `filled` has written `len` values there, which live as long as `self`, and this borrow of it lets none
        // of them be written.
        unsafe { std::slice::from_raw_parts(self.first(), self.len) }
    }
}

impl<T> DerefMut for HugeSlice<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; this borrow of `self` is the only one.
        unsafe { std::slice::from_raw_parts_mut(self.first(), self.len) }
    }
}

impl<T> fmt::Debug for HugeSlice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HugeSlice({} values)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_copies_until_they_are_written() {
        let mut slice = HugeSlice::filled(40_000, [7_u64; 8]);
        slice[39_999] = [9; 8];
        assert_eq!(slice.len(), 40_000);
        assert!(slice[..39_999].iter().all(|value| *value == [7; 8]));
        assert_eq!(slice[39_999], [9; 8]);
        assert_eq!(HugeSlice::filled(0, 0_u8).iter().count(), 0);
    }
}
