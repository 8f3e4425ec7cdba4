//! A FIB without prefetch, for what prefetching is worth.

use std::sync::Arc;

use fullview_table::fib::{Fib, Footprint};
use fullview_table::{Address, NextHop};

/// A FIB that ignores hints about the keys to come.
pub(super) struct WithoutPrefetch<A: Address>(pub(super) Arc<dyn Fib<A>>);

impl<A: Address> Fib<A> for WithoutPrefetch<A> {
    fn lookup(&self, addr: A) -> NextHop {
        self.0.lookup(addr)
    }

    fn lookup_batch(&self, addrs: &[A], next_hops: &mut [NextHop]) {
        self.0.lookup_batch(addrs, next_hops);
    }

    fn footprint(&self) -> Footprint {
        self.0.footprint()
    }
}
