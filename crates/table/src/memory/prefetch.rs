//! Prefetches: they ask the processor to bring memory nearer, and never fault.

/// Bytes of a cache line.
const LINE: usize = 64;

/// Prefetches the cache line of an address, which need not be mapped.
#[inline(always)]
pub(crate) fn prefetch_unchecked(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing the program could see, and does nothing where there is no memory.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(fullview_portable))))]
    let _ = address;
}

/// Prefetches the cache line that lies `bytes` after the start of `values`, inside them or after their end.
#[inline(always)]
pub(crate) fn prefetch_beyond<T>(values: &[T], bytes: usize) {
    prefetch_unchecked(values.as_ptr().cast::<u8>().wrapping_add(bytes));
}

/// Prefetches as many bytes as `block` has, from `bytes` after its start on; the row that the block is part of may end
/// before that.
#[inline(always)]
pub(crate) fn prefetch_from<T>(block: &T, bytes: usize) {
    let first = std::ptr::from_ref(block).cast::<u8>().wrapping_add(bytes);
    for line in 0..size_of::<T>().div_ceil(LINE) {
        prefetch_unchecked(first.wrapping_add(line * LINE));
    }
}

/// Prefetches element `index` of a table; an index beyond the end prefetches nothing.
#[inline(always)]
pub(crate) fn prefetch<T>(table: &[T], index: usize) {
    #[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        if let Some(place) = table.get(index) {
            // SAFETY: a prefetch reads nothing the program could see, and the address is that of a live reference.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast()) };
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(fullview_portable))))]
    let _ = (table, index);
}

/// Prefetches the cache lines of a value.
#[inline(always)]
pub fn prefetch_value<T>(value: &T) {
    prefetch_from(value, 0);
}
