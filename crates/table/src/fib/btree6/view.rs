//! What readers hold of a `btree6` table.

use std::sync::Arc;

use crate::fib::image::Image;
use crate::fib::{Fib, Footprint};
use crate::nexthop::NextHop;
use crate::simd::{self, Isa};

use super::batch::{Batch, One};
use super::lines::{LineStore, ROOTS};
use super::space::{Hold, LineKind};

/// What readers hold. Aligned so that the count before it in its `Arc`, which the writer changes with every change of
/// the table, is not on the line that readers read.
#[repr(align(128))]
pub(super) struct View {
    pub(super) lines: Arc<LineStore>,
    pub(super) isa: Isa,
    /// LineStore in use in each store when the view began.
    pub(super) used: [usize; 2],
    /// Replaced lines are not written again before the views that can reach them have ended.
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
