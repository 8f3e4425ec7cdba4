//! `dir18`: an index by the first 18 bits, and for each block an array of answers as fine as the block needs.
//!
//! ```text
//!   address   |   18 bits    |      14 bits       |
//!                    │                 │
//!   index    [ … place, shift … ]      │ >> shift
//!                    │                 │
//!   leaves   [ … 3 3 7 3 … ]◀──────────┘   2, 4, … 64 next hops, in one cache line (two where they take two bytes)
//! ```
//!
//! As in DIR-24-8 a lookup takes two loads without any branch on data. But a block without long prefixes costs a few
//! bytes and a block with one answer none, so that a full view takes 4.3 MB instead of 33.8, which fits in the
//! third-level cache. Leaves have one byte in a table whose next hops have numbers below 255, and two bytes in any
//! other table (7.6 MB).
//!
//! Blocks with prefixes longer than /24 are *divided*: the leaf of such a /24 has the value `PARTED`, and an array of
//! its own, up to 256 leaves, holds its answers. Lookups branch on that rare value.
//!
//! # Readers during a write
//!
//! One writer stores while readers look up; index entries and leaves are atomics. A lookup reads one index entry and
//! one leaf of the array it leads to (and in a divided block the place of a part's array, and one leaf there).
//! - A changed answer is stored into its leaf. Arrays never become coarser, so a route that is withdrawn and announced
//!   again causes stores only.
//! - An array that must become finer is written elsewhere, complete, and then the index entry is set to it, with
//!   release order. The old array is retired (`memory/reclaim.rs`): its leaves are not written again before the last
//!   reader that may be in it has ended. The places of the parts' arrays follow the leaves of a divided block and never
//!   change; another place means another array for the whole block.
//!
//! So the table before or after a change answers each lookup. When leaves run out the table is compiled again.

use crate::memory::{Word8, Word16};
use crate::rib::{Rib, Summary};
use crate::simd::IsaChoice;

use super::selection::CERTAIN;
use super::{Algorithm, CompileError, Instance};

mod batch;
mod entry;
mod space;
mod table;
mod view;
mod writer;

use table::{Dir18Table, NAME};
use writer::Writer;

/// The algorithm, with the instruction set of its batches.
pub struct Dir18(pub IsaChoice);

impl Algorithm<u32> for Dir18 {
    fn name(&self) -> &'static str {
        NAME
    }

    /// The fastest for large tables; below a hundred routes its index is most of its cost. A table that shrinks keeps it there.
    fn preference(&self, summary: &Summary) -> u8 {
        match summary.prefixes {
            0..10 => 10,
            10..100 => 245,
            _ => CERTAIN,
        }
    }

    fn compile(&self, rib: &Rib<u32>) -> Result<Box<dyn Instance<u32>>, CompileError> {
        let isa = self.0.resolve();
        if rib.highest_next_hop() < Dir18Table::<Word8>::PARTED {
            Ok(Box::new(Writer::<Word8>::compile(rib, isa)?))
        } else {
            Ok(Box::new(Writer::<Word16>::compile(rib, isa)?))
        }
    }
}
