//! `dpdk_lpm4`: DIR-24-8 after DPDK's `rte_lpm`. A lookup takes one memory access for a prefix up to /24, two beyond.

use std::sync::Arc;

use crate::memory::{AtomicEntry as _, Word, Word16, Word32, Words, prefetch};
use crate::nexthop::NextHop;
use crate::rib::{Change, Range, Rib, Summary};
use crate::simd::{self, Isa, IsaChoice, Kernel, LANES, Lanes};

use super::tbl24::{Tbl24, groups_needed};
use super::{Algorithm, CompileError, Fib, Footprint, Instance, Outcome};

const NAME: &str = "dpdk_lpm4";

/// The algorithm, with the instruction set of its batches.
pub struct DpdkLpm4(pub IsaChoice);

/// The table as readers and the writer share it: entries of two bytes, or of four if two cannot number all next hops
/// and groups. For the reason of its alignment see [`CachePadded`](crate::memory::CachePadded).
#[repr(align(128))]
struct Dir24x8<W> {
    table: Tbl24<W>,
    isa: Isa,
}

impl<W: Word> Fib<u32> for Dir24x8<W> {
    fn lookup(&self, addr: u32) -> NextHop {
        self.table.lookup(addr)
    }

    fn lookup_batch(&self, addrs: &[u32], next_hops: &mut [NextHop]) {
        if addrs.len() < VECTORS_FROM {
            lookup_each(&self.table, addrs, next_hops);
        } else {
            simd::run(self.isa, Batch { table: &self.table, addrs, next_hops });
        }
    }

    fn prefetch(&self, addrs: &[u32]) {
        prefetch_top(&self.table, addrs);
    }

    fn footprint(&self) -> Footprint {
        self.table.footprint()
    }
}

impl<W: Word> Instance<u32> for Arc<Dir24x8<W>> {
    fn fib(&self) -> Arc<dyn Fib<u32>> {
        Arc::<Dir24x8<W>>::clone(self)
    }

    fn patch(&mut self, rib: &Rib<u32>, changes: &[Change<u32>]) -> Outcome {
        let fits = u32::from(rib.highest_next_hop().0) <= Tbl24::<W>::MAX_VALUE;
        match fits && self.table.patch(rib, changes).is_ok() {
            true => Outcome::Applied,
            false => Outcome::Rebuild,
        }
    }
}

/// Batches from this length on use vectors, and prefetch within the batch. In shorter ones the core overlaps the misses
/// of plain loads by itself, and plain loads are faster than gathers if the entries are cached (`docs/measurements/lookups.md` has
/// the figures).
const VECTORS_FROM: usize = 128;

/// Looks up one address after the other by plain loads. A turn has eight, because the loop around one lookup is as long
/// as the lookup.
#[inline(always)]
fn lookup_each<W: Word>(table: &Tbl24<W>, addrs: &[u32], next_hops: &mut [NextHop]) {
    let top = table.top();
    let one = |addr: &u32, next_hop: &mut NextHop| {
        let entry = top[(addr >> 8) as usize].get();
        *next_hop = if entry & W::TOP_BIT == 0 { NextHop(entry as u16) } else { lookup_long(table, *addr) };
    };
    let count = addrs.len().min(next_hops.len());
    let (turns, rest) = addrs[..count].as_chunks::<8>();
    let (turns_out, rest_out) = next_hops[..count].as_chunks_mut::<8>();
    for (addrs, next_hops) in turns.iter().zip(turns_out) {
        addrs.iter().zip(next_hops).for_each(|(addr, next_hop)| one(addr, next_hop));
    }
    rest.iter().zip(rest_out).for_each(|(addr, next_hop)| one(addr, next_hop));
}

/// The rare case, kept out of the loop so that the loop has only a load, a test and a store.
#[cold]
#[inline(never)]
fn lookup_long<W: Word>(table: &Tbl24<W>, addr: u32) -> NextHop {
    table.lookup(addr)
}

/// The work of one call.
struct Batch<'a, W> {
    table: &'a Tbl24<W>,
    addrs: &'a [u32],
    next_hops: &'a mut [NextHop],
}

/// How many vectors ahead of the gathers the top table is prefetched. A core overlaps the misses of two gathers by
/// itself, so prefetching begins to help here. Further ahead it gains little more on an uncached table, and costs a
/// third of the rate if the lines of the flows are in the second-level cache already.
const AHEAD: usize = 2;

impl<W: Word> Kernel for Batch<'_, W> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let count = self.addrs.len().min(self.next_hops.len());
        let (chunks, rest) = self.addrs[..count].as_chunks::<LANES>();
        let (out, rest_out) = self.next_hops[..count].as_chunks_mut::<LANES>();
        for (i, (chunk, out)) in chunks.iter().zip(out).enumerate() {
            if let Some(later) = chunks.get(i + AHEAD) {
                prefetch_top(self.table, later);
            }
            lookup_chunk(lanes, self.table, chunk, out);
        }
        lookup_each(self.table, rest, rest_out);
    }
}

#[inline(always)]
fn prefetch_top<W: Word>(table: &Tbl24<W>, addrs: &[u32]) {
    for addr in addrs {
        prefetch(table.top.as_slice(), (addr >> 8) as usize / W::ENTRIES);
    }
}

#[inline(always)]
fn lookup_chunk<L: Lanes, W: Word>(
    lanes: L,
    table: &Tbl24<W>,
    addrs: &[u32; LANES],
    out: &mut [NextHop; LANES],
) {
    if L::IN_REGISTERS {
        let addrs = lanes.load(addrs);
        lanes.store_next_hops(lookup_lanes(lanes, table.top.words(), table.groups.words(), addrs), out);
    } else {
        lookup_each(table, addrs, out);
    }
}

#[inline(always)]
fn lookup_lanes<L: Lanes, W: Word>(
    lanes: L,
    top: Words<'_, W>,
    groups: Words<'_, W>,
    addrs: L::U32,
) -> L::U32 {
    let entry = lanes.gather(top, lanes.shr::<8>(addrs));
    let in_group = lanes.test(entry, lanes.splat(W::TOP_BIT));
    if !lanes.any(in_group) {
        return entry;
    }
    let number = lanes.and(entry, lanes.splat(W::TOP_BIT - 1));
    let index = lanes.or(lanes.shl::<8>(number), lanes.and(addrs, lanes.splat(0xff)));
    lanes.gather_where(in_group, groups, index, entry)
}

impl Algorithm<u32> for DpdkLpm4 {
    fn name(&self) -> &'static str {
        NAME
    }

    /// FreeBSD's `rte_get_pref`: the 32 MiB pay off more, the larger the table is.
    fn preference(&self, summary: &Summary) -> u8 {
        match summary.prefixes {
            0..10 => 1,
            prefixes @ 10..1_000 => (prefixes / 10) as u8,
            prefixes @ 1_000..500_000 => 100 + (prefixes / 3_334) as u8,
            _ => 250,
        }
    }

    fn compile(&self, rib: &Rib<u32>) -> Result<Box<dyn Instance<u32>>, CompileError> {
        let ranges: Vec<_> = rib.ranges().collect();
        let groups = groups_needed(&ranges);
        let numbers = groups.max(rib.highest_next_hop().index() + 1);
        let isa = self.0.resolve();
        if numbers <= Tbl24::<Word16>::MAX_VALUE as usize + 1 {
            instance::<Word16>(isa, &ranges, groups)
        } else {
            instance::<Word32>(isa, &ranges, groups)
        }
    }
}

fn instance<W: Word>(
    isa: Isa,
    ranges: &[Range<u32>],
    groups: usize,
) -> Result<Box<dyn Instance<u32>>, CompileError> {
    let table = Tbl24::<W>::build(NAME, ranges, groups)?;
    Ok(Box::new(Arc::new(Dir24x8 { table, isa })))
}
