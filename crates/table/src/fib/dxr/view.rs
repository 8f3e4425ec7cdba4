//! A snapshot as a FIB.

use crate::fib::{Fib, Footprint};
use crate::nexthop::NextHop;
use crate::simd;

use super::batch::Batch;
use super::snapshot::Snapshot;
use super::tables::{DIRECT_BITS, direct_bytes};

impl Fib<u32> for Snapshot {
    fn lookup(&self, addr: u32) -> NextHop {
        self.find(addr)
    }

    fn lookup_batch(&self, addrs: &[u32], next_hops: &mut [NextHop]) {
        simd::run(self.isa, Batch { snapshot: self, addrs, next_hops });
    }

    /// The names of the parts form FreeBSD's name of the split, such as D16X4R.
    fn footprint(&self) -> Footprint {
        const DIRECT: [&str; 8] = ["D9", "D10", "D11", "D12", "D13", "D14", "D15", "D16"];
        const ROWS: [&str; 8] = ["X11", "X10", "X9", "X8", "X7", "X6", "X5", "X4"];
        let split = usize::from(self.direct_bits - DIRECT_BITS.start());
        let [rows, ranges] = self.used.map(|words| words * size_of::<u32>());
        Footprint(vec![(DIRECT[split], direct_bytes(self.direct_bits)), (ROWS[split], rows), ("R", ranges)])
    }
}
