//! `radix`: the BSD radix tree under a read lock taken for every lookup, as FreeBSD forwarded before D27401.
//!
//! It compiles any table and takes any change, so every table can fall back to it. `lockless.rs` has the copy without a
//! lock.

use std::sync::{Arc, PoisonError, RwLock};

use crate::addr::Address;
use crate::nexthop::NextHop;
use crate::rib::{Change, Rib, Summary};

use super::{Algorithm, CompileError, Fib, Footprint, Instance, Outcome};

mod lockless;
mod tree;

pub use lockless::RadixLockless;
use tree::RadixTree;

/// The algorithm, which has no state.
pub struct Radix;

/// The tree that readers and the writer share. A poisoned lock is taken nevertheless: the tree holds plain data, and
/// the thread of the writer reports its own panic.
struct Locked<A>(RwLock<RadixTree<A>>);

impl<A: Address> Fib<A> for Locked<A> {
    fn lookup(&self, addr: A) -> NextHop {
        self.0.read().unwrap_or_else(PoisonError::into_inner).lookup(addr)
    }

    fn footprint(&self) -> Footprint {
        self.0.read().unwrap_or_else(PoisonError::into_inner).footprint()
    }
}

impl<A: Address> Instance<A> for Arc<Locked<A>> {
    fn fib(&self) -> Arc<dyn Fib<A>> {
        Arc::<Locked<A>>::clone(self)
    }

    fn patch(&mut self, _rib: &Rib<A>, changes: &[Change<A>]) -> Outcome {
        for change in changes {
            // The lock is taken for each change, as in the kernel, so that a burst of changes does not block readers.
            self.0.write().unwrap_or_else(PoisonError::into_inner).apply(change);
        }
        Outcome::Applied
    }
}

impl<A: Address> Algorithm<A> for Radix {
    fn name(&self) -> &'static str {
        "radix"
    }

    /// FreeBSD's `radix4_get_pref` and `radix6_get_pref`: always usable, never fast.
    fn preference(&self, _summary: &Summary) -> u8 {
        50
    }

    fn compile(&self, rib: &Rib<A>) -> Result<Box<dyn Instance<A>>, CompileError> {
        Ok(Box::new(Arc::new(Locked(RwLock::new(RadixTree::new(rib))))))
    }
}
