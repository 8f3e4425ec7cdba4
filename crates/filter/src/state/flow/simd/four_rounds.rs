//! The headers of four packets at once, with AVX-512: a register holds sixteen bytes of each.

use std::arch::x86_64::*;

use super::super::ends::{EndParts, WireEnds};
use super::super::ip_start::{FRAGMENTED, IpStart, LEAST_INET, LEAST_INET6};
use super::flow_loop::{FlowLoop, FourInet, FourInet6, WireHasher, sealed::Sealed};
use super::rounds::Rounds;

/// Proof that the processor has AVX-512 F, BW, DQ and VL, and VAES; made by [`with_avx512`] alone.
#[derive(Clone, Copy)]
struct FourRounds(Rounds);

/// Runs a loop with AVX-512 and AES.
///
/// # Safety
///
/// The processor has the features.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,aes,vaes")]
pub(super) unsafe fn with_avx512<L: FlowLoop>(of: L) -> L::Output {
    // SAFETY: the caller says that the processor has AVX2 and AES, too.
    of.run(FourRounds(unsafe { Rounds::new() }))
}

impl Sealed for FourRounds {}

/// The hash of one flow is that of [`Rounds`].
impl WireHasher for FourRounds {
    #[inline(always)]
    fn of_two(self, keys: &[u64; 4], words: [u64; 2]) -> u64 {
        self.0.of_two(keys, words)
    }

    #[inline(always)]
    fn of_five(self, keys: &[u64; 4], words: [u64; 4], last: u64) -> u64 {
        self.0.of_five(keys, words, last)
    }

    #[inline(always)]
    fn inet(self, keys: &[u64; 4], bytes: [u8; 16], interface: u16) -> (u64, WireEnds, u64) {
        self.0.inet(keys, bytes, interface)
    }

    #[inline(always)]
    fn inet6(self, keys: &[u64; 4], addresses: [u8; 32], ends: EndParts) -> (WireEnds, u64) {
        self.0.inet6(keys, addresses, ends)
    }

    #[inline(always)]
    fn four_inet(
        self,
        keys: &[u64; 4],
        starts: [&IpStart; 4],
        interfaces: [u16; 4],
        packet: u64,
    ) -> Option<FourInet> {
        // SAFETY: `self` proves that the processor has the features.
        unsafe { four_inet(keys, starts, interfaces, packet) }
    }

    #[inline(always)]
    fn four_inet6(
        self,
        keys: &[u64; 4],
        starts: [&IpStart; 4],
        interfaces: [u16; 4],
        packet: u64,
    ) -> Option<FourInet6> {
        // SAFETY: as above.
        unsafe { four_inet6(keys, starts, interfaces, packet) }
    }
}

/// a | b | c
const OR: i32 = 0xfe;
/// (a ^ b) & c
const DIFFERENT: i32 = 0x28;

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,aes,vaes")]
#[inline]
fn four_inet(keys: &[u64; 4], starts: [&IpStart; 4], interfaces: [u16; 4], packet: u64) -> Option<FourInet> {
    /// Addresses, ports, protocol, a zero, and what stands in the place of the checksum.
    const FLOW: u128 = 0x0302_8001_0f0e_0d0c_0b0a_0908_0706_0504;
    const ALL_BUT_INTERFACE: u128 = u128::MAX >> 16;
    let heads =
        lanes([part::<0>(starts[0]), part::<0>(starts[1]), part::<0>(starts[2]), part::<0>(starts[3])]);
    let lengths = _mm512_shuffle_epi8(heads, four_times(LENGTH_OF_INET));
    if is_any_set(_mm512_ternarylogic_epi64::<OR>(
        options_or_fragments(heads),
        few_hops(heads),
        _mm512_subs_epu16(four_times(LEAST_INET.into()), lengths),
    )) {
        return None;
    }
    let ends = lanes([
        _mm_insert_epi16::<1>(part::<8>(starts[0]), interfaces[0].into()),
        _mm_insert_epi16::<1>(part::<8>(starts[1]), interfaces[1].into()),
        _mm_insert_epi16::<1>(part::<8>(starts[2]), interfaces[2].into()),
        _mm_insert_epi16::<1>(part::<8>(starts[3]), interfaces[3].into()),
    ]);
    let flows = _mm512_shuffle_epi8(ends, four_times(FLOW));
    let [first, second] = rounds_of(keys);
    let words = _mm512_and_si512(flows, four_times(ALL_BUT_INTERFACE));
    let mixed = _mm512_aesenc_epi128(_mm512_xor_si512(words, first), second);
    let hashes = _mm512_aesenc_epi128(_mm512_aesenc_epi128(mixed, first), second);
    let counts = _mm512_or_si512(lengths, _mm512_set1_epi64(packet as i64));
    let parts = [flows, _mm512_unpacklo_epi64(hashes, counts)];
    // SAFETY: both types are 128 bytes of plain bits.
    let [flows, counted] = unsafe { std::mem::transmute::<[__m512i; 2], [[[u64; 2]; 4]; 2]>(parts) };
    Some(FourInet { flows, counted })
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,aes,vaes")]
#[inline]
fn four_inet6(
    keys: &[u64; 4],
    starts: [&IpStart; 4],
    interfaces: [u16; 4],
    packet: u64,
) -> Option<FourInet6> {
    /// Ports, two zeros, and what stands in the first two bytes.
    const PORTS_INTERFACE: u128 = NOTHING << 64 | 0x0100_ffff_0f0e_0d0c;
    /// The protocol behind the place of the ports.
    const PROTOCOL: u128 = NOTHING << 40 | 0x06_ffff_ffff;
    const ALL_BUT_INTERFACE: u128 = (1 << 48) - 1;
    let [a, b, c, d] = starts;
    let heads = lanes([part::<0>(a), part::<0>(b), part::<0>(c), part::<0>(d)]);
    let payloads = _mm512_shuffle_epi8(heads, four_times(PAYLOAD_OF_INET6));
    if is_any_set(_mm512_or_si512(
        few_hops_of_inet6(heads),
        _mm512_subs_epu16(four_times(LEAST_INET6.into()), payloads),
    )) {
        return None;
    }
    let sources = lanes([part::<8>(a), part::<8>(b), part::<8>(c), part::<8>(d)]);
    let destinations = lanes([part::<24>(a), part::<24>(b), part::<24>(c), part::<24>(d)]);
    let tails = lanes([
        _mm_insert_epi16::<0>(part::<28>(a), interfaces[0].into()),
        _mm_insert_epi16::<0>(part::<28>(b), interfaces[1].into()),
        _mm_insert_epi16::<0>(part::<28>(c), interfaces[2].into()),
        _mm_insert_epi16::<0>(part::<28>(d), interfaces[3].into()),
    ]);
    let ends = _mm512_or_si512(
        _mm512_shuffle_epi8(tails, four_times(PORTS_INTERFACE)),
        _mm512_shuffle_epi8(heads, four_times(PROTOCOL)),
    );
    let [first, second] = rounds_of(keys);
    let mixed = _mm512_aesenc_epi128(_mm512_xor_si512(sources, first), destinations);
    let mixed = _mm512_aesenc_epi128(mixed, _mm512_and_si512(ends, four_times(ALL_BUT_INTERFACE)));
    let mixed = _mm512_aesenc_epi128(mixed, second);
    let hashes = _mm512_aesenc_epi128(_mm512_aesenc_epi128(mixed, first), second);
    let lengths = _mm512_add_epi16(payloads, four_times(HEADER_OF_INET6));
    let counts = _mm512_or_si512(lengths, _mm512_set1_epi64(packet as i64));
    let counted = _mm512_unpacklo_epi64(hashes, counts);
    let ends = _mm512_castsi512_si256(_mm512_maskz_compress_epi64(0b0101_0101, ends));
    // SAFETY: both types are 64 bytes of plain bits.
    let counted = unsafe { std::mem::transmute::<__m512i, [[u64; 2]; 4]>(counted) };
    // SAFETY: both types are 32 bytes of plain bits.
    let ends = unsafe { std::mem::transmute::<__m256i, [u64; 4]>(ends) };
    Some(FourInet6 { ends, counted })
}

/// Zeros, for a shuffle.
const NOTHING: u128 = u128::MAX;

/// Where the length of the payload stands, as a number of sixteen bits.
const PAYLOAD_OF_INET6: u128 = NOTHING << 16 | 0x0405;

/// What the payload's length is without.
const HEADER_OF_INET6: u128 = 40;

/// Nonzero where there are less than two hops.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn few_hops_of_inet6(heads: __m512i) -> __m512i {
    const HOPS: u128 = 0xff << 56;
    _mm512_and_si512(_mm512_subs_epu8(_mm512_set1_epi8(2), heads), four_times(HOPS))
}

/// Where the total length stands, as a number of sixteen bits.
const LENGTH_OF_INET: u128 = NOTHING << 16 | 0x0203;

/// Nonzero where a header has options, or is of a fragment.
#[target_feature(enable = "avx512f")]
#[inline]
fn options_or_fragments(heads: __m512i) -> __m512i {
    const MASK: u128 = (u16::from_le_bytes(FRAGMENTED) as u128) << 48 | 0xff;
    _mm512_ternarylogic_epi64::<DIFFERENT>(heads, four_times(0x45), four_times(MASK))
}

/// Nonzero where there are less than two hops.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn few_hops(heads: __m512i) -> __m512i {
    const HOPS: u128 = 0xff << 64;
    _mm512_and_si512(_mm512_subs_epu8(_mm512_set1_epi8(2), heads), four_times(HOPS))
}

/// Both keys for each lane, as [`Rounds`] uses them.
#[target_feature(enable = "avx512f")]
#[inline]
fn rounds_of([k0, k1, k2, k3]: &[u64; 4]) -> [__m512i; 2] {
    let pair = |low: u64, high: u64| four_times(u128::from(high) << 64 | u128::from(low));
    [pair(*k0, *k1), pair(*k2, *k3)]
}

#[target_feature(enable = "avx512f")]
#[inline]
fn is_any_set(bits: __m512i) -> bool {
    _mm512_test_epi64_mask(bits, bits) != 0
}

#[target_feature(enable = "avx512f")]
#[inline]
fn lanes([a, b, c, d]: [__m128i; 4]) -> __m512i {
    let lanes = _mm512_inserti32x4::<1>(_mm512_castsi128_si512(a), b);
    _mm512_inserti32x4::<3>(_mm512_inserti32x4::<2>(lanes, c), d)
}

#[target_feature(enable = "sse2")]
#[inline]
fn part<const AT: usize>(start: &IpStart) -> __m128i {
    const { assert!(AT + 16 <= size_of::<IpStart>()) };
    // SAFETY: the sixteen bytes are within the array, as asserted.
    unsafe { _mm_loadu_si128(start.as_ptr().add(AT).cast()) }
}

/// The same sixteen bytes in each lane.
#[target_feature(enable = "avx512f")]
#[inline]
fn four_times(bytes: u128) -> __m512i {
    _mm512_broadcast_i32x4(_mm_set_epi64x((bytes >> 64) as i64, bytes as i64))
}
