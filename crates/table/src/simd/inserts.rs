//! Vectors assembled from plain loads, one for each lane.
//!
//! A gather is microcode on the processors measured: it takes a cycle a lane, and nothing else is decoded meanwhile. A
//! load with an insertion is one instruction that executes beside other work, and many more of them can be in flight at
//! a time.
//!
//! The writer may store to the tables meanwhile. The gather of `avx512` explains why that makes these loads assembly:
//! each is one aligned load of one atomic entry.

use std::arch::asm;
use std::arch::x86_64::*;

use crate::memory::{Top, Word};
use crate::nexthop::NextHop;

use super::lanes::{Found, LANES};

/// Loads the 32-bit entry `index` into the lowest lane, and zeros above it.
///
/// # Safety
///
/// A live atomic entry is there.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn load_32(base: *const u32, index: usize) -> __m128i {
    let lanes;
    // SAFETY: see the contract; the instruction reads that entry only.
    unsafe {
        asm!(
            "vmovd {lanes}, dword ptr [{base} + {index} * 4]",
            lanes = out(xmm_reg) lanes,
            base = in(reg) base,
            index = in(reg) index,
            options(nostack, preserves_flags, readonly),
        );
    }
    lanes
}

/// Makes lane `N` the 32-bit entry `index`.
///
/// # Safety
///
/// A live atomic entry is there.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn insert_32<const N: u8>(mut lanes: __m128i, base: *const u32, index: usize) -> __m128i {
    // SAFETY: see the contract; the instruction reads that entry only.
    unsafe {
        asm!(
            "vpinsrd {lanes}, {lanes}, dword ptr [{base} + {index} * 4], {n}",
            lanes = inout(xmm_reg) lanes,
            base = in(reg) base,
            index = in(reg) index,
            n = const N,
            options(nostack, preserves_flags, readonly),
        );
    }
    lanes
}

/// [`insert_32`] for 16-bit entries.
///
/// # Safety
///
/// A live atomic entry is there.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn insert_16<const N: u8>(mut lanes: __m128i, base: *const u16, index: usize) -> __m128i {
    // SAFETY: see the contract; the instruction reads that entry only.
    unsafe {
        asm!(
            "vpinsrw {lanes}, {lanes}, word ptr [{base} + {index} * 2], {n}",
            lanes = inout(xmm_reg) lanes,
            base = in(reg) base,
            index = in(reg) index,
            n = const N,
            options(nostack, preserves_flags, readonly),
        );
    }
    lanes
}

/// [`insert_32`] for 8-bit entries.
///
/// # Safety
///
/// A live atomic entry is there.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn insert_8<const N: u8>(mut lanes: __m128i, base: *const u8, index: usize) -> __m128i {
    // SAFETY: see the contract; the instruction reads that entry only.
    unsafe {
        asm!(
            "vpinsrb {lanes}, {lanes}, byte ptr [{base} + {index}], {n}",
            lanes = inout(xmm_reg) lanes,
            base = in(reg) base,
            index = in(reg) index,
            n = const N,
            options(nostack, preserves_flags, readonly),
        );
    }
    lanes
}

/// Loads the entries of four addresses.
#[target_feature(enable = "avx2")]
#[inline]
fn quarter<const BITS: u32>(top: Top<'_, BITS>, addrs: &[u32]) -> __m128i {
    let base = top.entries().as_ptr().cast();
    let [a, b, c, d] = [addrs[0], addrs[1], addrs[2], addrs[3]].map(Top::<BITS>::place);
    // SAFETY: a place is below the number of entries of a `Top`.
    unsafe {
        let lanes = insert_32::<1>(load_32(base, a), base, b);
        insert_32::<3>(insert_32::<2>(lanes, base, c), base, d)
    }
}

/// Loads the entries of sixteen addresses.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn read_top<const BITS: u32>(top: Top<'_, BITS>, addrs: &[u32; LANES]) -> [__m256i; 2] {
    let (low, high) = addrs.split_at(LANES / 2);
    let low = _mm256_set_m128i(quarter(top, &low[4..]), quarter(top, &low[..4]));
    let high = _mm256_set_m128i(quarter(top, &high[4..]), quarter(top, &high[..4]));
    [low, high]
}

/// Inserts `found`'s entries into the lanes whose numbers are given, of a vector that begins at place `$first`.
macro_rules! insert_all {
    ($insert:ident, $found:ident, $first:literal, $($n:literal)*) => {{
        let base = $found.entries.as_ptr().cast();
        let mut lanes = _mm_setzero_si128();
        // SAFETY: no place is beyond the last entry.
        unsafe { $(lanes = $insert::<$n>(lanes, base, $found.places[$first + $n] as usize);)* }
        lanes
    }};
}

/// Implements [`Lanes::read_next_hops`](super::Lanes::read_next_hops).
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn read_next_hops<W: Word>(found: Found<'_, W>, out: &mut [NextHop; LANES]) -> bool {
    const { assert!(W::ENTRIES == 2 || W::ENTRIES == 4) };
    let (next_hops, highest) = if W::ENTRIES == 4 {
        let bytes = insert_all!(insert_8, found, 0, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
        let highest = _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(-1)));
        (_mm256_cvtepu8_epi16(bytes), highest)
    } else {
        let low = insert_all!(insert_16, found, 0, 0 1 2 3 4 5 6 7);
        let high = insert_all!(insert_16, found, 8, 0 1 2 3 4 5 6 7);
        let both = _mm256_set_m128i(high, low);
        (both, _mm256_movemask_epi8(_mm256_cmpeq_epi16(both, _mm256_set1_epi16(-1))))
    };
    // SAFETY: an unaligned store of 32 bytes, and a `NextHop` is a transparent `u16`.
    unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), next_hops) };
    highest != 0
}
