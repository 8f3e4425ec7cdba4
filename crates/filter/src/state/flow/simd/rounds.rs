//! A hash by rounds of AES, each of which mixes sixteen bytes in one instruction.
//!
//! A secret key is mixed in before the first round, so that who does not know it cannot choose flows whose places are the same.
//! Each word passes three rounds at least: after two, places of addresses and ports that follow each other still make a lattice.

use std::arch::x86_64::*;

use super::super::ends::{EndParts, WireEnds};
use super::flow_loop::{FlowLoop, WireHasher, sealed::Sealed};

/// Proof that the processor has AVX2 and AES.
#[derive(Clone, Copy)]
pub(super) struct Rounds(());

impl Rounds {
    /// The proof.
    ///
    /// # Safety
    ///
    /// The processor has AVX2 and AES.
    #[inline(always)]
    pub unsafe fn new() -> Rounds {
        Rounds(())
    }
}

/// Runs a loop with AVX2 and AES.
///
/// # Safety
///
/// The processor has the features.
#[target_feature(enable = "avx2,bmi1,bmi2,aes")]
pub(super) unsafe fn with_avx2<L: FlowLoop>(of: L) -> L::Output {
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

    #[inline(always)]
    fn inet(self, keys: &[u64; 4], bytes: [u8; 16], interface: u16) -> (u64, WireEnds, u64) {
        // SAFETY: as above; a processor with AES and AVX2 has SSSE3.
        unsafe { inet(keys, bytes, interface) }
    }

    #[inline(always)]
    fn inet6(self, keys: &[u64; 4], addresses: [u8; 32], ends: EndParts) -> (WireEnds, u64) {
        // SAFETY: as above; a processor with AES and AVX2 has SSE4.1.
        unsafe { inet6(keys, addresses, ends) }
    }
}

#[target_feature(enable = "aes")]
#[inline]
fn of_two(keys: &[u64; 4], [a, b]: [u64; 2]) -> u64 {
    of_pair(keys, pair(a, b))
}

#[target_feature(enable = "aes")]
#[inline]
fn of_pair([k0, k1, k2, k3]: &[u64; 4], words: __m128i) -> u64 {
    let (first, second) = (pair(*k0, *k1), pair(*k2, *k3));
    let mixed = _mm_aesenc_si128(_mm_xor_si128(words, first), second);
    low(_mm_aesenc_si128(_mm_aesenc_si128(mixed, first), second))
}

/// One shuffle puts all but the interface in order.
#[target_feature(enable = "aes,avx2")]
#[inline]
fn inet(keys: &[u64; 4], bytes: [u8; 16], interface: u16) -> (u64, WireEnds, u64) {
    // Addresses, ports, protocol, and zeros.
    let places = _mm_setr_epi8(4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 1, -1, -1, -1);
    // SAFETY: there are sixteen bytes.
    let bytes = unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) };
    let words = _mm_shuffle_epi8(bytes, places);
    let flow = _mm_insert_epi16::<7>(words, interface.into());
    (low(flow), WireEnds::of_word(high(flow)), of_pair(keys, words))
}

#[target_feature(enable = "aes,avx2")]
#[inline]
fn inet6(keys: &[u64; 4], addresses: [u8; 32], ends: EndParts) -> (WireEnds, u64) {
    let ports = _mm_cvtsi32_si128(i32::from_le_bytes(ends.ports));
    let last = _mm_insert_epi8::<4>(ports, ends.protocol.into());
    // SAFETY: there are 32 bytes.
    let [source, destination] =
        unsafe { [0, 16].map(|at| _mm_loadu_si128(addresses.as_ptr().add(at).cast())) };
    let ends = WireEnds::of_word(low(_mm_insert_epi16::<3>(last, ends.interface.into())));
    (ends, of_three(keys, [source, destination, last]))
}

#[target_feature(enable = "aes")]
#[inline]
fn of_five(keys: &[u64; 4], [a, b, c, d]: [u64; 4], last: u64) -> u64 {
    of_three(keys, [pair(a, b), pair(c, d), pair(last, 0)])
}

#[target_feature(enable = "aes")]
#[inline]
fn of_three([k0, k1, k2, k3]: &[u64; 4], [source, destination, last]: [__m128i; 3]) -> u64 {
    let (first, second) = (pair(*k0, *k1), pair(*k2, *k3));
    let four = _mm_aesenc_si128(_mm_xor_si128(source, first), destination);
    let five = _mm_aesenc_si128(four, last);
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

#[target_feature(enable = "sse2")]
#[inline]
fn high(pair: __m128i) -> u64 {
    low(_mm_unpackhi_epi64(pair, pair))
}
