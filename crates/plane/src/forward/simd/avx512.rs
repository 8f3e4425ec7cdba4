//! AVX-512: a register holds sixteen bytes of each of four packets.
//!
//! Whatever is wrong with a packet leaves a bit in one register, so that four packets meet one branch.

use std::arch::x86_64::*;

use super::super::plain_packet::{FrameKind, Ours, PLAIN_INET, PLAIN_INET6};
use super::four_headers::{FourHeaders, HeaderLoop, sealed::Sealed};
use crate::burst::Slot;
use crate::wire::Field;
use crate::wire::ethernet::HEADER as ETHERNET;
use crate::wire::{ipv4, ipv6};

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

/// The first bytes of the frames of four packets.
type Heads<'h> = [&'h [u8; 64]; 4];

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
#[inline]
fn inet(packets: [&Slot; 4], ours: &Ours) -> Option<[u32; 4]> {
    let [a, b, c, d] = packets;
    let heads = [a.head(), b.head(), c.head(), d.head()];
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

/// The first sixteen bytes of a plain frame as a little-endian number, and the bits of them that all plain ones have.
#[inline(always)]
fn start(ours: &Ours, kind: FrameKind) -> (u128, u128) {
    const MAC: u128 = (1 << 48) - 1;
    let at_end = |word: u32| u128::from(word.swap_bytes()) << 96;
    (u128::from(ours.mac >> 16) | at_end(kind.value), MAC | at_end(kind.mask))
}

/// The total length in each IPv4 header, and the word behind it.
#[target_feature(enable = "sse2")]
#[inline]
fn totals_of([a, b, c, d]: Heads<'_>) -> __m128i {
    const TOTAL: Field<4> = Field(ETHERNET + 2);
    let word = |head: &[u8; 64]| i32::from_le_bytes(TOTAL.get(head));
    _mm_setr_epi32(word(a), word(b), word(c), word(d))
}

/// Nonzero where the checksum of an IPv4 header is wrong. The one's complement sum is the same in either byte order (RFC 1071,
/// section 2.B).
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
    // Of ten words, at most 0x9fff6: of the values that fold to 0xffff only 0xffff itself is left.
    let all_ones = _mm_set1_epi32(0xffff);
    let sum = _mm_add_epi32(word_of_each::<0>(sum), _mm_and_si128(totals, all_ones));
    let folded = _mm_add_epi32(_mm_srli_epi32::<16>(sum), _mm_and_si128(sum, all_ones));
    _mm_xor_si128(folded, all_ones)
}

/// Nonzero where the first byte of an address needs a closer look, as in `martian.rs`: 0, 127, 169, 224 and above. Addresses are
/// the third and the fourth word of each lane.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn suspects(headers: __m512i) -> __m512i {
    /// A bit for each kind of byte: what its lower half is, and its upper half.
    const LOWER: u128 = 0x0a08_0808_0808_0c08_0808_0808_0808_0809;
    const UPPER: u128 = 0x0808_0000_0004_0000_0200_0000_0000_0001;
    const FIRST_BYTES: u128 = 0xff_0000_00ff << 64;
    const AND: i32 = 0x80;
    let half = _mm512_set1_epi8(0x0f);
    let lower = _mm512_shuffle_epi8(four_times(LOWER), _mm512_and_si512(headers, half));
    let above = _mm512_and_si512(_mm512_srli_epi16::<4>(headers), half);
    let upper = _mm512_shuffle_epi8(four_times(UPPER), above);
    _mm512_ternarylogic_epi32::<AND>(lower, upper, four_times(FIRST_BYTES))
}

/// Nonzero where the total length of an IPv4 packet is not between its header's and what the frame holds.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
fn wrong_totals(totals: __m128i, lengths: __m128i) -> __m128i {
    let in_order = _mm_setr_epi8(1, 0, -1, -1, 5, 4, -1, -1, 9, 8, -1, -1, 13, 12, -1, -1);
    let totals = _mm_shuffle_epi8(totals, in_order);
    let too_long = _mm_subs_epu16(_mm_adds_epu16(totals, _mm_set1_epi32(ETHERNET as i32)), lengths);
    let too_short = _mm_subs_epu16(_mm_set1_epi32(ipv4::HEADER as i32), totals);
    _mm_or_si128(too_long, too_short)
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
    let [a, b, c, d] = packets;
    let heads = [a.head(), b.head(), c.head(), d.head()];
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

/// Nonzero where an IPv6 packet is longer than its frame, or the first byte of its source needs a closer look.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
fn wrong_middle(heads: Heads<'_>, lengths: __m128i) -> __m256i {
    /// The rest of the flow label, the payload's length, next header and hop limit, and the first two bytes of the source.
    const MIDDLE: Field<8> = Field(ETHERNET + 2);
    /// a | (b & c)
    const OR_OF_THESE: i32 = 0xf8;
    let middle = |of: usize| i64::from_le_bytes(MIDDLE.get(heads[of]));
    let middles = _mm256_setr_epi64x(middle(0), middle(1), middle(2), middle(3));
    let payload = _mm256_set_epi64x(0x0a0b, 0x0203, 0x0a0b, 0x0203);
    let others = _mm256_set1_epi64x(0x8080_8080_8080_0000_u64 as i64);
    let payloads = _mm256_shuffle_epi8(middles, _mm256_or_si256(payload, others));
    let frames = _mm256_cvtepu32_epi64(lengths);
    let headers = _mm256_set1_epi64x((ETHERNET + ipv6::HEADER) as i64);
    let too_long = _mm256_subs_epu16(_mm256_adds_epu16(payloads, headers), frames);
    let suspects = _mm512_castsi512_si256(few(_mm512_castsi256_si512(middles)));
    let first_byte = _mm256_set1_epi64x(0xff << 48);
    _mm256_ternarylogic_epi32::<OR_OF_THESE>(too_long, suspects, first_byte)
}

/// Nonzero where a byte is 0, 0xfe or 0xff, with which IPv6 addresses begin that need a closer look, as in `martian.rs`.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn few(bytes: __m512i) -> __m512i {
    _mm512_subs_epu8(_mm512_set1_epi8(3), _mm512_add_epi8(bytes, _mm512_set1_epi8(2)))
}

/// a | b | c
const OR: i32 = 0xfe;

/// Whether any packet is from another port.
#[inline(always)]
fn is_other_port([a, b, c, d]: [&Slot; 4], ours: &Ours) -> bool {
    (a.port ^ ours.port) | (b.port ^ ours.port) | (c.port ^ ours.port) | (d.port ^ ours.port) != 0
}

/// The length of each frame. It is read alone, as it was just written: one load of what two stores wrote waits for the cache.
#[target_feature(enable = "sse4.1")]
#[inline]
fn lengths_of([a, b, c, d]: [&Slot; 4]) -> __m128i {
    let length = |of: &Slot| of.frame_len() as i32;
    _mm_setr_epi32(length(a), length(b), length(c), length(d))
}

/// Sixteen bytes of each head, from this offset on.
#[target_feature(enable = "avx512f")]
#[inline]
fn lanes<const AT: usize>([a, b, c, d]: Heads<'_>) -> __m512i {
    let lanes = _mm512_castsi128_si512(part::<AT>(a));
    let lanes = _mm512_inserti32x4::<1>(lanes, part::<AT>(b));
    let lanes = _mm512_inserti32x4::<2>(lanes, part::<AT>(c));
    _mm512_inserti32x4::<3>(lanes, part::<AT>(d))
}

#[target_feature(enable = "sse2")]
#[inline]
fn part<const AT: usize>(head: &[u8; 64]) -> __m128i {
    const { assert!(AT + 16 <= 64) };
    // SAFETY: the sixteen bytes are within the array, as asserted.
    unsafe { _mm_loadu_si128(head.as_ptr().add(AT).cast()) }
}

/// The same sixteen bytes in each lane.
#[target_feature(enable = "avx512f")]
#[inline]
fn four_times(bytes: u128) -> __m512i {
    _mm512_broadcast_i32x4(_mm_set_epi64x((bytes >> 64) as i64, bytes as i64))
}
