//! AVX2: two registers hold the lanes.

use std::arch::asm;
use std::arch::x86_64::*;

use crate::memory::{Top, Word, Words};
use crate::nexthop::NextHop;

use super::inserts;
use super::lanes::{Found, Kernel, LANES, Lanes, sealed};
use super::line::SearchLine;

/// Proof that the processor has AVX2 and POPCNT; made by [`enter`] alone.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

/// Runs a kernel with AVX2.
///
/// # Safety
///
/// The processor has AVX2 and POPCNT.
#[target_feature(enable = "avx2,popcnt")]
pub(super) unsafe fn enter<K: Kernel>(kernel: K) {
    kernel.run(Avx2(()));
}

/// Loads the words at `base + 4 * index` of the lanes whose mask has its top bit set. The gather of
/// `avx512` explains why this is assembly.
///
/// # Safety
///
/// Each such address lies in a live table of [`Word`]s.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn gather(mask: __m256i, base: *const u32, index: __m256i, otherwise: __m256i) -> __m256i {
    let mut lanes = otherwise;
    // SAFETY: see the contract; the instruction reads those addresses only and clears its mask register.
    unsafe {
        asm!(
            "vpgatherdd {lanes}, dword ptr [{base} + {index} * 4], {mask}",
            lanes = inout(ymm_reg) lanes,
            mask = inout(ymm_reg) mask => _,
            base = in(reg) base,
            index = in(ymm_reg) index,
            options(nostack, preserves_flags, readonly),
        );
    }
    lanes
}

/// Counts the bits of each nibble with a table of sixteen bytes, then adds the four bytes of each lane.
#[target_feature(enable = "avx2")]
#[inline]
fn count_ones(a: __m256i) -> __m256i {
    let nibble = _mm256_set1_epi8(0x0f);
    let (low, high) = (_mm256_and_si256(a, nibble), _mm256_and_si256(_mm256_srli_epi32::<4>(a), nibble));
    let [few, many] = [0x0302_0201_0201_0100, 0x0403_0302_0302_0201];
    let ones = _mm256_set_epi64x(many, few, many, few);
    let bytes = _mm256_add_epi8(_mm256_shuffle_epi8(ones, low), _mm256_shuffle_epi8(ones, high));
    _mm256_madd_epi16(_mm256_maddubs_epi16(bytes, _mm256_set1_epi8(1)), _mm256_set1_epi16(1))
}

impl sealed::Sealed for Avx2 {}

/// Loads the 16 words at `line`. The writer may store to some of them meanwhile; the caller must ignore those.
///
/// # Safety
///
/// At `line` are 64 bytes of a live [`SearchLine`].
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn load_line(line: *const u32) -> [__m256i; 2] {
    let (low, high);
    // SAFETY: see the contract; the instructions read these bytes only.
    unsafe {
        asm!(
            "vmovdqu {low}, ymmword ptr [{line}]",
            "vmovdqu {high}, ymmword ptr [{line} + 32]",
            low = out(ymm_reg) low,
            high = out(ymm_reg) high,
            line = in(reg) line,
            options(nostack, preserves_flags, pure, readonly),
        );
    }
    [low, high]
}

// SAFETY of all blocks below: `self` proves that the processor has the instructions; operations that touch memory take
// whole arrays by reference.
impl Lanes for Avx2 {
    type U32 = [__m256i; 2];
    type Mask = [__m256i; 2];
    const IN_REGISTERS: bool = true;

    #[inline(always)]
    fn splat(self, value: u32) -> Self::U32 {
        // SAFETY: see above.
        [unsafe { _mm256_set1_epi32(value as i32) }; 2]
    }
    #[inline(always)]
    fn load(self, values: &[u32; LANES]) -> Self::U32 {
        let at = values.as_ptr();
        // SAFETY: see above; both loads are unaligned ones of 32 bytes.
        unsafe { [_mm256_loadu_si256(at.cast()), _mm256_loadu_si256(at.add(8).cast())] }
    }
    #[inline(always)]
    fn store(self, lanes: Self::U32, values: &mut [u32; LANES]) {
        let at = values.as_mut_ptr();
        // SAFETY: see above; both stores are unaligned ones of 32 bytes.
        unsafe {
            _mm256_storeu_si256(at.cast(), lanes[0]);
            _mm256_storeu_si256(at.add(8).cast(), lanes[1]);
        }
    }
    #[inline(always)]
    fn store_next_hops(self, values: Self::U32, out: &mut [NextHop; LANES]) {
        let [low, high] = self.and(values, self.splat(0xffff));
        // SAFETY: see above; the store is an unaligned one of 32 bytes, and a `NextHop` is a transparent `u16`. The
        // pack works within 128-bit halves, so the middle quarters have to be exchanged.
        unsafe {
            let packed = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi32(low, high));
            _mm256_storeu_si256(out.as_mut_ptr().cast(), packed);
        }
    }
    #[inline(always)]
    fn and(self, a: Self::U32, b: Self::U32) -> Self::U32 {
        // SAFETY: see above.
        unsafe { [_mm256_and_si256(a[0], b[0]), _mm256_and_si256(a[1], b[1])] }
    }
    #[inline(always)]
    fn or(self, a: Self::U32, b: Self::U32) -> Self::U32 {
        // SAFETY: see above.
        unsafe { [_mm256_or_si256(a[0], b[0]), _mm256_or_si256(a[1], b[1])] }
    }
    #[inline(always)]
    fn add(self, a: Self::U32, b: Self::U32) -> Self::U32 {
        // SAFETY: see above.
        unsafe { [_mm256_add_epi32(a[0], b[0]), _mm256_add_epi32(a[1], b[1])] }
    }
    #[inline(always)]
    fn sub(self, a: Self::U32, b: Self::U32) -> Self::U32 {
        // SAFETY: see above.
        unsafe { [_mm256_sub_epi32(a[0], b[0]), _mm256_sub_epi32(a[1], b[1])] }
    }
    #[inline(always)]
    fn min(self, a: Self::U32, b: Self::U32) -> Self::U32 {
        // SAFETY: see above.
        unsafe { [_mm256_min_epu32(a[0], b[0]), _mm256_min_epu32(a[1], b[1])] }
    }
    #[inline(always)]
    fn shr<const N: u32>(self, a: Self::U32) -> Self::U32 {
        self.shr_by(a, self.splat(N))
    }
    #[inline(always)]
    fn shl<const N: u32>(self, a: Self::U32) -> Self::U32 {
        self.shl_by(a, self.splat(N))
    }
    #[inline(always)]
    fn shr_by(self, a: Self::U32, bits: Self::U32) -> Self::U32 {
        // SAFETY: see above.
        unsafe { [_mm256_srlv_epi32(a[0], bits[0]), _mm256_srlv_epi32(a[1], bits[1])] }
    }
    #[inline(always)]
    fn shl_by(self, a: Self::U32, bits: Self::U32) -> Self::U32 {
        // SAFETY: see above.
        unsafe { [_mm256_sllv_epi32(a[0], bits[0]), _mm256_sllv_epi32(a[1], bits[1])] }
    }
    #[inline(always)]
    fn count_ones(self, [low, high]: Self::U32) -> Self::U32 {
        // SAFETY: see above.
        unsafe { [count_ones(low), count_ones(high)] }
    }
    /// AVX2 compares signed numbers only. `a` is at most `b` in the lanes where it equals the lesser of the two.
    #[inline(always)]
    fn at_most(self, a: Self::U32, b: Self::U32) -> Self::Mask {
        let least = self.min(a, b);
        // SAFETY: see above.
        unsafe { [_mm256_cmpeq_epi32(least[0], a[0]), _mm256_cmpeq_epi32(least[1], a[1])] }
    }
    #[inline(always)]
    fn test(self, a: Self::U32, b: Self::U32) -> Self::Mask {
        let [low, high] = self.and(a, b);
        let all = self.all();
        // SAFETY: see above.
        unsafe {
            let zero = _mm256_setzero_si256();
            let (low, high) = (_mm256_cmpeq_epi32(low, zero), _mm256_cmpeq_epi32(high, zero));
            [_mm256_xor_si256(low, all[0]), _mm256_xor_si256(high, all[1])]
        }
    }
    #[inline(always)]
    fn any(self, mask: Self::Mask) -> bool {
        // SAFETY: see above.
        unsafe { _mm256_movemask_epi8(_mm256_or_si256(mask[0], mask[1])) != 0 }
    }
    #[inline(always)]
    fn all(self) -> Self::Mask {
        self.splat(u32::MAX)
    }
    #[inline(always)]
    fn select(self, mask: Self::Mask, a: Self::U32, b: Self::U32) -> Self::U32 {
        // SAFETY: see above.
        unsafe { [_mm256_blendv_epi8(b[0], a[0], mask[0]), _mm256_blendv_epi8(b[1], a[1], mask[1])] }
    }
    #[inline(always)]
    fn gather_words<W: Word>(
        self,
        mask: Self::Mask,
        words: Words<'_, W>,
        index: Self::U32,
        otherwise: Self::U32,
    ) -> Self::U32 {
        let index = self.min(index, self.splat(words.last()));
        let base: *const u32 = words.as_slice().as_ptr().cast();
        // SAFETY: no index is beyond the last word, which is below 2^31, and a `Word` has the layout of a `u32`.
        unsafe {
            [gather(mask[0], base, index[0], otherwise[0]), gather(mask[1], base, index[1], otherwise[1])]
        }
    }
    #[inline(always)]
    fn read_top<const BITS: u32>(self, top: Top<'_, BITS>, addrs: &[u32; LANES]) -> Self::U32 {
        // SAFETY: see above.
        unsafe { inserts::read_top(top, addrs) }
    }
    #[inline(always)]
    fn read_next_hops<W: Word>(self, found: Found<'_, W>, out: &mut [NextHop; LANES]) -> bool {
        // SAFETY: see above.
        unsafe { inserts::read_next_hops(found, out) }
    }
    /// A last key is below the key unless the lesser of the two is the key.
    #[inline(always)]
    fn below<T: SearchLine>(self, line: &T, [key, _]: Self::U32) -> u32 {
        const { assert!(size_of::<T>() == 64 && T::LASTS <= 16) };
        let mask = (1u32 << T::LASTS) - 1;
        // SAFETY: a `SearchLine` has 64 bytes.
        let not_below = unsafe {
            let [low, high] = load_line(std::ptr::from_ref(line).cast());
            let low = _mm256_cmpeq_epi32(_mm256_min_epu32(low, key), key);
            let high = _mm256_cmpeq_epi32(_mm256_min_epu32(high, key), key);
            let low = _mm256_movemask_ps(_mm256_castsi256_ps(low)) as u32;
            low | (_mm256_movemask_ps(_mm256_castsi256_ps(high)) as u32) << 8
        };
        (!not_below & mask).count_ones()
    }
}
