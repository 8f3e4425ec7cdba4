//! Many lookups at once, sixteen a turn.
//!
//! Index entries and leaves are loaded one by one into vectors; all other operations are vector arithmetic. The leaves
//! of one vector are read three turns after they were found, so that loads of index entries and leaves for some sixty
//! addresses are in flight at a time. Gathers, prefetches within the batch and a branch at each answer were all slower
//! (`docs/algorithms/dir18.md` has the figures).

use crate::memory::{Top, Word, prefetch_beyond};
use crate::nexthop::NextHop;
use crate::simd::{Kernel, LANES, Lanes, Places};

use super::entry::{BlockEntry, INDEX_BITS};
use super::table::Dir18Table;

/// The work of one call.
pub(super) struct Batch<'a, W: Word> {
    pub(super) table: &'a Dir18Table<W>,
    pub(super) addrs: &'a [u32],
    pub(super) next_hops: &'a mut [NextHop],
}

/// Turns between finding leaves and reading them.
const AHEAD: usize = 3;

/// How far ahead of its use an address is prefetched, in bytes, beyond the end of the batch too: a caller that looks up
/// a long row of addresses batch by batch then has them in the cache in time. For other callers this costs one
/// instruction in sixteen lookups.
const ADDRS_AHEAD: usize = 2048;

/// Leaves that were found, one vector more than [`AHEAD`]: a power of two, so that the number of a vector wraps.
type FoundLeaves<'t, W> = Places<'t, W, { AHEAD + 1 }>;

impl<W: Word> Kernel for Batch<'_, W> {
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
fn lookup_each<W: Word>(table: &Dir18Table<W>, addrs: &[u32], next_hops: &mut [NextHop]) {
    for (addr, next_hop) in addrs.iter().zip(next_hops) {
        *next_hop = table.lookup(*addr);
    }
}

#[inline(always)]
fn lookup_chunks<L: Lanes, W: Word>(
    lanes: L,
    table: &Dir18Table<W>,
    chunks: &[[u32; LANES]],
    out: &mut [[NextHop; LANES]],
) {
    let top = table.top();
    let mut found = FoundLeaves::new(table.leaves.ring());
    for turn in 0..chunks.len() + AHEAD {
        if let Some(addrs) = chunks.get(turn) {
            prefetch_beyond(addrs, ADDRS_AHEAD);
            found.set(lanes, turn % (AHEAD + 1), find(lanes, top, addrs));
        }
        if let Some(read) = turn.checked_sub(AHEAD) {
            let any_parted = found.read(lanes, read % (AHEAD + 1), &mut out[read]);
            if any_parted {
                answer_parted(table, &chunks[read], &mut out[read]);
            }
        }
    }
}

/// Finds the leaves of these addresses.
#[inline(always)]
fn find<L: Lanes>(lanes: L, top: Top<'_, { INDEX_BITS as u32 }>, addrs: &[u32; LANES]) -> L::U32 {
    leaf(lanes, lanes.read_top(top, addrs), lanes.load(addrs))
}

/// [`BlockEntry::leaf`], for each lane.
#[inline(always)]
fn leaf<L: Lanes>(lanes: L, entries: L::U32, addrs: L::U32) -> L::U32 {
    let shift = lanes.and(entries, lanes.splat((1 << BlockEntry::SHIFT_BITS) - 1));
    lanes.add(lanes.shr::<{ BlockEntry::SHIFT_BITS }>(entries), lanes.shr_by(addrs, shift))
}

/// The rare case, kept out of the loop.
#[cold]
#[inline(never)]
fn answer_parted<W: Word>(table: &Dir18Table<W>, addrs: &[u32; LANES], out: &mut [NextHop; LANES]) {
    for (addr, next_hop) in addrs.iter().zip(out) {
        if *next_hop == Dir18Table::<W>::PARTED {
            *next_hop = table.lookup(*addr);
        }
    }
}
