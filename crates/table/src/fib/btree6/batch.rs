//! Lookups: one alone, and many at once.

use crate::memory::prefetch_from;
use crate::nexthop::NextHop;
use crate::simd::{Kernel, LANES, Lanes};

use super::key::{BRANCHES, ESCAPE, key};
use super::lines::{LineSearch, Walk};

/// A single lookup.
pub(super) struct One<'a> {
    pub(super) search: LineSearch<'a>,
    pub(super) addr: u128,
    pub(super) next_hop: &'a mut NextHop,
}

impl Kernel for One<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        *self.next_hop = lookup(lanes, self.search, self.addr);
    }
}

/// One lookup, to any depth.
#[inline(always)]
fn lookup<L: Lanes>(lanes: L, search: LineSearch<'_>, addr: u128) -> NextHop {
    let (mut walk, mut consumed) = (search.walk::<1>(), 0);
    walk.enter(0, (addr >> 112) as u16);
    loop {
        let key = lanes.splat(key(addr, consumed));
        for _ in 0..BRANCHES {
            walk.descend(lanes, 0, key);
        }
        let hop = walk.hop(lanes, 0, key);
        if hop != ESCAPE {
            return NextHop(hop);
        }
        let Some(bits) = walk.deeper(lanes, 0, key) else { return NextHop::NONE };
        consumed += bits;
    }
}

/// The work of one call.
pub(super) struct Batch<'a> {
    pub(super) search: LineSearch<'a>,
    pub(super) addrs: &'a [u128],
    pub(super) next_hops: &'a mut [NextHop],
}

impl Kernel for Batch<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Batch { search, addrs, next_hops } = self;
        let count = addrs.len().min(next_hops.len());
        let (blocks, rest) = addrs[..count].as_chunks::<LANES>();
        let (out, rest_out) = next_hops[..count].as_chunks_mut::<LANES>();
        let (pairs, last) = blocks.as_chunks::<2>();
        let (pairs_out, last_out) = out.as_chunks_mut::<2>();
        lookup_pairs(lanes, search, pairs, pairs_out);
        for (block, out) in last.iter().zip(last_out) {
            answers(lanes, to_leaves(lanes, search, block), block, out);
        }
        go_deeper(lanes, search, blocks.as_flattened(), out.as_flattened_mut());
        for (addr, out) in rest.iter().zip(rest_out) {
            *out = lookup(lanes, search, *addr);
        }
    }
}

/// Loads the leaves of two blocks of 16 at the same time: the three steps of one block through the branches are too
/// short for its leaves to arrive from the third-level cache. Addresses that lead deeper are left for later as long as
/// they are few; the first one of a block is taken as a sample of all.
#[inline(always)]
fn lookup_pairs<L: Lanes>(
    lanes: L,
    search: LineSearch<'_>,
    pairs: &[[[u128; LANES]; 2]],
    out: &mut [[[NextHop; LANES]; 2]],
) {
    let mut deep = false;
    for (pair @ [a, b], out) in pairs.iter().zip(out) {
        prefetch_from(pair, KEYS_AHEAD);
        if deep {
            for (addrs, out) in pair.iter().zip(out) {
                lookup_deep(lanes, search, addrs, out);
            }
            continue;
        }
        let (walk_a, walk_b) = (to_leaves(lanes, search, a), to_leaves(lanes, search, b));
        let [out_a, out_b] = out;
        answers(lanes, walk_a, a, out_a);
        answers(lanes, walk_b, b, out_b);
        deep = out_a[0].0 == ESCAPE;
    }
}

/// How far ahead the addresses are prefetched, in bytes: callers have their keys in a row, and the processor's own
/// prefetcher stops at the end of a 4 KiB page. The best distance measured is 2 to 4 KiB.
const KEYS_AHEAD: usize = 3 << 10;

/// Repeats the body for each lane, without a loop: compilers do not unroll one this long, and 16 iterations that keep
/// their places in memory take longer.
macro_rules! for_lanes {
    ($i:ident => $($body:tt)*) => { for_lanes!(@ $i [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15] $($body)*) };
    (@ $i:ident [$($lane:literal)*] $body:block) => { $({ let $i = $lane; $body })* };
}

/// Descends with 16 addresses to their leaves. Each part is one step for all of them: a step of one address takes 20
/// cycles, and the schedulers of the processor hold so few instructions that only four addresses would overlap if they
/// were looked up one after the other.
#[inline(always)]
fn to_leaves<'t, L: Lanes>(lanes: L, search: LineSearch<'t>, addrs: &[u128; LANES]) -> Walk<'t, LANES> {
    let mut walk = search.walk();
    for_lanes!(i => {
        walk.enter(i, (addrs[i] >> 112) as u16);
        walk.descend(lanes, i, lanes.splat(key(addrs[i], 0)));
    });
    for_lanes!(i => {
        walk.descend(lanes, i, lanes.splat(key(addrs[i], 0)));
        walk.prefetch_branch(i);
    });
    for_lanes!(i => {
        walk.descend(lanes, i, lanes.splat(key(addrs[i], 0)));
        walk.prefetch_leaf(i);
    });
    walk
}

/// Stores the answers of the leaves.
#[inline(always)]
fn answers<L: Lanes>(lanes: L, walk: Walk<'_, LANES>, addrs: &[u128; LANES], out: &mut [NextHop; LANES]) {
    for_lanes!(i => {
        out[i] = NextHop(walk.hop(lanes, i, lanes.splat(key(addrs[i], 0))));
    });
}

/// Looks up the addresses without an answer again, sixteen in step, whatever trees they are in. It runs once the whole
/// batch has read its leaves: right after a block it would wait for the stores of single answers to complete.
#[inline(always)]
fn go_deeper<L: Lanes>(lanes: L, search: LineSearch<'_>, addrs: &[u128], out: &mut [NextHop]) {
    let (mut open, mut count) = ([0; LANES], 0);
    for first in (0..out.len()).step_by(LANES) {
        if !out[first..first + LANES].iter().fold(false, |any, hop| any | (hop.0 == ESCAPE)) {
            continue;
        }
        for at in first..first + LANES {
            if out[at].0 == ESCAPE {
                open[count] = at;
                count += 1;
            }
            if count == LANES {
                answer_open(lanes, search, &open, addrs, out);
                count = 0;
            }
        }
    }
    answer_open(lanes, search, &open[..count], addrs, out);
}

/// Up to this many lookups take less time one after the other than a whole block in step.
const FEW: usize = 4;

/// Answers the addresses at these places.
#[inline(always)]
fn answer_open<L: Lanes>(
    lanes: L,
    search: LineSearch<'_>,
    open: &[usize],
    addrs: &[u128],
    out: &mut [NextHop],
) {
    if open.len() <= FEW {
        for at in open {
            out[*at] = lookup(lanes, search, addrs[*at]);
        }
        return;
    }
    let (mut block, mut answers) = ([0; LANES], [NextHop::NONE; LANES]);
    block.iter_mut().zip(open).for_each(|(addr, at)| *addr = addrs[*at]);
    lookup_deep(lanes, search, &block, &mut answers);
    open.iter().zip(answers).for_each(|(at, answer)| out[*at] = answer);
}

/// Sixteen lookups in step, to any depth.
#[inline(always)]
fn lookup_deep<L: Lanes>(
    lanes: L,
    search: LineSearch<'_>,
    addrs: &[u128; LANES],
    out: &mut [NextHop; LANES],
) {
    let walk = to_leaves(lanes, search, addrs);
    let mut deep = Deep { walk, keys: addrs.map(|addr| key(addr, 0)), consumed: [0; LANES], open: u16::MAX };
    loop {
        deep.leaves(lanes, addrs, out);
        if deep.open == 0 {
            return;
        }
        deep.descend(lanes);
    }
}

/// Sixteen lookups that go from tree to tree. Lookups with an answer continue, but without effect.
struct Deep<'t> {
    walk: Walk<'t, LANES>,
    keys: [u32; LANES],
    consumed: [u32; LANES],
    /// A bit for each lookup without an answer.
    open: u16,
}

impl Deep<'_> {
    /// Stores the answer of each lookup, or enters its deeper tree.
    #[inline(always)]
    fn leaves<L: Lanes>(&mut self, lanes: L, addrs: &[u128; LANES], out: &mut [NextHop; LANES]) {
        for i in 0..LANES {
            if self.open >> i & 1 == 0 {
                continue;
            }
            let lane_key = lanes.splat(self.keys[i]);
            out[i] = NextHop(self.walk.hop(lanes, i, lane_key));
            if out[i].0 != ESCAPE {
                self.open &= !(1 << i);
            } else if let Some(bits) = self.walk.deeper(lanes, i, lane_key) {
                self.consumed[i] += bits;
                self.keys[i] = key(addrs[i], self.consumed[i]);
            } else {
                self.open &= !(1 << i);
                out[i] = NextHop::NONE;
            }
        }
    }

    /// Descends from the roots of trees to their leaves.
    #[inline(always)]
    fn descend<L: Lanes>(&mut self, lanes: L) {
        for _ in 0..BRANCHES {
            for_lanes!(i => { self.walk.descend(lanes, i, lanes.splat(self.keys[i])); });
        }
    }
}
