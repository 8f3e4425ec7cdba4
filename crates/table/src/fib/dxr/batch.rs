//! Many lookups at once, sixteen in a vector.

use std::array;

use crate::nexthop::NextHop;
use crate::simd::{Kernel, LANES, Lanes};

use super::snapshot::Snapshot;
use super::tables::{
    BASE, BASE_BITS, CHUNK_BITS, COUNT, IN_CHUNK, LONG_HOP_BITS, MANY, SHORT, SHORT_HOP_BITS,
    SHORT_START_SHIFT, TRIE_BITS, low_bits,
};

/// The work of one call.
pub(super) struct Batch<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) addrs: &'a [u32],
    pub(super) next_hops: &'a mut [NextHop],
}

/// Vectors that bisect in step: every step waits for memory, and the waits overlap.
const VECTORS: usize = 4;

impl Kernel for Batch<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let count = self.addrs.len().min(self.next_hops.len());
        let (addrs, out) = (&self.addrs[..count], &mut self.next_hops[..count]);
        if !L::IN_REGISTERS {
            return lookup_each(self.snapshot, addrs, out);
        }
        let (chunks, rest) = addrs.as_chunks::<LANES>();
        let (chunks_out, rest_out) = out.as_chunks_mut::<LANES>();
        let (blocks, chunks) = chunks.as_chunks::<VECTORS>();
        let (out, chunks_out) = chunks_out.as_chunks_mut::<VECTORS>();
        for (block, out) in blocks.iter().zip(out) {
            lookup_vectors::<L, VECTORS>(lanes, self.snapshot, block, out);
        }
        for (chunk, out) in chunks.iter().zip(chunks_out) {
            lookup_vectors::<L, 1>(lanes, self.snapshot, array::from_ref(chunk), array::from_mut(out));
        }
        lookup_each(self.snapshot, rest, rest_out);
    }
}

fn lookup_each(snapshot: &Snapshot, addrs: &[u32], next_hops: &mut [NextHop]) {
    for (addr, next_hop) in addrs.iter().zip(next_hops) {
        *next_hop = snapshot.find(*addr);
    }
}

/// The state of sixteen bisections.
#[derive(Clone, Copy)]
struct Bisection<L: Lanes> {
    /// The word of the first range.
    base: L::U32,
    /// 1 in lanes whose chunk has short ranges, two a word.
    short: L::U32,
    /// The value that the range found must not exceed.
    key: L::U32,
    /// The range reached so far, and its number.
    found: L::U32,
    at: L::U32,
    /// The number of ranges left to search; 0 in lanes that have their answer.
    left: L::U32,
}

#[inline(always)]
fn lookup_vectors<L: Lanes, const N: usize>(
    lanes: L,
    snapshot: &Snapshot,
    addrs: &[[u32; LANES]; N],
    out: &mut [[NextHop; LANES]; N],
) {
    let zero = lanes.splat(0);
    let nothing = Bisection::<L> { base: zero, short: zero, key: zero, found: zero, at: zero, left: zero };
    let mut searches = [nothing; N];
    for v in 0..N {
        let addr = lanes.load(&addrs[v]);
        searches[v] = begin(lanes, snapshot, addr, descriptors(lanes, snapshot, addr));
    }
    let several = lanes.splat(!1);
    loop {
        let mut open = false;
        for search in &mut searches {
            let unfinished = lanes.test(search.left, several);
            if lanes.any(unfinished) {
                step(lanes, snapshot, search, unfinished);
                open = true;
            }
        }
        if !open {
            break;
        }
    }
    for v in 0..N {
        let search = &searches[v];
        let is_short = lanes.test(search.short, lanes.splat(1));
        let mask = lanes.select(
            is_short,
            lanes.splat(low_bits(SHORT_HOP_BITS)),
            lanes.splat(low_bits(LONG_HOP_BITS)),
        );
        lanes.store_next_hops(lanes.and(search.found, mask), &mut out[v]);
    }
}

#[inline(always)]
fn descriptors<L: Lanes>(lanes: L, snapshot: &Snapshot, addr: L::U32) -> L::U32 {
    let row_bits = u32::from(TRIE_BITS - snapshot.direct_bits);
    let row = lanes.gather(snapshot.direct.words(), lanes.shr_by(addr, lanes.splat(CHUNK_BITS + row_bits)));
    let in_row = lanes.and(lanes.shr::<CHUNK_BITS>(addr), lanes.splat(low_bits(row_bits)));
    lanes.gather(snapshot.rows.words(), lanes.or(lanes.shl_by(row, lanes.splat(row_bits)), in_row))
}

/// Reads the first range of each lane that has ranges; in the others the descriptor is the answer.
#[inline(always)]
fn begin<L: Lanes>(lanes: L, snapshot: &Snapshot, addr: L::U32, descriptor: L::U32) -> Bisection<L> {
    let ranges = snapshot.ranges.words();
    let base = lanes.and(descriptor, lanes.splat(BASE));
    let short = lanes.shr::<31>(descriptor);
    let is_short = lanes.test(descriptor, lanes.splat(SHORT));
    let count = lanes.shr::<BASE_BITS>(lanes.and(descriptor, lanes.splat(COUNT)));
    let has_ranges = lanes.test(descriptor, lanes.splat(SHORT | COUNT));
    let in_chunk = lanes.and(addr, lanes.splat(IN_CHUNK));
    let short_key = lanes.or(
        lanes.shl::<SHORT_HOP_BITS>(lanes.shr::<SHORT_START_SHIFT>(in_chunk)),
        lanes.splat(low_bits(SHORT_HOP_BITS)),
    );
    let long_key = lanes.or(lanes.shl::<LONG_HOP_BITS>(in_chunk), lanes.splat(low_bits(LONG_HOP_BITS)));
    let first = lanes.gather_where(has_ranges, ranges, base, base);
    let mut search = Bisection {
        base,
        short,
        key: lanes.select(is_short, short_key, long_key),
        found: first,
        at: lanes.splat(0),
        left: lanes.add(count, short),
    };
    // A chunk of short ranges never has so many.
    let many = lanes.at_most(lanes.splat(MANY >> BASE_BITS), count);
    if lanes.any(many) {
        // The word read is the number of ranges, and the ranges follow it.
        search.base = lanes.select(many, lanes.add(base, lanes.splat(1)), base);
        search.left = lanes.select(many, first, search.left);
        search.found = lanes.gather_where(many, ranges, search.base, first);
    }
    search
}

/// Halves the ranges left in the lanes of `unfinished`. The other lanes do not change, because half of their ranges
/// left is 0.
#[inline(always)]
fn step<L: Lanes>(lanes: L, snapshot: &Snapshot, search: &mut Bisection<L>, unfinished: L::Mask) {
    let half = lanes.shr::<1>(search.left);
    let middle = lanes.add(search.at, half);
    let index = lanes.add(search.base, lanes.shr_by(middle, search.short));
    let word = lanes.gather_where(unfinished, snapshot.ranges.words(), index, search.found);
    let is_short = lanes.test(search.short, lanes.splat(1));
    let in_half = lanes.shr_by(word, lanes.shl::<4>(lanes.and(middle, lanes.splat(1))));
    let range = lanes.select(is_short, lanes.and(in_half, lanes.splat(0xffff)), word);
    let below = lanes.at_most(range, search.key);
    search.at = lanes.select(below, middle, search.at);
    search.found = lanes.select(unfinished, lanes.select(below, range, search.found), search.found);
    search.left = lanes.sub(search.left, half);
}
