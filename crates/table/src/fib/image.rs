//! The memory of a compiled table, for lookups in a copy of it: by a program in the kernel, or by a device.
//!
//! [`Section::mark`] and [`Section::changed`] tell which blocks a copy lacks.

pub use crate::memory::{BLOCK, Mark, Section};

/// The structure of a table, which determines how to look up in its sections. The documentation of each structure
/// explains its entries (place, shift and so on).
pub enum Image<'t> {
    /// `dir18`: the index, and the leaves as a ring.
    Dir18 {
        /// 2^18 entries.
        index: Section<'t>,
        /// Two or four leaves a word, in the order of memory.
        leaves: Section<'t>,
        /// Bytes of a leaf: 1 if that can number all next hops, otherwise 2.
        leaf_bytes: usize,
    },
    /// `btree6`: the trees of each first 16 bits, and lines of 16 words.
    Btree6 {
        /// The 2^16 places of root branches.
        roots: Section<'t>,
        /// Branches, and lists of deeper trees.
        branches: Section<'t>,
        /// Leaves.
        leaves: Section<'t>,
    },
}
