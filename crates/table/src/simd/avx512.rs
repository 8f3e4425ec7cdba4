//! AVX-512: one register holds all lanes.

use std::arch::asm;
use std::arch::x86_64::*;

use crate::memory::{Top, Word, Words};
use crate::nexthop::NextHop;

use super::inserts;
use super::lanes::{Found, Kernel, LANES, Lanes, sealed};
use super::line::{LinkedLine, SearchLine};

/// Proof that the processor has AVX-512 F and BW, and POPCNT; made by [`enter`] alone.
#[derive(Clone, Copy)]
pub(super) struct Avx512(());

/// Runs a kernel with AVX-512.
///
/// # Safety
///
/// The processor has AVX-512 F and BW, and POPCNT.
#[target_feature(enable = "avx512f,avx512bw,popcnt")]
pub(super) unsafe fn enter<K: Kernel>(kernel: K) {
    kernel.run(Avx512(()));
}

/// Loads the words at `base + 4 * index` of the lanes in `mask`.
///
/// The writer may store to the table meanwhile. Rust calls such reads a data race unless they are atomic, and the
/// compiler has no atomic gather. The instruction itself is atomic, lane by lane: an aligned 4-byte load is single-copy
/// atomic on x86 (Intel SDM 3A, 9.1.1), and loads are not reordered with later ones. Assembly guarantees exactly that
/// instruction; an intrinsic does not, because it is a plain read to the compiler.
///
/// # Safety
///
/// Each such address lies in a live table of [`Word`]s.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
unsafe fn gather(mask: __mmask16, base: *const u32, index: __m512i, otherwise: __m512i) -> __m512i {
    let mut lanes = otherwise;
    // SAFETY: see the contract; the instruction reads those addresses only and clears its mask register.
    unsafe {
        asm!(
            "vpgatherdd {lanes}{{{mask}}}, dword ptr [{base} + {index} * 4]",
            lanes = inout(zmm_reg) lanes,
            mask = inout(kreg) mask => _,
            base = in(reg) base,
            index = in(zmm_reg) index,
            options(nostack, preserves_flags, readonly),
        );
    }
    lanes
}

impl sealed::Sealed for Avx512 {}

/// Sets a bit for each of the 16 words at `line` that `mask` selects and that are below those of `key`. This is
/// assembly for the reason given at [`gather`]: the writer may meanwhile store to words that the mask excludes.
///
/// # Safety
///
/// At `line` are 64 bytes of a live [`SearchLine`].
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
unsafe fn words_below(line: *const u32, key: __m512i, mask: __mmask16) -> u32 {
    let bits: u32;
    // SAFETY: see the contract; the instruction reads these bytes only.
    unsafe {
        asm!(
            "vpcmpnleud {below}{{{mask}}}, {key}, zmmword ptr [{line}]",
            "kmovd {bits:e}, {below}",
            below = out(kreg) _,
            mask = in(kreg) mask,
            key = in(zmm_reg) key,
            line = in(reg) line,
            bits = out(reg) bits,
            options(nostack, preserves_flags, pure, readonly),
        );
    }
    bits
}

/// Computes [`LinkedLine::child`] of the number of words that [`words_below`] finds, in one piece of assembly: if it
/// were two pieces, the compiler would move the parts of 16 lanes away from each other and keep the values between them
/// on the stack.
///
/// No safety contract is needed, because a line has 64 bytes.
#[target_feature(enable = "avx512f,avx512bw,popcnt")]
#[inline]
fn child_of<T: LinkedLine>(branch: &T, key: __m512i, mask: __mmask16) -> u32 {
    const { assert!(size_of::<T>() == 64 && T::FIRST <= 60) };
    let child: u32;
    // SAFETY: the assembly reads bytes of the line only: its words as in `words_below`, and the first child's place, an
    // aligned word, which no load on x86 reads in two parts or before an earlier load.
    unsafe {
        asm!(
            "vpcmpnleud {below}{{{mask}}}, {key}, zmmword ptr [{line}]",
            "kmovd {child:e}, {below}",
            "popcnt {child:e}, {child:e}",
            "shl {child:e}, 6",
            "add {child:e}, dword ptr [{line} + {first}]",
            below = out(kreg) _,
            mask = in(kreg) mask,
            key = in(zmm_reg) key,
            line = in(reg) std::ptr::from_ref(branch),
            child = out(reg) child,
            first = const T::FIRST,
            options(nostack, pure, readonly),
        );
    }
    child
}

// SAFETY of all blocks below: `self` proves that the processor has the instructions; operations that touch memory take
// whole arrays by reference.
impl Lanes for Avx512 {
    type U32 = __m512i;
    type Mask = __mmask16;
    const IN_REGISTERS: bool = true;

    #[inline(always)]
    fn splat(self, value: u32) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_set1_epi32(value as i32) }
    }
    #[inline(always)]
    fn load(self, values: &[u32; LANES]) -> __m512i {
        // SAFETY: see above; the load is an unaligned one of 64 bytes.
        unsafe { _mm512_loadu_si512(values.as_ptr().cast()) }
    }
    #[inline(always)]
    fn store(self, lanes: __m512i, values: &mut [u32; LANES]) {
        // SAFETY: see above; the store is an unaligned one of 64 bytes.
        unsafe { _mm512_storeu_si512(values.as_mut_ptr().cast(), lanes) }
    }
    #[inline(always)]
    fn store_next_hops(self, values: __m512i, out: &mut [NextHop; LANES]) {
        // SAFETY: see above; the store is an unaligned one of 32 bytes, and a `NextHop` is a transparent `u16`.
        unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), _mm512_cvtepi32_epi16(values)) }
    }
    #[inline(always)]
    fn and(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_and_si512(a, b) }
    }
    #[inline(always)]
    fn or(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_or_si512(a, b) }
    }
    #[inline(always)]
    fn add(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_add_epi32(a, b) }
    }
    #[inline(always)]
    fn sub(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_sub_epi32(a, b) }
    }
    #[inline(always)]
    fn min(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_min_epu32(a, b) }
    }
    #[inline(always)]
    fn shr<const N: u32>(self, a: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_srli_epi32::<N>(a) }
    }
    #[inline(always)]
    fn shl<const N: u32>(self, a: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_slli_epi32::<N>(a) }
    }
    #[inline(always)]
    fn shr_by(self, a: __m512i, bits: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_srlv_epi32(a, bits) }
    }
    #[inline(always)]
    fn shl_by(self, a: __m512i, bits: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_sllv_epi32(a, bits) }
    }
    /// Counts the bits of each nibble with a table of sixteen bytes, then adds the four bytes of each lane: not every
    /// processor with AVX-512 has the single instruction that counts bits.
    #[inline(always)]
    fn count_ones(self, a: __m512i) -> __m512i {
        let nibble = self.splat(0x0f0f_0f0f);
        let (low, high) = (self.and(a, nibble), self.and(self.shr::<4>(a), nibble));
        // SAFETY: see above.
        unsafe {
            let ones = _mm512_set4_epi32(0x0403_0302, 0x0302_0201, 0x0302_0201, 0x0201_0100);
            let bytes = _mm512_add_epi8(_mm512_shuffle_epi8(ones, low), _mm512_shuffle_epi8(ones, high));
            let pairs = _mm512_maddubs_epi16(bytes, _mm512_set1_epi8(1));
            _mm512_madd_epi16(pairs, _mm512_set1_epi16(1))
        }
    }
    #[inline(always)]
    fn at_most(self, a: __m512i, b: __m512i) -> __mmask16 {
        // SAFETY: see above.
        unsafe { _mm512_cmple_epu32_mask(a, b) }
    }
    #[inline(always)]
    fn test(self, a: __m512i, b: __m512i) -> __mmask16 {
        // SAFETY: see above.
        unsafe { _mm512_test_epi32_mask(a, b) }
    }
    #[inline(always)]
    fn any(self, mask: __mmask16) -> bool {
        mask != 0
    }
    #[inline(always)]
    fn all(self) -> __mmask16 {
        __mmask16::MAX
    }
    #[inline(always)]
    fn select(self, mask: __mmask16, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_mask_mov_epi32(b, mask, a) }
    }
    #[inline(always)]
    fn gather_words<W: Word>(
        self,
        mask: __mmask16,
        words: Words<'_, W>,
        index: __m512i,
        otherwise: __m512i,
    ) -> __m512i {
        let index = self.min(index, self.splat(words.last()));
        // SAFETY: no index is beyond the last word, which is below 2^31, and a `Word` has the layout of a `u32`.
        unsafe { gather(mask, words.as_slice().as_ptr().cast(), index, otherwise) }
    }
    #[inline(always)]
    fn read_top<const BITS: u32>(self, top: Top<'_, BITS>, addrs: &[u32; LANES]) -> __m512i {
        // SAFETY: see above; AVX-512 implies AVX2.
        unsafe {
            let [low, high] = inserts::read_top(top, addrs);
            _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
        }
    }
    #[inline(always)]
    fn read_next_hops<W: Word>(self, found: Found<'_, W>, out: &mut [NextHop; LANES]) -> bool {
        // SAFETY: see above; AVX-512 implies AVX2.
        unsafe { inserts::read_next_hops(found, out) }
    }
    #[inline(always)]
    fn child<T: LinkedLine>(self, branch: &T, key: __m512i) -> u32 {
        const { assert!(T::LASTS < 16) };
        // SAFETY: see above.
        unsafe { child_of(branch, key, (1 << T::LASTS) - 1) }
    }
    #[inline(always)]
    fn below<T: SearchLine>(self, line: &T, key: __m512i) -> u32 {
        const { assert!(size_of::<T>() == 64 && T::LASTS <= 16) };
        let mask = ((1u32 << T::LASTS) - 1) as __mmask16;
        // SAFETY: a `SearchLine` has 64 bytes.
        unsafe { words_below(std::ptr::from_ref(line).cast(), key, mask) }.count_ones()
    }
}
