//! Many lookups at once: vectors find the leaves, plain loads read them.
//!
//! Per address this is a lane of a gather and four plain instructions. The leaves of one vector are read three turns
//! after they were found, so that index entries and leaves of some sixty addresses are on their way at a time. A second
//! gather for the leaves, plain loads for the index and prefetches within the batch were all slower, and so was any way
//! to look for [`PARTED`] but a branch at each answer (`docs/algorithms/dir18.md` has the figures).

use crate::nexthop::NextHop;
use crate::simd::{Kernel, LANES, Lanes, Places, Word16, Word32, Words};

use super::entry::{BLOCK_BITS, Entry};
use super::{PARTED, Table};

/// One call's work.
pub(super) struct Batch<'a> {
    pub(super) table: &'a Table,
    pub(super) addrs: &'a [u32],
    pub(super) next_hops: &'a mut [NextHop],
}

/// Turns between finding leaves and reading them.
const AHEAD: usize = 3;

/// Leaves that were found, of one vector more than the turns ahead: a power of two, to count round in.
type Found<'t> = Places<'t, Word16, { AHEAD + 1 }>;

impl Kernel for Batch<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let count = self.addrs.len().min(self.next_hops.len());
        let (addrs, next_hops) = (&self.addrs[..count], &mut self.next_hops[..count]);
        if !L::IN_REGISTERS {
            return lookup_each(self.table, addrs, next_hops);
        }
        let (chunks, rest) = addrs.as_chunks::<LANES>();
        let (out, rest_out) = next_hops.as_chunks_mut::<LANES>();
        lookup_chunks(lanes, self.table, chunks, out);
        lookup_each(self.table, rest, rest_out);
    }
}

#[inline(always)]
fn lookup_each(table: &Table, addrs: &[u32], next_hops: &mut [NextHop]) {
    for (addr, next_hop) in addrs.iter().zip(next_hops) {
        *next_hop = table.lookup(*addr);
    }
}

#[inline(always)]
fn lookup_chunks<L: Lanes>(lanes: L, table: &Table, chunks: &[[u32; LANES]], out: &mut [[NextHop; LANES]]) {
    let index = table.index.words();
    let mut found = Found::new(table.leaves.ring());
    for turn in 0..chunks.len() + AHEAD {
        if let Some(addrs) = chunks.get(turn) {
            found.set(lanes, turn % (AHEAD + 1), find(lanes, index, addrs));
        }
        if let Some(read) = turn.checked_sub(AHEAD) {
            answer(table, &found, read % (AHEAD + 1), &chunks[read], &mut out[read]);
        }
    }
}

/// The leaves of these addresses.
#[inline(always)]
fn find<L: Lanes>(lanes: L, index: Words<'_, Word32>, addrs: &[u32; LANES]) -> L::U32 {
    let addrs = lanes.load(addrs);
    let entries = lanes.gather(index, lanes.shr::<{ BLOCK_BITS as u32 }>(addrs));
    leaf(lanes, entries, addrs)
}

/// [`Entry::leaf`], for each lane.
#[inline(always)]
fn leaf<L: Lanes>(lanes: L, entries: L::U32, addrs: L::U32) -> L::U32 {
    let shift = lanes.and(entries, lanes.splat((1 << Entry::SHIFT_BITS) - 1));
    lanes.add(lanes.shr::<{ Entry::SHIFT_BITS }>(entries), lanes.shr_by(addrs, shift))
}

#[inline(always)]
fn answer(table: &Table, found: &Found, number: usize, addrs: &[u32; LANES], out: &mut [NextHop; LANES]) {
    for ((leaf, addr), next_hop) in found.get(number).zip(addrs).zip(out) {
        *next_hop = NextHop(leaf as u16);
        if *next_hop == PARTED {
            *next_hop = lookup_anew(table, *addr);
        }
    }
}

/// The rare way, kept out of the loop.
#[cold]
#[inline(never)]
fn lookup_anew(table: &Table, addr: u32) -> NextHop {
    table.lookup(addr)
}
