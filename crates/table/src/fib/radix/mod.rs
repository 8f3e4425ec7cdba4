//! `radix`: the BSD radix tree under a read lock taken for every lookup, as FreeBSD forwarded before D27401.
//!
//! It compiles any table and takes any change, so every table can fall back to it. `lockless.rs` has the copy without a
//! lock.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

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
///
/// Each lookup writes the lock. An Intel processor holds a load back whose address has the same lowest twelve bits as a
/// store before it ("4K aliasing", Intel 64 and IA-32 Architectures Optimization Reference Manual), so that some trees
/// were far slower than their copies (docs/algorithms/radix.md). So the word of the lock lies where no entry of the tree
/// has anything that is read, and the tree's own words lie behind it.
#[repr(C, align(64))]
struct Locked<A> {
    before: [u64; tree::UNUSED / 8],
    /// Begins with the word of the lock, as `std` lays it out today. Only speed depends on it.
    tree: RwLock<RadixTree<A>>,
}

impl<A: Address> Locked<A> {
    fn new(rib: &Rib<A>) -> Self {
        Locked { before: Default::default(), tree: RwLock::new(RadixTree::new(rib)) }
    }

    fn read(&self) -> RwLockReadGuard<'_, RadixTree<A>> {
        self.tree.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<A: Address> Fib<A> for Locked<A> {
    fn lookup(&self, addr: A) -> NextHop {
        self.read().lookup(addr)
    }

    fn footprint(&self) -> Footprint {
        self.read().footprint()
    }
}

impl<A: Address> Instance<A> for Arc<Locked<A>> {
    fn fib(&self) -> Arc<dyn Fib<A>> {
        Arc::<Locked<A>>::clone(self)
    }

    fn patch(&mut self, _rib: &Rib<A>, changes: &[Change<A>]) -> Outcome {
        for change in changes {
            // The lock is taken for each change, as in the kernel, so that a burst of changes does not block readers.
            self.tree.write().unwrap_or_else(PoisonError::into_inner).apply(change);
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
        Ok(Box::new(Arc::new(Locked::new(rib))))
    }
}
