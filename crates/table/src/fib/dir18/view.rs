//! What readers hold of a `dir18` table.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::fib::image::{Image, Section};
use crate::fib::{Fib, Footprint};
use crate::memory::{Token, Word};
use crate::nexthop::NextHop;
use crate::simd::{self, Isa};
use crate::sync::Arc as TokenArc;

use super::batch::Batch;
use super::entry::INDEX_BITS;
use super::table::Dir18Table;

/// The table, and the token that keeps the arrays of this moment from being used again.
///
/// For the reason of its alignment see [`CachePadded`](crate::memory::CachePadded).
#[repr(align(128))]
pub(super) struct View<W: Word> {
    pub(super) table: Arc<Dir18Table<W>>,
    pub(super) isa: Isa,
    pub(super) _token: TokenArc<Token>,
}

impl<W: Word> Fib<u32> for View<W> {
    fn lookup(&self, addr: u32) -> NextHop {
        self.table.lookup(addr)
    }

    fn lookup_batch(&self, addrs: &[u32], next_hops: &mut [NextHop]) {
        simd::run(self.isa, Batch { table: &self.table, addrs, next_hops });
    }

    fn prefetch(&self, addrs: &[u32]) {
        self.table.prefetch(addrs);
    }

    fn prefetch_deeper(&self, addrs: &[u32]) {
        self.table.prefetch_leaves(addrs);
    }

    fn footprint(&self) -> Footprint {
        let leaves = self.table.taken.0.load(Ordering::Relaxed);
        let leaves = leaves * size_of::<W>() / W::ENTRIES;
        Footprint(vec![("index", size_of::<u32>() << INDEX_BITS), ("leaves", leaves)])
    }

    fn image(&self) -> Option<Image<'_>> {
        let (index, leaves) = (Section(&self.table.index), Section(&self.table.leaves));
        Some(Image::Dir18 { index, leaves, leaf_bytes: size_of::<W>() / W::ENTRIES })
    }
}
