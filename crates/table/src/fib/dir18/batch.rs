//! Many lookups at once: vectors for the index, plain loads for the leaves.
//!
//! Per address this is a gather lane and six plain instructions, and the leaves of one vector pair are fetched while the
//! index entries of the next are on their way. Gathers for both steps, plain loads for both, and prefetches within the
//! batch are all slower (`docs/algorithms/dir18.md` has the figures).

use crate::nexthop::NextHop;
use crate::simd::{Kernel, LANES, Lanes};

use super::entry::{BLOCK_BITS, Entry};
use super::{PARTED, Table};

/// One call's work.
pub(super) struct Batch<'a> {
    pub(super) table: &'a Table,
    pub(super) addrs: &'a [u32],
    pub(super) next_hops: &'a mut [NextHop],
}

/// Addresses of two vectors: enough to have two gathers under way.
const PAIR: usize = 2 * LANES;

impl Kernel for Batch<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let count = self.addrs.len().min(self.next_hops.len());
        let (addrs, next_hops) = (&self.addrs[..count], &mut self.next_hops[..count]);
        let (pairs, rest) = addrs.as_chunks::<PAIR>();
        let (pairs_out, rest_out) = next_hops.as_chunks_mut::<PAIR>();
        if L::IN_REGISTERS {
            lookup_pairs(lanes, self.table, pairs, pairs_out);
            lookup_each(self.table, rest, rest_out);
        } else {
            lookup_each(self.table, addrs, next_hops);
        }
    }
}

#[inline(always)]
fn lookup_each(table: &Table, addrs: &[u32], next_hops: &mut [NextHop]) {
    for (addr, next_hop) in addrs.iter().zip(next_hops) {
        *next_hop = table.lookup(*addr);
    }
}

#[inline(always)]
fn lookup_pairs<L: Lanes>(lanes: L, table: &Table, pairs: &[[u32; PAIR]], out: &mut [[NextHop; PAIR]]) {
    let Some((first, others)) = pairs.split_first() else { return };
    let mut leaves = find_leaves(lanes, table, first);
    for (pair, out) in others.iter().zip(&mut *out) {
        let next = find_leaves(lanes, table, pair);
        fetch(lanes, table, leaves, out);
        leaves = next;
    }
    fetch(lanes, table, leaves, &mut out[others.len()]);
    for (pair, out) in pairs.iter().zip(out) {
        if lanes.contains(out, PARTED) {
            lookup_parted(table, pair, out);
        }
    }
}

/// The numbers of the leaves that answer these addresses.
#[inline(always)]
fn find_leaves<L: Lanes>(lanes: L, table: &Table, addrs: &[u32; PAIR]) -> [L::U32; 2] {
    let (halves, _) = addrs.as_chunks::<LANES>();
    let (low, high) = (lanes.load(&halves[0]), lanes.load(&halves[1]));
    let index = table.index.words();
    let entries = [
        lanes.gather(index, lanes.shr::<{ BLOCK_BITS as u32 }>(low)),
        lanes.gather(index, lanes.shr::<{ BLOCK_BITS as u32 }>(high)),
    ];
    [leaf(lanes, entries[0], low), leaf(lanes, entries[1], high)]
}

/// [`Entry::leaf`], for each lane.
#[inline(always)]
fn leaf<L: Lanes>(lanes: L, entries: L::U32, addrs: L::U32) -> L::U32 {
    let shift = lanes.and(entries, lanes.splat((1 << Entry::SHIFT_BITS) - 1));
    lanes.add(lanes.shr::<{ Entry::SHIFT_BITS }>(entries), lanes.shr_by(addrs, shift))
}

#[inline(always)]
fn fetch<L: Lanes>(lanes: L, table: &Table, leaves: [L::U32; 2], out: &mut [NextHop; PAIR]) {
    let (halves, _) = out.as_chunks_mut::<LANES>();
    let ring = table.leaves.ring();
    lanes.fetch(ring, leaves[0], &mut halves[0]);
    lanes.fetch(ring, leaves[1], &mut halves[1]);
}

/// Answers anew what lies in a part with an array of its own.
#[cold]
#[inline(never)]
fn lookup_parted(table: &Table, addrs: &[u32; PAIR], out: &mut [NextHop; PAIR]) {
    for (addr, next_hop) in addrs.iter().zip(out).filter(|(_, next_hop)| **next_hop == PARTED) {
        *next_hop = table.lookup(*addr);
    }
}
