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
//! Asai, Ohara, "Poptrie: a compressed trie with population count for fast and scalable software IP routing table lookup",
//! SIGCOMM 2015. Eighteen bits and six a step leave two for the last node, in IPv4 and in IPv6: there, sixteen slots in a
//! row mean one address.

use std::hint::select_unpredictable;
use std::sync::Arc;

use zerocopy::AllocError;

use crate::addr::Address;
use crate::nexthop::NextHop;
use crate::rib::{Change, Range, Rib, Summary};
use crate::simd::{self, Isa, Kernel, Lanes};
use crate::sync::Arc as TokenArc;

use super::poptrie_store::{DIRECT_BITS, NODE, SLOT_BITS, Store};
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
struct View {
    store: Arc<Store>,
    isa: Isa,
    _token: TokenArc<Token>,
}

impl<A: Address> Fib<A> for View {
    fn lookup(&self, addr: A) -> NextHop {
        let entry = self.store.entry(addr.bits(0, DIRECT_BITS));
        if entry & NODE == 0 { NextHop(entry as u16) } else { descend(&self.store, addr, entry & !NODE) }
    }

    fn lookup_batch(&self, addrs: &[A], next_hops: &mut [NextHop]) {
        simd::run(self.isa, Batch { store: &self.store, addrs, next_hops });
    }

    fn footprint(&self) -> Footprint {
        self.store.footprint()
    }
}

/// One call's work.
struct Batch<'a, A> {
    store: &'a Store,
    addrs: &'a [A],
    next_hops: &'a mut [NextHop],
}

/// Lookups that descend together.
const TOGETHER: usize = 32;

impl<A: Address> Kernel for Batch<'_, A> {
    /// No lanes: what an instruction set brings is its population count.
    #[inline(always)]
    fn run<L: Lanes>(self, _lanes: L) {
        let count = self.addrs.len().min(self.next_hops.len());
        let (addrs, next_hops) = (&self.addrs[..count], &mut self.next_hops[..count]);
        for (addrs, next_hops) in addrs.chunks(TOGETHER).zip(next_hops.chunks_mut(TOGETHER)) {
            lookup_together(self.store, addrs, next_hops);
        }
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

/// Looks up to [`TOGETHER`] addresses up, level by level: those that have arrived drop out of the list of the others. No branch depends on
/// an address but the ends of loops, so the memory accesses of a level overlap whatever the addresses are.
#[inline(always)]
fn lookup_together<A: Address>(store: &Store, addrs: &[A], next_hops: &mut [NextHop]) {
    // Which addresses are under way, and the nodes they have reached.
    let (mut keys, mut nodes, mut under_way) = ([0; TOGETHER], [0; TOGETHER], 0);
    for (key, addr) in addrs.iter().enumerate() {
        let entry = store.entry(addr.bits(0, DIRECT_BITS));
        next_hops[key] = NextHop(entry as u16);
        (keys[under_way], nodes[under_way]) = (key, entry & !NODE);
        under_way += usize::from(entry & NODE != 0);
    }
    let mut bits = DIRECT_BITS;
    while under_way > 0 {
        let mut descending = 0;
        for i in 0..under_way {
            let key = keys[i];
            let slot = slot(addrs[key], bits);
            let node = store.node(nodes[i]);
            let descends = node.has_child(slot);
            // Leaf 0 is there, and what it says is overwritten when the address arrives.
            let leaf = select_unpredictable(descends, 0, node.leaf(slot));
            next_hops[key] = store.leaf(leaf);
            (keys[descending], nodes[descending]) = (key, node.child(slot));
            descending += usize::from(descends);
        }
        under_way = descending;
        bits += SLOT_BITS;
    }
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

    fn preference(&self, _summary: &Summary) -> u8 {
        240
    }

    fn compile(&self, rib: &Rib<A>) -> Result<Box<dyn Instance<A>>, CompileError> {
        let ranges: Vec<_> = rib.ranges().collect();
        let [nodes, leaves] = capacities(&ranges)?;
        let memory = |AllocError| {
            let reason = format!("{nodes} nodes and {leaves} leaves are too many");
            CompileError::Memory { algorithm: NAME, reason }
        };
        let store = Store::zeroed(nodes, leaves).map_err(memory)?;
        let full = |Full| CompileError::Limit {
            algorithm: NAME,
            what: "nodes",
            needed: nodes as usize + 1,
            limit: nodes as usize,
        };
        let writer = Writer::build(store, ranges.into_iter()).map_err(full)?;
        let isa = self.isa.unwrap_or_else(Isa::best);
        let view = View { store: writer.store(), isa, _token: writer.token() };
        Ok(Box::new(Patched { writer, view: Arc::new(view) }))
    }
}

/// Spare nodes for changes however small the table is, and four times as many leaves.
const SPARE_NODES: usize = 1 << 16;
/// Entries of the direct table have one bit for other things.
const MOST_NODES: usize = NODE as usize;
const MOST_LEAVES: usize = u32::MAX as usize;

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

fn doubled(what: &'static str, needed: usize, spare: usize, limit: usize) -> Result<u32, CompileError> {
    let over = CompileError::Limit { algorithm: NAME, what, needed, limit };
    let capacity = (2 * needed + spare).min(limit);
    if needed > limit { Err(over) } else { u32::try_from(capacity).map_err(|_| over) }
}
