//! A hash by rounds of AES, each of which mixes sixteen bytes in one instruction.
//!
//! A secret key is mixed in before the first round, so that who does not know it cannot choose flows whose places are the same.
//! Each word passes three rounds at least: after two, places of addresses and ports that follow each other still make a lattice.

use std::arch::x86_64::*;

use super::flow_loop::{FlowLoop, WireHasher, sealed::Sealed};

/// Proof that the processor has AES; made by [`with_avx2`] and [`with_avx512`] alone.
#[derive(Clone, Copy)]
struct Rounds(());

/// Runs a loop with AVX2 and AES.
///
/// # Safety
///
/// The processor has the features.
#[target_feature(enable = "avx2,bmi1,bmi2,aes")]
pub(super) unsafe fn with_avx2<L: FlowLoop>(of: L) -> L::Output {
    of.run(Rounds(()))
}

/// Runs a loop with AVX-512 and AES.
///
/// # Safety
///
/// The processor has the features.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,aes")]
pub(super) unsafe fn with_avx512<L: FlowLoop>(of: L) -> L::Output {
    of.run(Rounds(()))
}

impl Sealed for Rounds {}

impl WireHasher for Rounds {
    #[inline(always)]
    fn of_two(self, keys: &[u64; 4], words: [u64; 2]) -> u64 {
        // SAFETY: `self` proves that the processor has AES.
        unsafe { of_two(keys, words) }
    }

    #[inline(always)]
    fn of_five(self, keys: &[u64; 4], words: [u64; 4], last: u64) -> u64 {
        // SAFETY: as above.
        unsafe { of_five(keys, words, last) }
    }
}

#[target_feature(enable = "aes")]
#[inline]
fn of_two([k0, k1, k2, k3]: &[u64; 4], [a, b]: [u64; 2]) -> u64 {
    let (first, second) = (pair(*k0, *k1), pair(*k2, *k3));
    let mixed = _mm_aesenc_si128(_mm_xor_si128(pair(a, b), first), second);
    low(_mm_aesenc_si128(_mm_aesenc_si128(mixed, first), second))
}

#[target_feature(enable = "aes")]
#[inline]
fn of_five([k0, k1, k2, k3]: &[u64; 4], [a, b, c, d]: [u64; 4], last: u64) -> u64 {
    let (first, second) = (pair(*k0, *k1), pair(*k2, *k3));
    let four = _mm_aesenc_si128(_mm_xor_si128(pair(a, b), first), pair(c, d));
    let five = _mm_aesenc_si128(four, pair(last, 0));
    low(_mm_aesenc_si128(_mm_aesenc_si128(_mm_aesenc_si128(five, second), first), second))
}

#[target_feature(enable = "sse2")]
#[inline]
fn pair(low: u64, high: u64) -> __m128i {
    _mm_set_epi64x(high as i64, low as i64)
}

#[target_feature(enable = "sse2")]
#[inline]
fn low(pair: __m128i) -> u64 {
    _mm_cvtsi128_si64(pair) as u64
}
