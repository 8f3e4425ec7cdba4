//! AVX2: a register holds sixteen bytes of each of two packets.

use std::arch::x86_64::*;

use super::super::plain_packet::{FrameKind, Ours, PLAIN_INET, PLAIN_INET6};
use super::four_headers::{FourHeaders, HeaderLoop, sealed::Sealed};
use super::heads::{
    FIRST_BYTES, Heads, LOWER_HALVES, UPPER_HALVES, few, heads_of, is_other_port, lengths_of, part, start,
    totals_of, wrong_middle, wrong_sums, wrong_totals,
};
use crate::burst::Slot;
use crate::wire::ethernet::HEADER as ETHERNET;

/// Proof that the processor has AVX2; made by [`enter`] alone.
#[derive(Clone, Copy)]
struct Avx2(());

/// Runs a loop with AVX2.
///
/// # Safety
///
/// The processor has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn enter<L: HeaderLoop>(of: L) -> L::Output {
    of.run(Avx2(()))
}

impl Sealed for Avx2 {}

impl FourHeaders for Avx2 {
    #[inline(always)]
    fn inet(self, packets: [&Slot; 4], ours: &Ours) -> Option<[u32; 4]> {
        // SAFETY: `self` proves that the processor has AVX2.
        unsafe { inet(packets, ours) }
    }

    #[inline(always)]
    fn inet6(self, packets: [&Slot; 4], ours: &Ours) -> Option<[u128; 4]> {
        // SAFETY: as above.
        unsafe { inet6(packets, ours) }
    }
}

/// Sixteen bytes of each of four packets, of two in a register.
type Lanes = [__m256i; 2];

#[target_feature(enable = "avx2")]
#[inline]
fn inet(packets: [&Slot; 4], ours: &Ours) -> Option<[u32; 4]> {
    let heads = heads_of(packets);
    let (frames, headers) = (lanes::<0>(heads), lanes::<{ ETHERNET + 4 }>(heads));
    let (totals, lengths) = (totals_of(heads), lengths_of(packets));
    let wrong = _mm256_or_si256(other_start(frames, ours, PLAIN_INET), suspects(headers));
    let wrong_words = _mm_or_si128(unverified(frames, headers, totals), wrong_totals(totals, lengths));
    let wrong = _mm256_or_si256(wrong, _mm256_zextsi128_si256(wrong_words));
    if is_any_set(wrong) | is_other_port(packets, ours) {
        return None;
    }
    let in_order = _mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
    let destinations = _mm_shuffle_epi8(word_of_each::<3>(headers), in_order);
    // SAFETY: both types are sixteen bytes of plain bits.
    Some(unsafe { std::mem::transmute::<__m128i, [u32; 4]>(destinations) })
}

/// Nonzero where a frame does not begin as those of this kind for this port.
#[target_feature(enable = "avx2")]
#[inline]
fn other_start([first, second]: Lanes, ours: &Ours, kind: FrameKind) -> __m256i {
    let (value, mask) = start(ours, kind);
    let (value, mask) = (twice(value), twice(mask));
    let different = _mm256_or_si256(_mm256_xor_si256(first, value), _mm256_xor_si256(second, value));
    _mm256_and_si256(different, mask)
}

/// Nonzero where the checksum of an IPv4 header is wrong.
#[target_feature(enable = "avx2")]
#[inline]
fn unverified(frames: Lanes, [first, second]: Lanes, totals: __m128i) -> __m128i {
    let (first, second) = (halves_of_sums(first), halves_of_sums(second));
    // The sums of the first, the third, the second and the fourth packet.
    let sums = _mm256_add_epi64(_mm256_unpacklo_epi64(first, second), _mm256_unpackhi_epi64(first, second));
    let in_order = _mm256_setr_epi32(0, 4, 2, 6, 0, 0, 0, 0);
    let sums = _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(sums, in_order));
    // The first two bytes of the header are the last ones of what is read of a frame.
    let first_words = _mm_srli_epi32::<16>(word_of_each::<3>(frames));
    wrong_sums(_mm_add_epi32(sums, first_words), totals)
}

/// The sum of each four words of sixteen bits.
#[target_feature(enable = "avx2")]
#[inline]
fn halves_of_sums(words: __m256i) -> __m256i {
    let zero = _mm256_setzero_si256();
    let lower = _mm256_sad_epu8(_mm256_and_si256(words, _mm256_set1_epi16(0xff)), zero);
    let upper = _mm256_sad_epu8(_mm256_srli_epi16::<8>(words), zero);
    _mm256_add_epi64(lower, _mm256_slli_epi64::<8>(upper))
}

/// Nonzero where the first byte of an address needs a closer look.
#[target_feature(enable = "avx2")]
#[inline]
fn suspects([first, second]: Lanes) -> __m256i {
    _mm256_and_si256(_mm256_or_si256(kinds(first), kinds(second)), twice(FIRST_BYTES))
}

/// The bits of the kinds that each byte is of.
#[target_feature(enable = "avx2")]
#[inline]
fn kinds(bytes: __m256i) -> __m256i {
    let half = _mm256_set1_epi8(0x0f);
    let lower = _mm256_shuffle_epi8(twice(LOWER_HALVES), _mm256_and_si256(bytes, half));
    let above = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), half);
    _mm256_and_si256(lower, _mm256_shuffle_epi8(twice(UPPER_HALVES), above))
}

/// This word of each lane.
#[target_feature(enable = "avx2")]
#[inline]
fn word_of_each<const AT: i32>([first, second]: Lanes) -> __m128i {
    let places = _mm256_setr_epi32(AT, AT + 4, 0, 0, 0, 0, 0, 0);
    let first = _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(first, places));
    let second = _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(second, places));
    _mm_unpacklo_epi64(first, second)
}

#[target_feature(enable = "avx2")]
#[inline]
fn inet6(packets: [&Slot; 4], ours: &Ours) -> Option<[u128; 4]> {
    let heads = heads_of(packets);
    let [first, second] = lanes::<{ ETHERNET + 24 }>(heads);
    let first_bytes = _mm256_and_si256(_mm256_or_si256(few(first), few(second)), twice(0xff));
    let wrong = _mm256_or_si256(first_bytes, wrong_middle(heads, lengths_of(packets)));
    let wrong = _mm256_or_si256(wrong, other_start(lanes::<0>(heads), ours, PLAIN_INET6));
    if is_any_set(wrong) | is_other_port(packets, ours) {
        return None;
    }
    let in_order = twice(0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f);
    let destinations = [_mm256_shuffle_epi8(first, in_order), _mm256_shuffle_epi8(second, in_order)];
    // SAFETY: both types are 64 bytes of plain bits.
    Some(unsafe { std::mem::transmute::<Lanes, [u128; 4]>(destinations) })
}

#[target_feature(enable = "avx2")]
#[inline]
fn is_any_set(bits: __m256i) -> bool {
    _mm256_testz_si256(bits, bits) == 0
}

/// Sixteen bytes of each head, from this offset on.
#[target_feature(enable = "avx2")]
#[inline]
fn lanes<const AT: usize>([a, b, c, d]: Heads<'_>) -> Lanes {
    [_mm256_set_m128i(part::<AT>(b), part::<AT>(a)), _mm256_set_m128i(part::<AT>(d), part::<AT>(c))]
}

/// The same sixteen bytes in both lanes.
#[target_feature(enable = "avx2")]
#[inline]
fn twice(bytes: u128) -> __m256i {
    _mm256_broadcastsi128_si256(_mm_set_epi64x((bytes >> 64) as i64, bytes as i64))
}
