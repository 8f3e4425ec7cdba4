//! What readers hold of a `poptrie` table.

use std::sync::Arc;

use crate::addr::Address;
use crate::fib::{Fib, Footprint};
use crate::memory::Token;
use crate::nexthop::NextHop;
use crate::simd::{self, Isa};
use crate::sync::Arc as TokenArc;

use super::batch::{Batch, lookup_one};
use super::store::PoptrieStore;

/// The tables, with the token that keeps everything they lead to from being written again.
///
/// For the reason of its alignment see [`CachePadded`](crate::memory::CachePadded).
#[repr(align(128))]
pub(super) struct View {
    pub(super) store: Arc<PoptrieStore>,
    pub(super) isa: Isa,
    pub(super) _token: TokenArc<Token>,
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
