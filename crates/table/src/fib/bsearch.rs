//! `bsearch4` and `bsearch6`: binary search over the sorted starts of disjoint ranges; after FreeBSD's `bsearch4`.

use std::hint::select_unpredictable;

use crate::addr::{Address, Family};
use crate::nexthop::NextHop;
use crate::rib::{Rib, Summary};

use super::{Algorithm, CompileError, Fib, Footprint, Immutable, Instance};

/// The algorithm, for both families.
pub struct Bsearch;

/// Lookups that advance in step, so that their cache misses overlap.
const TOGETHER: usize = 8;

/// Range `i` begins at `starts[i]`, ends before `starts[i + 1]` and goes to `next_hops[i]`. The first one begins at 0.
struct SortedRanges<A> {
    starts: Vec<A>,
    next_hops: Vec<NextHop>,
}

impl<A: Address> SortedRanges<A> {
    /// Searches for `N` addresses at once. The number of steps depends only on the table, and a step selects without a
    /// branch, so no address can make the processor mispredict.
    #[inline(always)]
    fn search<const N: usize>(&self, addrs: &[A; N]) -> [NextHop; N] {
        let mut found = [0; N];
        let mut left = self.starts.len();
        while left > 1 {
            let half = left / 2;
            for (at, addr) in found.iter_mut().zip(addrs) {
                let middle = *at + half;
                *at = select_unpredictable(self.starts[middle] <= *addr, middle, *at);
            }
            left -= half;
        }
        found.map(|at| self.next_hops[at])
    }
}

impl<A: Address> Fib<A> for SortedRanges<A> {
    fn lookup(&self, addr: A) -> NextHop {
        let [next_hop] = self.search(&[addr]);
        next_hop
    }

    fn lookup_batch(&self, addrs: &[A], next_hops: &mut [NextHop]) {
        let count = addrs.len().min(next_hops.len());
        let (whole, rest) = addrs[..count].as_chunks::<TOGETHER>();
        let (whole_out, rest_out) = next_hops[..count].as_chunks_mut::<TOGETHER>();
        for (addrs, out) in whole.iter().zip(whole_out) {
            *out = self.search(addrs);
        }
        for (addr, out) in rest.iter().zip(rest_out) {
            *out = self.lookup(*addr);
        }
    }

    fn footprint(&self) -> Footprint {
        Footprint(vec![
            ("starts", size_of_val(&self.starts[..])),
            ("next hops", size_of_val(&self.next_hops[..])),
        ])
    }
}

impl<A: Address> Algorithm<A> for Bsearch {
    fn name(&self) -> &'static str {
        match A::FAMILY {
            Family::Inet => "bsearch4",
            Family::Inet6 => "bsearch6",
        }
    }

    /// FreeBSD's `bsearch4_get_pref`: ideal for the few routes of an end system, soon worse than the radix tree.
    /// FreeBSD has no `bsearch6`; it gets the same curve, except for a few routes, where the radix tree of IPv6 has
    /// 255.
    fn preference(&self, summary: &Summary) -> u8 {
        match (summary.prefixes, A::FAMILY) {
            (0..10, Family::Inet) => 253,
            (0..10, Family::Inet6) => 255,
            (prefixes @ 10..30, _) => 255 - 8 * prefixes as u8,
            _ => 1,
        }
    }

    fn compile(&self, rib: &Rib<A>) -> Result<Box<dyn Instance<A>>, CompileError> {
        let (starts, next_hops) = rib.ranges().map(|range| (range.first, range.next_hop)).unzip();
        Ok(Immutable::boxed(SortedRanges { starts, next_hops }))
    }
}
