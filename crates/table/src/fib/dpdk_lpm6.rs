//! `dpdk_lpm6`: a multibit trie after DPDK's `rte_lpm6`: 24 bits, then 8 bits a step; four accesses for a /48.

use std::array;
use std::sync::Arc;

use crate::memory::{Word as _, Word32, Words, prefetch};
use crate::nexthop::NextHop;
use crate::rib::{Change, Rib, Summary};
use crate::simd::{self, Isa, IsaChoice, Kernel, LANES, Lanes};

use super::tbl24::{Tbl24, groups_needed};
use super::{Algorithm, CompileError, Fib, Footprint, Instance, Outcome};

const NAME: &str = "dpdk_lpm6";

/// The algorithm, with the instruction set of its batches.
pub struct DpdkLpm6(pub IsaChoice);

/// The trie as readers and the writer share it. A full view needs more groups than 15 bits can number, so entries have
/// four bytes. For the reason of its alignment see [`CachePadded`](crate::memory::CachePadded).
#[repr(align(128))]
struct Trie {
    table: Tbl24<Word32>,
    isa: Isa,
}

impl Fib<u128> for Trie {
    fn lookup(&self, addr: u128) -> NextHop {
        self.table.lookup(addr)
    }

    fn lookup_batch(&self, addrs: &[u128], next_hops: &mut [NextHop]) {
        simd::run(self.isa, Batch { table: &self.table, addrs, next_hops });
    }

    fn prefetch(&self, addrs: &[u128]) {
        prefetch_top(&self.table, addrs);
    }

    fn footprint(&self) -> Footprint {
        self.table.footprint()
    }
}

impl Instance<u128> for Arc<Trie> {
    fn fib(&self) -> Arc<dyn Fib<u128>> {
        Arc::<Trie>::clone(self)
    }

    fn patch(&mut self, rib: &Rib<u128>, changes: &[Change<u128>]) -> Outcome {
        match self.table.patch(rib, changes) {
            Ok(()) => Outcome::Applied,
            Err(_) => Outcome::Rebuild,
        }
    }
}

/// The work of one call.
struct Batch<'a> {
    table: &'a Tbl24<Word32>,
    addrs: &'a [u128],
    next_hops: &'a mut [NextHop],
}

/// Vectors that advance in step: every step waits for memory, and the waits of 64 lookups overlap.
const VECTORS: usize = 4;

impl Kernel for Batch<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let count = self.addrs.len().min(self.next_hops.len());
        let (chunks, rest) = self.addrs[..count].as_chunks::<LANES>();
        let (chunks_out, rest_out) = self.next_hops[..count].as_chunks_mut::<LANES>();
        let (blocks, chunks) = chunks.as_chunks::<VECTORS>();
        let (out, chunks_out) = chunks_out.as_chunks_mut::<VECTORS>();
        for (i, (block, out)) in blocks.iter().zip(out).enumerate() {
            if let Some(next) = blocks.get(i + 1) {
                prefetch_top(self.table, next.as_flattened());
            }
            lookup_chunks::<L, VECTORS>(lanes, self.table, block, out);
        }
        for (chunk, out) in chunks.iter().zip(chunks_out) {
            lookup_chunks::<L, 1>(lanes, self.table, array::from_ref(chunk), array::from_mut(out));
        }
        for (addr, out) in rest.iter().zip(rest_out) {
            *out = self.table.lookup(*addr);
        }
    }
}

#[inline(always)]
fn prefetch_top(table: &Tbl24<Word32>, addrs: &[u128]) {
    for addr in addrs {
        prefetch(table.top.as_slice(), (addr >> 104) as usize);
    }
}

#[inline(always)]
fn lookup_chunks<L: Lanes, const N: usize>(
    lanes: L,
    table: &Tbl24<Word32>,
    addrs: &[[u128; LANES]; N],
    out: &mut [[NextHop; LANES]; N],
) {
    if L::IN_REGISTERS {
        lookup_vectors::<L, N>(lanes, table.top.words(), table.groups.words(), addrs, out);
    } else {
        for (addr, out) in addrs.as_flattened().iter().zip(out.as_flattened_mut()) {
            *out = table.lookup(*addr);
        }
    }
}

/// Looks up `N` vectors of addresses, all of them one step at a time until the last one has its answer.
#[inline(always)]
fn lookup_vectors<L: Lanes, const N: usize>(
    lanes: L,
    top: Words<'_, Word32>,
    groups: Words<'_, Word32>,
    addrs: &[[u128; LANES]; N],
    out: &mut [[NextHop; LANES]; N],
) {
    let link = lanes.splat(Word32::TOP_BIT);
    let mut bits = [lanes.splat(0); N];
    let mut entry = bits;
    for v in 0..N {
        bits[v] = load_bits(lanes, &addrs[v], 0);
        entry[v] = lanes.gather(top, lanes.shr::<8>(bits[v]));
    }
    for offset in (24..u128::BITS).step_by(8) {
        let mut linked = lanes.splat(0);
        for entry in entry {
            linked = lanes.or(linked, entry);
        }
        if !lanes.any(lanes.test(linked, link)) {
            break;
        }
        for v in 0..N {
            if offset % 32 == 0 {
                bits[v] = load_bits(lanes, &addrs[v], offset);
            }
            let byte = lanes.and(lanes.shr_by(bits[v], lanes.splat(24 - offset % 32)), lanes.splat(0xff));
            // The shift removes the bit that marks a link.
            let index = lanes.or(lanes.shl::<8>(entry[v]), byte);
            entry[v] = lanes.gather_where(lanes.test(entry[v], link), groups, index, entry[v]);
        }
    }
    for v in 0..N {
        lanes.store_next_hops(entry[v], &mut out[v]);
    }
}

/// The 32 bits that start `offset` bits from the most significant one of each address.
#[inline(always)]
fn load_bits<L: Lanes>(lanes: L, addrs: &[u128; LANES], offset: u32) -> L::U32 {
    let mut bits = [0; LANES];
    for (bits, addr) in bits.iter_mut().zip(addrs) {
        *bits = (addr >> (96 - offset)) as u32;
    }
    lanes.load(&bits)
}

impl Algorithm<u128> for DpdkLpm6 {
    fn name(&self) -> &'static str {
        NAME
    }

    /// FreeBSD's `rte6_get_pref`.
    fn preference(&self, summary: &Summary) -> u8 {
        match summary.prefixes {
            0..10 => 1,
            prefixes @ 10..1_000 => (prefixes / 10) as u8,
            prefixes @ 1_000..100_000 => 100 + (prefixes / 667) as u8,
            _ => 250,
        }
    }

    fn compile(&self, rib: &Rib<u128>) -> Result<Box<dyn Instance<u128>>, CompileError> {
        let ranges: Vec<_> = rib.ranges().collect();
        let table = Tbl24::build(NAME, &ranges, groups_needed(&ranges))?;
        Ok(Box::new(Arc::new(Trie { table, isa: self.0.resolve() })))
    }
}
