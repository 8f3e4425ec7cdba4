//! AVX-512: a register holds sixteen bytes of each of four packets.
//!
//! Whatever is wrong with a packet leaves a bit in one register, so that four packets meet one branch.

use std::arch::x86_64::*;

use super::super::plain_packet::{FrameKind, Ours, PLAIN_INET, PLAIN_INET6};
use super::four_headers::{FourHeaders, HeaderLoop, sealed::Sealed};
use super::heads::{
    FIRST_BYTES, Heads, LOWER_HALVES, UPPER_HALVES, heads_of, is_other_port, lengths_of, part, start,
    totals_of, wrong_middle, wrong_sums, wrong_totals,
};
use crate::burst::Slot;
use crate::wire::ethernet::HEADER as ETHERNET;

/// Proof that the processor has AVX-512 F, BW, VL and VNNI; made by [`enter`] alone.
#[derive(Clone, Copy)]
struct Avx512(());

/// Runs a loop with AVX-512.
///
/// # Safety
///
/// The processor has AVX-512 F, BW, VL and VNNI.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(super) unsafe fn enter<L: HeaderLoop>(of: L) -> L::Output {
    of.run(Avx512(()))
}

impl Sealed for Avx512 {}

impl FourHeaders for Avx512 {
    #[inline(always)]
    fn inet(self, packets: [&Slot; 4], ours: &Ours) -> Option<[u32; 4]> {
        // SAFETY: `self` proves that the processor has AVX-512 F, BW, VL and VNNI.
        unsafe { inet(packets, ours) }
    }

    #[inline(always)]
    fn inet6(self, packets: [&Slot; 4], ours: &Ours) -> Option<[u128; 4]> {
        // SAFETY: as above.
        unsafe { inet6(packets, ours) }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
#[inline]
fn inet(packets: [&Slot; 4], ours: &Ours) -> Option<[u32; 4]> {
    let heads = heads_of(packets);
    let (frames, headers) = (lanes::<0>(heads), lanes::<{ ETHERNET + 4 }>(heads));
    let (totals, lengths) = (totals_of(heads), lengths_of(packets));
    let wrong = _mm512_or_si512(other_start(frames, ours, PLAIN_INET), suspects(headers));
    let wrong_words = _mm_or_si128(unverified(frames, headers, totals), wrong_totals(totals, lengths));
    let wrong = _mm512_or_si512(wrong, _mm512_zextsi128_si512(wrong_words));
    if (_mm512_test_epi32_mask(wrong, wrong) != 0) | is_other_port(packets, ours) {
        return None;
    }
    let in_order = _mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
    let destinations = _mm_shuffle_epi8(word_of_each::<3>(headers), in_order);
    // SAFETY: both types are sixteen bytes of plain bits.
    Some(unsafe { std::mem::transmute::<__m128i, [u32; 4]>(destinations) })
}

/// Nonzero where a frame does not begin as those of this kind for this port.
#[target_feature(enable = "avx512f")]
#[inline]
fn other_start(frames: __m512i, ours: &Ours, kind: FrameKind) -> __m512i {
    /// (a ^ b) & c
    const DIFFERENT: i32 = 0x28;
    let (value, mask) = start(ours, kind);
    _mm512_ternarylogic_epi32::<DIFFERENT>(frames, four_times(value), four_times(mask))
}

/// Nonzero where the checksum of an IPv4 header is wrong.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
#[inline]
fn unverified(frames: __m512i, headers: __m512i, totals: __m128i) -> __m128i {
    /// The first two bytes of the header are the last ones of what is read of a frame.
    const FIRST: u128 = 1 << 112;
    let sum_of = |weights, first| {
        let sum = _mm512_dpbusd_epi32(_mm512_setzero_si512(), headers, weights);
        _mm512_dpbusd_epi32(sum, frames, first)
    };
    let lower = sum_of(_mm512_set1_epi16(1), four_times(FIRST));
    let upper = sum_of(_mm512_set1_epi16(0x100), four_times(FIRST << 8));
    let sum = _mm512_add_epi32(lower, _mm512_slli_epi32::<8>(upper));
    let sum = _mm512_add_epi32(sum, _mm512_shuffle_epi32::<0b01_00_11_10>(sum));
    let sum = _mm512_add_epi32(sum, _mm512_shuffle_epi32::<0b10_11_00_01>(sum));
    wrong_sums(word_of_each::<0>(sum), totals)
}

/// Nonzero where the first byte of an address needs a closer look.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn suspects(headers: __m512i) -> __m512i {
    const AND: i32 = 0x80;
    let half = _mm512_set1_epi8(0x0f);
    let lower = _mm512_shuffle_epi8(four_times(LOWER_HALVES), _mm512_and_si512(headers, half));
    let above = _mm512_and_si512(_mm512_srli_epi16::<4>(headers), half);
    let upper = _mm512_shuffle_epi8(four_times(UPPER_HALVES), above);
    _mm512_ternarylogic_epi32::<AND>(lower, upper, four_times(FIRST_BYTES))
}

/// This word of each lane.
#[target_feature(enable = "avx512f")]
#[inline]
fn word_of_each<const AT: i32>(lanes: __m512i) -> __m128i {
    let places = _mm512_setr_epi32(AT, AT + 4, AT + 8, AT + 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    _mm512_castsi512_si128(_mm512_permutexvar_epi32(places, lanes))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
fn inet6(packets: [&Slot; 4], ours: &Ours) -> Option<[u128; 4]> {
    let heads = heads_of(packets);
    let destinations = lanes::<{ ETHERNET + 24 }>(heads);
    let first_bytes = _mm512_and_si512(few(destinations), four_times(0xff));
    let lengths = lengths_of(packets);
    let wrong = _mm512_ternarylogic_epi32::<OR>(
        other_start(lanes::<0>(heads), ours, PLAIN_INET6),
        first_bytes,
        _mm512_zextsi256_si512(wrong_middle(heads, lengths)),
    );
    if (_mm512_test_epi32_mask(wrong, wrong) != 0) | is_other_port(packets, ours) {
        return None;
    }
    let in_order = four_times(0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f);
    let destinations = _mm512_shuffle_epi8(destinations, in_order);
    // SAFETY: both types are 64 bytes of plain bits.
    Some(unsafe { std::mem::transmute::<__m512i, [u128; 4]>(destinations) })
}

/// Nonzero where a byte is 0, 0xfe or 0xff, with which IPv6 addresses begin that need a closer look, as in `martian.rs`.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn few(bytes: __m512i) -> __m512i {
    _mm512_subs_epu8(_mm512_set1_epi8(3), _mm512_add_epi8(bytes, _mm512_set1_epi8(2)))
}

/// a | b | c
const OR: i32 = 0xfe;

/// Sixteen bytes of each head, from this offset on.
#[target_feature(enable = "avx512f")]
#[inline]
fn lanes<const AT: usize>([a, b, c, d]: Heads<'_>) -> __m512i {
    let lanes = _mm512_castsi128_si512(part::<AT>(a));
    let lanes = _mm512_inserti32x4::<1>(lanes, part::<AT>(b));
    let lanes = _mm512_inserti32x4::<2>(lanes, part::<AT>(c));
    _mm512_inserti32x4::<3>(lanes, part::<AT>(d))
}

/// The same sixteen bytes in each lane.
#[target_feature(enable = "avx512f")]
#[inline]
fn four_times(bytes: u128) -> __m512i {
    _mm512_broadcast_i32x4(_mm_set_epi64x((bytes >> 64) as i64, bytes as i64))
}
