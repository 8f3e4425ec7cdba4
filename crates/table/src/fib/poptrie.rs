//! `poptrie`: a trie of 64-ary nodes whose slots are counted instead of stored; after Asai and Ohara.
//!
//! ```text
//!   address   |  18 bits  |  6  |  6  | …
//!                  │         │
//!   direct    [ … next hop … node … ]
//!                              │
//!   node       vector    0010…  slots with a child  ─▶ children[ bits set up to the slot ]
//!              leafvec   1101…  where the next hop  ─▶ leaves[ bits set up to the slot ]
//!                               changes
//! ```
//!
//! Asai, Ohara, "Poptrie: a compressed trie with population count for fast and scalable software IP routing table
//! lookup", SIGCOMM 2015. Eighteen bits and six a step leave two for the last node, in IPv4 and in IPv6: there, sixteen
//! slots in a row mean one address.

use std::array;
use std::sync::Arc;

use crate::addr::Address;
use crate::nexthop::NextHop;
use crate::rib::{Change, Range, Rib, Summary};
use crate::simd::{self, Isa, Kernel, LANES, Lanes};
use crate::sync::Arc as TokenArc;

use super::poptrie_store::{
    CHILDREN, DIRECT_BITS, LEAFVEC, LEAVES, NODE, NODE_WORDS, SLOT_BITS, SLOTS, Store,
};
use super::poptrie_writer::{Full, Writer};
use super::reclaim::Token;
use super::tbl24::blocks_divided;
use super::{Algorithm, CompileError, Fib, Footprint, Instance, Outcome};

const NAME: &str = "poptrie";

/// The algorithm.
pub struct Poptrie {
    /// The instruction set of batches; the best of the machine unless given.
    isa: Option<Isa>,
}

impl Poptrie {
    /// With the best population count of the machine.
    pub const BEST: Poptrie = Poptrie { isa: None };

    /// With this instruction set, to compare them.
    pub const fn with_isa(isa: Isa) -> Self {
        Poptrie { isa: Some(isa) }
    }
}

/// What readers hold. As long as they do, nothing that it leads to is written again.
/// Why it is aligned stands at [`super::apart::Apart`].
#[repr(align(128))]
struct View {
    store: Arc<Store>,
    isa: Isa,
    _token: TokenArc<Token>,
}

impl<A: Address> Fib<A> for View {
    fn lookup(&self, addr: A) -> NextHop {
        lookup_one(&self.store, addr)
    }

    fn lookup_batch(&self, addrs: &[A], next_hops: &mut [NextHop]) {
        simd::run(self.isa, Batch { store: &self.store, addrs, next_hops });
    }

    fn footprint(&self) -> Footprint {
        self.store.footprint()
    }
}

/// The slot of an address in a node that `bits` bits lead to; zeros stand in for bits beyond the address.
#[inline(always)]
fn slot<A: Address>(addr: A, bits: u8) -> usize {
    (addr << usize::from(bits) >> usize::from(A::BITS - SLOT_BITS)).low_usize()
}

/// One lookup from the node that the direct table names.
#[inline]
fn descend<A: Address>(store: &Store, addr: A, number: u32) -> NextHop {
    let (mut node, mut bits) = (store.node(number), DIRECT_BITS);
    while node.has_child(slot(addr, bits)) {
        node = store.node(node.child(slot(addr, bits)));
        bits += SLOT_BITS;
    }
    store.leaf(node.leaf(slot(addr, bits)))
}

#[inline(always)]
fn lookup_one<A: Address>(store: &Store, addr: A) -> NextHop {
    match store.direct.get(addr.bits(0, DIRECT_BITS)) {
        next_hop @ 0..NODE => NextHop(next_hop as u16),
        node => descend(store, addr, node & !NODE),
    }
}

fn lookup_each<A: Address>(store: &Store, addrs: &[A], next_hops: &mut [NextHop]) {
    for (addr, next_hop) in addrs.iter().zip(next_hops) {
        *next_hop = lookup_one(store, *addr);
    }
}

/// One call's work.
struct Batch<'a, A> {
    store: &'a Store,
    addrs: &'a [A],
    next_hops: &'a mut [NextHop],
}

/// Vectors that descend together: every level waits for memory, and the waits overlap.
const VECTORS: usize = 4;

impl<A: Address> Kernel for Batch<'_, A> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let count = self.addrs.len().min(self.next_hops.len());
        let (addrs, out) = (&self.addrs[..count], &mut self.next_hops[..count]);
        if !L::IN_REGISTERS {
            return lookup_each(self.store, addrs, out);
        }
        let (chunks, rest) = addrs.as_chunks::<LANES>();
        let (chunks_out, rest_out) = out.as_chunks_mut::<LANES>();
        let (blocks, chunks) = chunks.as_chunks::<VECTORS>();
        let (out, chunks_out) = chunks_out.as_chunks_mut::<VECTORS>();
        for (block, out) in blocks.iter().zip(out) {
            lookup_vectors::<L, A, VECTORS>(lanes, self.store, block, out);
        }
        for (chunk, out) in chunks.iter().zip(chunks_out) {
            lookup_vectors::<L, A, 1>(lanes, self.store, array::from_ref(chunk), array::from_mut(out));
        }
        lookup_each(self.store, rest, rest_out);
    }
}

/// Bits of an address that a window holds: as many levels as fit in 32 bits.
const WINDOW_BITS: u8 = 30;

/// Looks `N` vectors of addresses up, all of them one level at a time until the last has arrived.
#[inline(always)]
fn lookup_vectors<L: Lanes, A: Address, const N: usize>(
    lanes: L,
    store: &Store,
    addrs: &[[A; LANES]; N],
    out: &mut [[NextHop; LANES]; N],
) {
    let node = lanes.splat(NODE);
    let mut entries = [lanes.splat(0); N];
    for v in 0..N {
        let bits = load_window(lanes, &addrs[v], 0);
        entries[v] = lanes.gather(store.direct.words(), lanes.shr::<{ 32 - DIRECT_BITS as u32 }>(bits));
    }
    let mut windows = entries;
    for bits in (DIRECT_BITS..A::BITS).step_by(usize::from(SLOT_BITS)) {
        let in_window = (bits - DIRECT_BITS) % WINDOW_BITS;
        let shift = lanes.splat(u32::BITS - u32::from(in_window + SLOT_BITS));
        let mut under_way = false;
        for v in 0..N {
            if lanes.any(lanes.test(entries[v], node)) {
                under_way = true;
                if in_window == 0 {
                    windows[v] = load_window(lanes, &addrs[v], bits);
                }
                let slot = lanes.and(lanes.shr_by(windows[v], shift), lanes.splat(SLOTS as u32 - 1));
                entries[v] = descended(lanes, store, entries[v], slot);
            }
        }
        if !under_way {
            break;
        }
    }
    for v in 0..N {
        lanes.store_next_hops(entries[v], &mut out[v]);
    }
}

/// The 32 bits that start `offset` bits from the most significant one of each address, zeros behind its end.
#[inline(always)]
fn load_window<L: Lanes, A: Address>(lanes: L, addrs: &[A; LANES], offset: u8) -> L::U32 {
    let mut bits = [0; LANES];
    for (bits, addr) in bits.iter_mut().zip(addrs) {
        *bits = (*addr << usize::from(offset) >> usize::from(A::BITS - 32)).low_usize() as u32;
    }
    lanes.load(&bits)
}

/// One level down in the lanes that have a node: its child there, or the next hop. The others stay as they are.
#[inline(always)]
fn descended<L: Lanes>(lanes: L, store: &Store, entry: L::U32, slot: L::U32) -> L::U32 {
    let (nodes, node, zero, one) = (store.nodes.words(), lanes.splat(NODE), lanes.splat(0), lanes.splat(1));
    let has_node = lanes.test(entry, node);
    // Six words a node; the shifts drop the mark.
    let base = lanes.add(lanes.shl::<2>(entry), lanes.shl::<1>(entry));
    let (in_high, in_half) = (lanes.shr::<5>(slot), lanes.and(slot, lanes.splat(31)));
    let vector = lanes.gather_where(has_node, nodes, lanes.add(base, in_high), zero);
    let has_child = lanes.test(vector, lanes.shl_by(one, in_half));
    let bits = lanes.add(base, lanes.select(has_child, zero, lanes.splat(LEAFVEC as u32)));
    let runs = lanes.select(has_child, lanes.splat(CHILDREN as u32), lanes.splat(LEAVES as u32));
    let low = lanes.gather_where(has_node, nodes, bits, zero);
    // The high half counts only in lanes whose slot is there; in those the whole low half does.
    let needs_high = lanes.test(lanes.shl::<31>(in_high), entry);
    let high = lanes.gather_where(needs_high, nodes, lanes.add(bits, one), zero);
    let up_to_slot = lanes.sub(lanes.shl_by(lanes.splat(2), in_half), one);
    let low = lanes.and(low, lanes.select(needs_high, lanes.splat(u32::MAX), up_to_slot));
    let rank = lanes.add(lanes.count_ones(low), lanes.count_ones(lanes.and(high, up_to_slot)));
    let start = lanes.gather_where(has_node, nodes, lanes.add(base, runs), zero);
    let index = lanes.sub(lanes.add(start, rank), one);
    let arrives = lanes.test(lanes.select(has_child, zero, entry), node);
    let descends = lanes.select(has_child, lanes.or(index, node), entry);
    lanes.gather_where(arrives, store.leaves.words(), index, descends)
}

/// A poptrie and what readers see of it.
struct Patched {
    writer: Writer,
    view: Arc<View>,
}

/// A prefix that spans more entries of the direct table is as well compiled with all the others.
const MOST_ENTRIES: u32 = 4096;

impl<A: Address> Instance<A> for Patched {
    fn fib(&self) -> Arc<dyn Fib<A>> {
        Arc::<View>::clone(&self.view)
    }

    fn patch(&mut self, rib: &Rib<A>, changes: &[Change<A>]) -> Outcome {
        self.writer.reclaim();
        for prefix in changes.iter().map(|change| change.prefix) {
            let entries = 1 << DIRECT_BITS.saturating_sub(prefix.len());
            if entries > MOST_ENTRIES || self.writer.update(rib, prefix).is_err() {
                return Outcome::Rebuild;
            }
        }
        if let Some(token) = self.writer.turn() {
            self.view = Arc::new(View { store: self.writer.store(), isa: self.view.isa, _token: token });
        }
        Outcome::Applied
    }
}

impl<A: Address> Algorithm<A> for Poptrie {
    fn name(&self) -> &'static str {
        NAME
    }

    /// By rank on full views: just below FreeBSD's `dxr` and the DPDK modules at their best. FreeBSD has no poptrie.
    fn preference(&self, _summary: &Summary) -> u8 {
        249
    }

    fn compile(&self, rib: &Rib<A>) -> Result<Box<dyn Instance<A>>, CompileError> {
        let ranges: Vec<_> = rib.ranges().collect();
        let [nodes, leaves] = capacities(&ranges)?;
        let store = Store::zeroed(nodes, leaves)
            .map_err(|error| CompileError::Memory { algorithm: NAME, reason: error.to_string() })?;
        let full = |Full| limit("nodes", nodes as usize + 1, nodes as usize);
        let writer = Writer::build(store, [nodes, leaves], ranges.into_iter()).map_err(full)?;
        let isa = self.isa.unwrap_or_else(Isa::best);
        let view = View { store: writer.store(), isa, _token: writer.token() };
        Ok(Box::new(Patched { writer, view: Arc::new(view) }))
    }
}

/// Spare nodes for changes however small the table is, and four times as many leaves.
const SPARE_NODES: usize = 1 << 16;
/// What gathers reach: their indices are signed 32-bit numbers of words.
const MOST_NODES: usize = (1 << 31) / NODE_WORDS;
const MOST_LEAVES: usize = u32::MAX as usize;

fn limit(what: &'static str, needed: usize, limit: usize) -> CompileError {
    CompileError::Limit { algorithm: NAME, what, needed, limit }
}

/// Places for nodes and leaves: twice what the table needs, and some. What is never used costs no memory.
fn capacities<A: Address>(ranges: &[Range<A>]) -> Result<[u32; 2], CompileError> {
    let levels = || (DIRECT_BITS..A::BITS).step_by(usize::from(SLOT_BITS));
    let nodes: usize = levels().map(|bits| blocks_divided(ranges, bits)).sum();
    // A node's leaves are one more, at most, than the boundaries between ranges inside its block.
    let inside = |bits| ranges.iter().filter(|range| range.first & !A::mask(bits) != A::zero()).count();
    let leaves = nodes + levels().map(inside).sum::<usize>();
    Ok([
        doubled("nodes", nodes, SPARE_NODES, MOST_NODES)?,
        doubled("leaves", leaves, 4 * SPARE_NODES, MOST_LEAVES)?,
    ])
}

fn doubled(what: &'static str, needed: usize, spare: usize, most: usize) -> Result<u32, CompileError> {
    let capacity = u32::try_from((2 * needed + spare).min(most)).map_err(|_| limit(what, needed, most))?;
    if needed > most { Err(limit(what, needed, most)) } else { Ok(capacity) }
}
