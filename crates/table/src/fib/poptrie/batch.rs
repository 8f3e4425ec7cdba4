//! Lookups: one alone, and many at once, sixteen in a vector.

use std::array;

use crate::addr::Address;
use crate::nexthop::NextHop;
use crate::simd::{Kernel, LANES, Lanes};

use super::store::{CHILDREN, DIRECT_BITS, LEAFVEC, LEAVES, NODE, PoptrieStore, SLOT_BITS, SLOTS};

/// The slot of an address in a node that `bits` bits lead to; bits beyond the address count as zeros.
#[inline(always)]
fn slot<A: Address>(addr: A, bits: u8) -> usize {
    (addr << usize::from(bits) >> usize::from(A::BITS - SLOT_BITS)).low_usize()
}

/// Looks up an address from the node of its entry in the direct table.
#[inline]
fn descend<A: Address>(store: &PoptrieStore, addr: A, number: u32) -> NextHop {
    let (mut node, mut bits) = (store.node(number), DIRECT_BITS);
    while node.has_child(slot(addr, bits)) {
        node = store.node(node.child(slot(addr, bits)));
        bits += SLOT_BITS;
    }
    store.leaf(node.leaf(slot(addr, bits)))
}

#[inline(always)]
pub(super) fn lookup_one<A: Address>(store: &PoptrieStore, addr: A) -> NextHop {
    match store.direct.get(addr.bits(0, DIRECT_BITS)) {
        next_hop @ 0..NODE => NextHop(next_hop as u16),
        node => descend(store, addr, node & !NODE),
    }
}

fn lookup_each<A: Address>(store: &PoptrieStore, addrs: &[A], next_hops: &mut [NextHop]) {
    for (addr, next_hop) in addrs.iter().zip(next_hops) {
        *next_hop = lookup_one(store, *addr);
    }
}

/// The work of one call.
pub(super) struct Batch<'a, A> {
    pub(super) store: &'a PoptrieStore,
    pub(super) addrs: &'a [A],
    pub(super) next_hops: &'a mut [NextHop],
}

/// Vectors that descend in step: every level waits for memory, and the waits overlap.
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

/// The bits of an address that a window holds: as many levels as fit in 32 bits.
const WINDOW_BITS: u8 = 30;

/// Looks up `N` vectors of addresses, all of them one level at a time until the last one has its answer.
#[inline(always)]
fn lookup_vectors<L: Lanes, A: Address, const N: usize>(
    lanes: L,
    store: &PoptrieStore,
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

/// The 32 bits that start `offset` bits from the most significant one of each address, with zeros after its end.
#[inline(always)]
fn load_window<L: Lanes, A: Address>(lanes: L, addrs: &[A; LANES], offset: u8) -> L::U32 {
    let mut bits = [0; LANES];
    for (bits, addr) in bits.iter_mut().zip(addrs) {
        *bits = (*addr << usize::from(offset) >> usize::from(A::BITS - 32)).low_usize() as u32;
    }
    lanes.load(&bits)
}

/// Descends one level in the lanes that have a node: to its child, or to the next hop. The other lanes do not change.
#[inline(always)]
fn descended<L: Lanes>(lanes: L, store: &PoptrieStore, entry: L::U32, slot: L::U32) -> L::U32 {
    let (nodes, node, zero, one) = (store.nodes.words(), lanes.splat(NODE), lanes.splat(0), lanes.splat(1));
    let has_node = lanes.test(entry, node);
    // A node has six words; the shifts remove the mark.
    let base = lanes.add(lanes.shl::<2>(entry), lanes.shl::<1>(entry));
    let (in_high, in_half) = (lanes.shr::<5>(slot), lanes.and(slot, lanes.splat(31)));
    let vector = lanes.gather_where(has_node, nodes, lanes.add(base, in_high), zero);
    let has_child = lanes.test(vector, lanes.shl_by(one, in_half));
    let bits = lanes.add(base, lanes.select(has_child, zero, lanes.splat(LEAFVEC as u32)));
    let runs = lanes.select(has_child, lanes.splat(CHILDREN as u32), lanes.splat(LEAVES as u32));
    let low = lanes.gather_where(has_node, nodes, bits, zero);
    // The high half counts only in lanes whose slot is in it; in those the whole low half counts.
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
