//! `dxr`: a direct table of 2^20 chunks in two stages, and sorted ranges in each chunk; after Zec, Rizzo and Mikuc.
//!
//! ```text
//!   address   |  D bits  |  X = 20 - D bits  |  12 bits  |
//!                  │              │                │
//!   direct    [ … row … ]         │                │         rows that are alike are stored once
//!                  └──▶ row [ … chunk … ]          │
//!                                 └──▶ ranges [ start hop, start hop, … ]    chunks that are alike are stored once
//! ```
//!
//! A chunk has 4,096 addresses. Its descriptor in the row holds the next hop of all of them, or the place and the
//! number of its ranges; these are sorted by their first address and found by bisection. A range takes four bytes, or
//! two in a chunk where all ranges begin at a multiple of 256 and all next hops are below 4,096.

use crate::rib::{Rib, Summary};
use crate::simd::IsaChoice;

use super::{Algorithm, CompileError, Instance};

mod batch;
mod runs;
mod snapshot;
mod tables;
mod view;
mod writer;

use snapshot::NAME;
use writer::Writer;

/// The algorithm, with the instruction set of its batches.
pub struct Dxr(pub IsaChoice);

impl Algorithm<u32> for Dxr {
    fn name(&self) -> &'static str {
        NAME
    }

    /// FreeBSD's `dxr_get_pref`: good for every table.
    fn preference(&self, _summary: &Summary) -> u8 {
        251
    }

    fn compile(&self, rib: &Rib<u32>) -> Result<Box<dyn Instance<u32>>, CompileError> {
        Ok(Box::new(Writer::new(self.0.resolve(), rib)?))
    }
}
