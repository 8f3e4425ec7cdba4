//! `radix_lockless`: a copy of the BSD radix tree that never changes, so that readers need no lock.

use crate::addr::{Address, Family};
use crate::fib::{Algorithm, CompileError, Fib, Footprint, Immutable, Instance};
use crate::nexthop::NextHop;
use crate::rib::{Rib, Summary};

use super::tree::RadixTree;

/// The algorithm, which has no state.
pub struct RadixLockless;

/// A tree that never changes.
struct TreeCopy<A>(RadixTree<A>);

impl<A: Address> Fib<A> for TreeCopy<A> {
    fn lookup(&self, addr: A) -> NextHop {
        self.0.lookup(addr)
    }

    fn footprint(&self) -> Footprint {
        self.0.footprint()
    }
}

impl<A: Address> Algorithm<A> for RadixLockless {
    fn name(&self) -> &'static str {
        "radix_lockless"
    }

    /// FreeBSD's `lradix4_get_pref` and `lradix6_get_pref`: nearly ideal for a few routes, then worse, because every
    /// change costs a copy.
    fn preference(&self, summary: &Summary) -> u8 {
        let (few, best, step, limit) = match summary.family {
            Family::Inet => (250, 254, 4, 1_000),
            Family::Inet6 => (255, 255, 40, 10_000),
        };
        match summary.prefixes {
            0..10 => few,
            prefixes if prefixes < limit => best - (prefixes / step) as u8, // below 250 under either limit
            _ => 1,
        }
    }

    fn compile(&self, rib: &Rib<A>) -> Result<Box<dyn Instance<A>>, CompileError> {
        Ok(Immutable::boxed(TreeCopy(RadixTree::new(rib))))
    }
}
