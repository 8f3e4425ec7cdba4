//! `poptrie`: a trie of nodes with 64 slots that are counted instead of stored; after Asai and Ohara.
//!
//! ```text
//!   address   |  18 bits  |  6  |  6  | …
//!                  │         │
//!   direct    [ … next hop … node … ]
//!                              │
//!   node       vector    0010…  slots with a child  ─▶ children[ bits set up to the slot ]
//!              leafvec   1101…  where the next hop  ─▶ leaves[ bits set up to the slot ]
//!                               changes
//! ```
//!
//! Asai, Ohara, "Poptrie: a compressed trie with population count for fast and scalable software IP routing table
//! lookup", SIGCOMM 2015. Eighteen bits and six a level leave two bits for the last node, in IPv4 and in IPv6: there,
//! sixteen consecutive slots stand for one address.

use std::sync::Arc;

use crate::addr::Address;
use crate::memory::Full;
use crate::rib::{Change, Range, Rib, Summary};
use crate::simd::IsaChoice;

use super::tbl24::blocks_divided;
use super::{Algorithm, CompileError, Fib, Instance, Outcome};

mod batch;
mod space;
mod store;
mod view;
mod writer;

use store::{DIRECT_BITS, NODE_WORDS, PoptrieStore, SLOT_BITS};
use view::View;
use writer::Writer;

const NAME: &str = "poptrie";

/// The algorithm, with the instruction set of its batches.
pub struct Poptrie(pub IsaChoice);

/// A poptrie: the writer and the present view.
struct Patched {
    writer: Writer,
    view: Arc<View>,
}

/// For a prefix that covers more entries of the direct table than this, the whole table is compiled again.
const MOST_ENTRIES: u32 = 4096;

impl<A: Address> Instance<A> for Patched {
    fn fib(&self) -> Arc<dyn Fib<A>> {
        Arc::<View>::clone(&self.view)
    }

    fn patch(&mut self, rib: &Rib<A>, changes: &[Change<A>]) -> Outcome {
        self.writer.reclaim();
        for prefix in changes.iter().map(|change| change.prefix) {
            let entries = 1 << DIRECT_BITS.saturating_sub(prefix.len());
            if entries > MOST_ENTRIES || self.writer.update(rib, prefix).is_err() {
                return Outcome::Rebuild;
            }
        }
        if let Some(token) = self.writer.turn() {
            self.view = Arc::new(View { store: self.writer.store(), isa: self.view.isa, _token: token });
        }
        Outcome::Applied
    }
}

impl<A: Address> Algorithm<A> for Poptrie {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Its rank on full views is just below FreeBSD's `dxr` and the DPDK modules at their best. FreeBSD has no poptrie.
    fn preference(&self, _summary: &Summary) -> u8 {
        249
    }

    fn compile(&self, rib: &Rib<A>) -> Result<Box<dyn Instance<A>>, CompileError> {
        let ranges: Vec<_> = rib.ranges().collect();
        let [nodes, leaves] = capacities(&ranges)?;
        let store = PoptrieStore::zeroed(nodes, leaves)
            .map_err(|error| CompileError::Memory { algorithm: NAME, reason: error.to_string() })?;
        let full = |Full| limit("nodes", nodes as usize + 1, nodes as usize);
        let writer = Writer::build(store, [nodes, leaves], ranges.into_iter()).map_err(full)?;
        let isa = self.0.resolve();
        let view = View { store: writer.store(), isa, _token: writer.token() };
        Ok(Box::new(Patched { writer, view: Arc::new(view) }))
    }
}

/// Spare nodes for changes even in a small table; spare leaves are four times as many.
const SPARE_NODES: usize = 1 << 16;
/// Most nodes that gathers reach: their indices are signed 32-bit numbers of words.
const MOST_NODES: usize = (1 << 31) / NODE_WORDS;
const MOST_LEAVES: usize = u32::MAX as usize;

fn limit(what: &'static str, needed: usize, limit: usize) -> CompileError {
    CompileError::Limit { algorithm: NAME, what, needed, limit }
}

/// The places for nodes and leaves: twice what the table needs, and spare ones. Places never used cost no memory.
fn capacities<A: Address>(ranges: &[Range<A>]) -> Result<[u32; 2], CompileError> {
    let levels = || (DIRECT_BITS..A::BITS).step_by(usize::from(SLOT_BITS));
    let nodes: usize = levels().map(|bits| blocks_divided(ranges, bits)).sum();
    // A node has at most one leaf more than there are boundaries between ranges inside its block.
    let inside = |bits| ranges.iter().filter(|range| range.first & !A::mask(bits) != A::zero()).count();
    let leaves = nodes + levels().map(inside).sum::<usize>();
    Ok([
        doubled("nodes", nodes, SPARE_NODES, MOST_NODES)?,
        doubled("leaves", leaves, 4 * SPARE_NODES, MOST_LEAVES)?,
    ])
}

fn doubled(what: &'static str, needed: usize, spare: usize, most: usize) -> Result<u32, CompileError> {
    let capacity = u32::try_from((2 * needed + spare).min(most)).map_err(|_| limit(what, needed, most))?;
    if needed > most { Err(limit(what, needed, most)) } else { Ok(capacity) }
}
