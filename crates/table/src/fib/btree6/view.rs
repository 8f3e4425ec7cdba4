//! What readers hold of a `btree6` table.

use std::sync::Arc;

use crate::fib::image::Image;
use crate::fib::{Fib, Footprint};
use crate::nexthop::NextHop;
use crate::simd::{self, Isa};

use super::batch::{Batch, One};
use super::lines::{LineStore, ROOTS};
use super::space::{Hold, LineKind};

/// The stores of lines, with the token that keeps replaced lines from being written again.
///
/// It is aligned so that the reference count before it in its `Arc`, which the writer modifies at every change of the
/// table, is not on the line that readers read.
#[repr(align(128))]
pub(super) struct View {
    pub(super) lines: Arc<LineStore>,
    pub(super) isa: Isa,
    /// The number of lines in use in each store when the view began.
    pub(super) used: [usize; 2],
    /// Keeps lines that this view can reach from being written again.
    pub(super) _hold: Hold,
}

impl Fib<u128> for View {
    fn lookup(&self, addr: u128) -> NextHop {
        let mut next_hop = NextHop::NONE;
        simd::run(self.isa, One { search: self.lines.search(), addr, next_hop: &mut next_hop });
        next_hop
    }

    fn lookup_batch(&self, addrs: &[u128], next_hops: &mut [NextHop]) {
        simd::run(self.isa, Batch { search: self.lines.search(), addrs, next_hops });
    }

    fn footprint(&self) -> Footprint {
        let bytes = |store| 64 * self.used[store as usize];
        Footprint(vec![
            ("roots", 4 * ROOTS),
            ("branches", bytes(LineKind::Branches)),
            ("leaves", bytes(LineKind::Leaves)),
        ])
    }

    fn image(&self) -> Option<Image<'_>> {
        let [roots, branches, leaves] = self.lines.sections();
        Some(Image::Btree6 { roots, branches, leaves })
    }
}
