//! What every instruction set does to the first bytes of four frames.

use std::arch::x86_64::*;

use super::super::plain_packet::{FrameKind, Ours};
use crate::burst::Slot;
use crate::wire::Field;
use crate::wire::ethernet::HEADER as ETHERNET;
use crate::wire::{ipv4, ipv6};

/// A bit for each kind of byte with which IPv4 addresses begin that need a closer look, as in `martian.rs` (0, 127, 169, 224 and
/// above): where the lower half of the byte is as in this kind, and where the upper one is.
pub const LOWER_HALVES: u128 = 0x0a08_0808_0808_0c08_0808_0808_0808_0809;
pub const UPPER_HALVES: u128 = 0x0808_0000_0004_0000_0200_0000_0000_0001;
/// The first bytes of both addresses, which are the third and the fourth word of what is read of an IPv4 header.
pub const FIRST_BYTES: u128 = 0xff_0000_00ff << 64;

/// The first bytes of the frames of four packets.
pub type Heads<'h> = [&'h [u8; 64]; 4];

#[inline(always)]
pub fn heads_of([a, b, c, d]: [&Slot; 4]) -> Heads<'_> {
    [a.head(), b.head(), c.head(), d.head()]
}

/// The first sixteen bytes of a plain frame as a little-endian number, and the bits of them that all plain ones have.
#[inline(always)]
pub fn start(ours: &Ours, kind: FrameKind) -> (u128, u128) {
    const MAC: u128 = (1 << 48) - 1;
    let at_end = |word: u32| u128::from(word.swap_bytes()) << 96;
    (u128::from(ours.mac >> 16) | at_end(kind.value), MAC | at_end(kind.mask))
}

/// The total length in each IPv4 header, and the word behind it.
#[target_feature(enable = "sse2")]
#[inline]
pub fn totals_of([a, b, c, d]: Heads<'_>) -> __m128i {
    const TOTAL: Field<4> = Field(ETHERNET + 2);
    let word = |head: &[u8; 64]| i32::from_le_bytes(TOTAL.get(head));
    _mm_setr_epi32(word(a), word(b), word(c), word(d))
}

/// Nonzero where the checksum of an IPv4 header is wrong: `sums` are those of all words but the total length. The one's complement
/// sum is the same in either byte order (RFC 1071, section 2.B).
#[target_feature(enable = "sse2")]
#[inline]
pub fn wrong_sums(sums: __m128i, totals: __m128i) -> __m128i {
    // Of ten words, at most 0x9fff6: of the values that fold to 0xffff only 0xffff itself is left.
    let all_ones = _mm_set1_epi32(0xffff);
    let sums = _mm_add_epi32(sums, _mm_and_si128(totals, all_ones));
    let folded = _mm_add_epi32(_mm_srli_epi32::<16>(sums), _mm_and_si128(sums, all_ones));
    _mm_xor_si128(folded, all_ones)
}

/// Nonzero where the total length of an IPv4 packet is not between its header's and what the frame holds.
#[target_feature(enable = "ssse3")]
#[inline]
pub fn wrong_totals(totals: __m128i, lengths: __m128i) -> __m128i {
    let in_order = _mm_setr_epi8(1, 0, -1, -1, 5, 4, -1, -1, 9, 8, -1, -1, 13, 12, -1, -1);
    let totals = _mm_shuffle_epi8(totals, in_order);
    let too_long = _mm_subs_epu16(_mm_adds_epu16(totals, _mm_set1_epi32(ETHERNET as i32)), lengths);
    let too_short = _mm_subs_epu16(_mm_set1_epi32(ipv4::HEADER as i32), totals);
    _mm_or_si128(too_long, too_short)
}

/// Nonzero where an IPv6 packet is longer than its frame, or the first byte of its source needs a closer look.
#[target_feature(enable = "avx2")]
#[inline]
pub fn wrong_middle(heads: Heads<'_>, lengths: __m128i) -> __m256i {
    /// The rest of the flow label, the payload's length, next header and hop limit, and the first two bytes of the source.
    const MIDDLE: Field<8> = Field(ETHERNET + 2);
    let middle = |of: usize| i64::from_le_bytes(MIDDLE.get(heads[of]));
    let middles = _mm256_setr_epi64x(middle(0), middle(1), middle(2), middle(3));
    let payload = _mm256_set_epi64x(0x0a0b, 0x0203, 0x0a0b, 0x0203);
    let others = _mm256_set1_epi64x(0x8080_8080_8080_0000_u64 as i64);
    let payloads = _mm256_shuffle_epi8(middles, _mm256_or_si256(payload, others));
    let frames = _mm256_cvtepu32_epi64(lengths);
    let headers = _mm256_set1_epi64x((ETHERNET + ipv6::HEADER) as i64);
    let too_long = _mm256_subs_epu16(_mm256_adds_epu16(payloads, headers), frames);
    let first_byte = _mm256_set1_epi64x(0xff << 48);
    _mm256_or_si256(too_long, _mm256_and_si256(few(middles), first_byte))
}

/// Nonzero where a byte is 0, 0xfe or 0xff, with which IPv6 addresses begin that need a closer look, as in `martian.rs`.
#[target_feature(enable = "avx2")]
#[inline]
pub fn few(bytes: __m256i) -> __m256i {
    _mm256_subs_epu8(_mm256_set1_epi8(3), _mm256_add_epi8(bytes, _mm256_set1_epi8(2)))
}

/// Whether any packet is from another port.
#[inline(always)]
pub fn is_other_port([a, b, c, d]: [&Slot; 4], ours: &Ours) -> bool {
    (a.port ^ ours.port) | (b.port ^ ours.port) | (c.port ^ ours.port) | (d.port ^ ours.port) != 0
}

/// The length of each frame. It is read alone, as it was just written: one load of what two stores wrote waits for the cache.
#[target_feature(enable = "sse4.1")]
#[inline]
pub fn lengths_of([a, b, c, d]: [&Slot; 4]) -> __m128i {
    let length = |of: &Slot| of.frame_len() as i32;
    _mm_setr_epi32(length(a), length(b), length(c), length(d))
}

#[target_feature(enable = "sse2")]
#[inline]
pub fn part<const AT: usize>(head: &[u8; 64]) -> __m128i {
    const { assert!(AT + 16 <= 64) };
    // SAFETY: the sixteen bytes are within the array, as asserted.
    unsafe { _mm_loadu_si128(head.as_ptr().add(AT).cast()) }
}
