//! The lookup contract: what the hot path sees, and what a new algorithm implements.
//!
//! After FreeBSD's `fib_lookup_module` (D27401). A FIB is a compiled form of the [`Rib`]: it can always be thrown away
//! and compiled again. To add an algorithm, write one file here and add one line to [`registry`]; conformance tests,
//! fuzzing, experiments, command line and reports walk the registry.

use std::sync::Arc;

use crate::addr::Address;
use crate::nexthop::NextHop;
use crate::rib::{Change, Rib, Summary};
use image::Image;

pub mod bsearch;
pub mod btree6;
pub mod dir18;
pub mod dpdk_lpm4;
pub mod dpdk_lpm6;
pub mod dxr;
pub mod framework;
pub mod image;
pub mod linear;
pub mod poptrie;
pub mod preference;
pub mod radix;
pub mod registry;
pub mod selection;
mod tbl24;

/// What the hot path sees. `dyn` is paid once a burst, not once a packet.
pub trait Fib<A: Address>: Send + Sync {
    /// The next hop of the longest prefix that contains `addr`.
    fn lookup(&self, addr: A) -> NextHop;

    /// Answers `addrs[i]` into `next_hops[i]`, for as many as the shorter slice holds.
    fn lookup_batch(&self, addrs: &[A], next_hops: &mut [NextHop]) {
        for (addr, next_hop) in addrs.iter().zip(next_hops) {
            *next_hop = self.lookup(*addr);
        }
    }

    /// Asks the processor for the memory that lookups of these addresses will touch, as far as that helps; a caller
    /// does so for the addresses after those it looks up now.
    fn prefetch(&self, _addrs: &[A]) {}

    /// Asks for the memory that lookups of these addresses will touch last, whose place stands in what [`Self::prefetch`]
    /// asked for: to be called when that has had time to come, and there is something left to do before the lookups.
    fn prefetch_deeper(&self, _addrs: &[A]) {}

    /// Memory that lookups may touch, by part.
    fn footprint(&self) -> Footprint;

    /// The memory itself, for lookups in a copy of it; `None` if nobody is told how to look up in it.
    fn image(&self) -> Option<Image<'_>> {
        None
    }
}

/// Bytes by part of a structure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprint(pub Vec<(&'static str, usize)>);

impl Footprint {
    /// All parts together, in bytes.
    pub fn total(&self) -> usize {
        self.0.iter().map(|(_, bytes)| bytes).sum()
    }
}

/// A lookup algorithm: what a new file implements.
pub trait Algorithm<A: Address>: Sync {
    /// The name its users know; unique in the registry of its family.
    fn name(&self) -> &'static str;

    /// How well it suits such a table, 0 to 255; see [`selection`].
    fn preference(&self, summary: &Summary) -> u8;

    /// Builds the structure for the whole table. On failure the caller keeps what it had.
    ///
    /// # Errors
    /// A [`CompileError`] if the structure cannot hold the table or gets no memory.
    fn compile(&self, rib: &Rib<A>) -> Result<Box<dyn Instance<A>>, CompileError>;
}

/// The writer's half of a compiled table. Readers hold the [`Fib`] it hands out.
///
/// ```
/// use fullview_table::fib::{Outcome, registry};
/// use fullview_table::{Change, NextHop, Rib};
///
/// let algorithm = registry::find::<u32>("dpdk_lpm4").ok_or("no such algorithm")?;
/// let mut rib = Rib::default();
/// let mut instance = algorithm.compile(&rib)?;
/// let change = Change { prefix: "198.18.0.0/15".parse()?, next_hop: Some(NextHop(1)) };
/// rib.apply(change);                                    // the RIB first: it is the truth
/// if instance.patch(&rib, &[change]) != Outcome::Applied {
///     instance = algorithm.compile(&rib)?;
/// }
/// assert_eq!(instance.fib().lookup(0xc612_0001), NextHop(1)); // fetched again after the change
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Instance<A: Address>: Send {
    /// The FIB as it stands. After [`Outcome::Applied`] this may be another one than before: fetch it again.
    fn fib(&self) -> Arc<dyn Fib<A>>;

    /// Brings the FIB up to `rib`, which already holds `changes`. Readers of the FIB handed out before see each
    /// lookup answered by the old or by the new state.
    fn patch(&mut self, rib: &Rib<A>, changes: &[Change<A>]) -> Outcome;
}

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The FIB now answers like the RIB.
    Applied,
    /// This structure cannot take the change: compile it again.
    Rebuild,
    /// Worth doing only for many changes at once: hand them over together, later. The next call is taken for that
    /// batch, however small it is.
    Batch,
    /// The structure is of no further use; do not use this algorithm for this table again.
    Error(String),
}

/// Why a table could not be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// An index or size limit of the structure.
    #[error("{algorithm} cannot hold this table: {needed} {what} needed, {limit} possible")]
    Limit {
        /// Whose limit.
        algorithm: &'static str,
        /// Of what there are too many.
        what: &'static str,
        /// How many the table needs.
        needed: usize,
        /// How many fit.
        limit: usize,
    },
    /// The system gave no memory.
    #[error("{algorithm} got no memory for its table: {reason}; free some, or choose a smaller algorithm")]
    Memory {
        /// Whose table.
        algorithm: &'static str,
        /// The system's words.
        reason: String,
    },
}

/// An [`Instance`] of an immutable structure: every change is a rebuild.
pub(crate) struct Immutable<A: Address>(Arc<dyn Fib<A>>);

impl<A: Address> Immutable<A> {
    pub(crate) fn boxed(fib: impl Fib<A> + 'static) -> Box<dyn Instance<A>> {
        Box::new(Immutable(Arc::new(fib)))
    }
}

impl<A: Address> Instance<A> for Immutable<A> {
    fn fib(&self) -> Arc<dyn Fib<A>> {
        Arc::clone(&self.0)
    }
    fn patch(&mut self, _rib: &Rib<A>, _changes: &[Change<A>]) -> Outcome {
        Outcome::Rebuild
    }
}
