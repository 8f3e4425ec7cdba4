//! `btree6`: a B-tree of cache lines over the ranges below each first 16 bits; four lines for every prefix up to /48.
//!
//! ```text
//!   address  | 16 bits |      32 bits: the key       | …
//!                 │                 │
//!   roots     [ … tree … ]          │
//!                 └▶ branch ────────┤  15 last keys, one comparison; 16 children in a row
//!                      └▶ branch ───┤
//!                           └▶ branch
//!                                └▶ leaf             10 ranges: last keys and next hops
//! ```
//!
//! Every tree has the same depth, so that a batch descends in steps, without a branch that depends on data. The answer
//! `ESCAPE` is no next hop: the range has a boundary that a key cannot express (prefixes longer than /48), or the tree
//! would be too large for its depth. A line of places then leads to a tree of the same kind for that block, whose key
//! is the next 32 bits.

use std::sync::Arc;

use crate::rib::{Change, Rib, Summary};
use crate::simd::IsaChoice;

use super::selection::CERTAIN;
use super::{Algorithm, CompileError, Fib, Instance, Outcome};

mod batch;
mod build;
mod key;
mod key_ranges;
mod lines;
mod patch;
mod space;
mod view;

use build::Trees;
use key::NAME;

/// The algorithm, with the instruction set of its lookups.
pub struct Btree6(pub IsaChoice);

impl Instance<u128> for Trees {
    fn fib(&self) -> Arc<dyn Fib<u128>> {
        self.view()
    }

    fn patch(&mut self, rib: &Rib<u128>, changes: &[Change<u128>]) -> Outcome {
        // The compile returns the error for a next hop that does not fit.
        if check_next_hops(rib).is_err() {
            return Outcome::Rebuild;
        }
        for change in changes {
            if self.apply(rib, change.prefix).is_err() {
                return Outcome::Rebuild;
            }
        }
        self.turn();
        Outcome::Applied
    }
}

impl Algorithm<u128> for Btree6 {
    fn name(&self) -> &'static str {
        NAME
    }

    /// The fastest in batches from a hundred prefixes on. A table that shrinks keeps it below that.
    fn preference(&self, summary: &Summary) -> u8 {
        match summary.prefixes {
            0..10 => 1,
            10..100 => 245,
            _ => CERTAIN,
        }
    }

    fn compile(&self, rib: &Rib<u128>) -> Result<Box<dyn Instance<u128>>, CompileError> {
        check_next_hops(rib)?;
        Ok(Box::new(Trees::build(rib, self.0.resolve())?))
    }
}

/// Checks that no next hop has the number of the escape.
fn check_next_hops(rib: &Rib<u128>) -> Result<(), CompileError> {
    let (needed, limit) = (rib.highest_next_hop().index(), usize::from(key::ESCAPE) - 1);
    let error = CompileError::Limit { algorithm: NAME, what: "next hops", needed, limit };
    if needed > limit { Err(error) } else { Ok(()) }
}
