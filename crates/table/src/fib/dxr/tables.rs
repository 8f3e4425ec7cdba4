//! The writer's copy of a `dxr` table: the form of chunks and rows, and how changed ones are replaced.

use std::ops::RangeInclusive;

use rustc_hash::FxHashSet;

use crate::prefix::Prefix;
use crate::rib::{Range, Rib};

use super::runs::Runs;

/// Bits of an address that choose a chunk.
pub(super) const TRIE_BITS: u8 = 20;
/// Chunks of the address space.
pub(super) const CHUNKS: usize = 1 << TRIE_BITS;
/// Bits of an address within its chunk.
pub(super) const CHUNK_BITS: u32 = 32 - TRIE_BITS as u32;
pub(super) const IN_CHUNK: u32 = (1 << CHUNK_BITS) - 1;
/// The possible values of D; rows are numbered with 16 bits.
pub(super) const DIRECT_BITS: RangeInclusive<u8> = 9..=16;

/// A chunk's descriptor: a next hop, or the number of its ranges above [`BASE_BITS`] bits of where they start.
///
/// ```text
///   0  0 0000 0000  next hop         one next hop
///   0  n n n n …    base             n ranges of four bytes, 2 to 510
///   0  1 1111 1111  base             many: the first word is their number, the ranges follow
///   1  n - 1        base             n ranges of two bytes
/// ```
pub(super) const BASE_BITS: u32 = 22;
pub(super) const BASE: u32 = (1 << BASE_BITS) - 1;
pub(super) const SHORT: u32 = 1 << 31;
pub(super) const COUNT: u32 = !(SHORT | BASE);
/// The count of a chunk with more ranges than the descriptor can count.
pub(super) const MANY: u32 = COUNT;
/// Most words of ranges, as in FreeBSD: descriptors reach no further.
pub(super) const MOST_WORDS: usize = 1 << BASE_BITS;

/// A short range has four bits of start and twelve of next hop, a long one sixteen of each.
pub(super) const SHORT_HOP_BITS: u32 = 12;
pub(super) const LONG_HOP_BITS: u32 = 16;
/// Bits of an address that a short start leaves out.
pub(super) const SHORT_START_SHIFT: u32 = 8;

/// The lowest bits.
pub(super) const fn low_bits(bits: u32) -> u32 {
    (1 << bits) - 1
}

/// The tables in parts that can be replaced separately.
pub(super) struct DxrTables {
    /// The number of bits D that index the direct table.
    pub(super) direct_bits: u8,
    /// The place in `rows` of each row of the direct table.
    pub(super) direct: Vec<usize>,
    pub(super) rows: Runs,
    /// All descriptors in order, as the rows hold them.
    chunks: Vec<u32>,
    pub(super) ranges: Runs,
}

impl DxrTables {
    /// Compiles ranges that cover the address space in order.
    pub(super) fn compile(all: impl Iterator<Item = Range<u32>>) -> Self {
        let (mut chunks, mut ranges) = (vec![0; CHUNKS], Runs::default());
        each_chunk(all, |number, pieces| chunks[number] = describe(&mut ranges, pieces));
        let direct_bits = choose_direct_bits(&chunks);
        let mut rows = Runs::default();
        let direct = chunks.chunks_exact(CHUNKS >> direct_bits).map(|row| rows.share(row)).collect();
        DxrTables { direct_bits, direct, rows, chunks, ranges }
    }

    /// Brings chunks up to the RIB; their numbers ascend.
    pub(super) fn recompile(&mut self, rib: &Rib<u32>, dirty: &[usize]) {
        let row_len = CHUNKS >> self.direct_bits;
        for in_one_row in dirty.chunk_by(|a, b| a / row_len == b / row_len) {
            let row = in_one_row[0] / row_len;
            // The row is released first, so that its replacement can use the same place.
            self.rows.release(self.direct[row], row_len);
            for &number in in_one_row {
                forget(&mut self.ranges, self.chunks[number]);
                let prefix = Prefix::containing((number as u32) << CHUNK_BITS, TRIE_BITS);
                let within = rib.ranges_within(prefix);
                each_chunk(within, |number, pieces| self.chunks[number] = describe(&mut self.ranges, pieces));
            }
            self.direct[row] = self.rows.share(&self.chunks[row * row_len..][..row_len]);
        }
    }
}

/// Cuts ranges at the borders of chunks, and calls `chunk` with the number of each chunk and its long ranges.
fn each_chunk(ranges: impl Iterator<Item = Range<u32>>, mut chunk: impl FnMut(usize, &[u32])) {
    let mut pieces = Vec::new();
    for range in ranges {
        let mut first = range.first;
        loop {
            pieces.push((first & IN_CHUNK) << LONG_HOP_BITS | u32::from(range.next_hop.0));
            let end = first | IN_CHUNK;
            if range.last < end {
                break;
            }
            chunk((first >> CHUNK_BITS) as usize, &pieces);
            pieces.clear();
            if range.last == end {
                break;
            }
            first = end + 1;
        }
    }
}

/// Converts the ranges to short ones, two in a word, if that is possible; the last one is repeated if their number is
/// odd.
fn shortened(pieces: &[u32]) -> Option<Vec<u32>> {
    let short = |piece: &u32| {
        let (start, hop) = (piece >> LONG_HOP_BITS, piece & low_bits(LONG_HOP_BITS));
        let fits = start % (1 << SHORT_START_SHIFT) == 0 && hop <= low_bits(SHORT_HOP_BITS);
        fits.then_some(start >> SHORT_START_SHIFT << SHORT_HOP_BITS | hop)
    };
    let short: Vec<u32> = pieces.iter().map(short).collect::<Option<_>>()?;
    Some(short.chunks(2).map(|pair| pair[pair.len() - 1] << 16 | pair[0]).collect())
}

/// Stores the ranges of a chunk and returns its descriptor. A base beyond the reach of descriptors is detected before
/// anything is published.
fn describe(ranges: &mut Runs, pieces: &[u32]) -> u32 {
    if let [only] = pieces {
        return only & low_bits(LONG_HOP_BITS);
    }
    let count = pieces.len() as u32; // at most 4,096
    let (kind, base) = if let Some(short) = shortened(pieces) {
        (SHORT | (count - 1) << BASE_BITS, ranges.share(&short))
    } else if count < MANY >> BASE_BITS {
        (count << BASE_BITS, ranges.share(pieces))
    } else {
        (MANY, ranges.share(&[&[count], pieces].concat()))
    };
    kind | (base as u32 & BASE)
}

/// Releases the ranges that [`describe`] stored.
fn forget(ranges: &mut Runs, descriptor: u32) {
    let (base, count) = ((descriptor & BASE) as usize, (descriptor & COUNT) >> BASE_BITS);
    let len = match (descriptor & SHORT, count) {
        (0, 0) => return,
        (0, count) if count == MANY >> BASE_BITS => ranges.words()[base] as usize + 1,
        (0, count) => count as usize,
        (_, count) => count as usize / 2 + 1,
    };
    ranges.release(base, len);
}

pub(super) fn direct_bytes(direct_bits: u8) -> usize {
    size_of::<u16>() << direct_bits
}

/// Chooses D: from 16 downwards, as long as direct table and rows together shrink.
fn choose_direct_bits(chunks: &[u32]) -> u8 {
    let bytes = |bits: u8| {
        let rows: FxHashSet<&[u32]> = chunks.chunks_exact(CHUNKS >> bits).collect();
        direct_bytes(bits) + size_of_val(chunks) / (1 << bits) * rows.len()
    };
    let (mut best, mut size) = (*DIRECT_BITS.end(), bytes(*DIRECT_BITS.end()));
    for bits in DIRECT_BITS.rev().skip(1) {
        let smaller = bytes(bits);
        if smaller >= size {
            break;
        }
        (best, size) = (bits, smaller);
    }
    best
}
