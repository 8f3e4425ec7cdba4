//! The lookup contract: what the hot path sees, and what a new algorithm implements.
//!
//! The contract follows FreeBSD's `fib_lookup_module` (D27401). A FIB is a compiled form of the [`Rib`]: it can always
//! be dropped and compiled again. To add an algorithm, write one file here and add one line to [`registry`];
//! conformance tests, fuzzing, experiments, command line and reports use every algorithm of the registry.

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

/// A compiled table as the hot path uses it. A dynamic call is made once a burst, not once a packet.
pub trait Fib<A: Address>: Send + Sync {
    /// The next hop of the longest prefix that contains `addr`.
    fn lookup(&self, addr: A) -> NextHop;

    /// Looks up `addrs[i]` and stores the answer to `next_hops[i]`, for as many as the shorter slice holds.
    fn lookup_batch(&self, addrs: &[A], next_hops: &mut [NextHop]) {
        for (addr, next_hop) in addrs.iter().zip(next_hops) {
            *next_hop = self.lookup(*addr);
        }
    }

    /// Prefetches the memory that lookups of these addresses will read, as far as that helps. A caller does so for the
    /// addresses after those that it looks up now.
    fn prefetch(&self, _addrs: &[A]) {}

    /// Prefetches the memory that lookups of these addresses will read last. Its place is in the memory that
    /// [`Self::prefetch`] asked for, so call this when that memory has had time to arrive, and when there is still
    /// other work to do before the lookups.
    fn prefetch_deeper(&self, _addrs: &[A]) {}

    /// The memory that lookups may read, by part.
    fn footprint(&self) -> Footprint;

    /// The memory itself, for lookups in a copy of it; `None` if its structure is private.
    fn image(&self) -> Option<Image<'_>> {
        None
    }
}

/// The bytes of a structure, by part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprint(pub Vec<(&'static str, usize)>);

impl Footprint {
    /// The bytes of all parts.
    pub fn total(&self) -> usize {
        self.0.iter().map(|(_, bytes)| bytes).sum()
    }
}

/// A lookup algorithm: what a new file implements.
pub trait Algorithm<A: Address>: Sync {
    /// The name that users select it with; unique in the registry of its family.
    fn name(&self) -> &'static str;

    /// How well it suits such a table, from 0 to 255; see [`selection`].
    fn preference(&self, summary: &Summary) -> u8;

    /// Builds the structure for the whole table. On failure the caller keeps its old one.
    ///
    /// # Errors
    /// A [`CompileError`] if the structure cannot hold the table or gets no memory.
    fn compile(&self, rib: &Rib<A>) -> Result<Box<dyn Instance<A>>, CompileError>;
}

/// The writer's half of a compiled table. Readers hold the [`Fib`] that it provides.
///
/// ```
/// use fullview_table::fib::{Outcome, registry};
/// use fullview_table::{Change, NextHop, Rib};
///
/// let algorithm = registry::find::<u32>("dpdk_lpm4").ok_or("no such algorithm")?;
/// let mut rib = Rib::default();
/// let mut instance = algorithm.compile(&rib)?;
/// let change = Change { prefix: "198.18.0.0/15".parse()?, next_hop: Some(NextHop(1)) };
/// rib.apply(change);                                    // the RIB first: patch reads it
/// if instance.patch(&rib, &[change]) != Outcome::Applied {
///     instance = algorithm.compile(&rib)?;
/// }
/// assert_eq!(instance.fib().lookup(0xc612_0001), NextHop(1)); // fetched again after the change
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Instance<A: Address>: Send {
    /// The present FIB. After [`Outcome::Applied`] it may be another one than before, so fetch it again.
    fn fib(&self) -> Arc<dyn Fib<A>>;

    /// Brings the FIB up to `rib`, which already holds `changes`. The old or the new state answers each lookup of
    /// readers that hold the FIB from before.
    fn patch(&mut self, rib: &Rib<A>, changes: &[Change<A>]) -> Outcome;
}

/// The result of a patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The FIB now answers like the RIB.
    Applied,
    /// The structure cannot take the change: compile it again.
    Rebuild,
    /// The structure is worth patching only with many changes at once: pass them together, later. It treats the next
    /// call as that batch, however small it is.
    Batch,
    /// The structure is unusable; do not use this algorithm for this table again.
    Error(String),
}

/// Why a table could not be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// The table exceeds an index or size limit of the structure.
    #[error("{algorithm} cannot hold this table: {needed} {what} needed, {limit} possible")]
    Limit {
        /// The algorithm that has the limit.
        algorithm: &'static str,
        /// What the limit counts.
        what: &'static str,
        /// How many of these the table needs.
        needed: usize,
        /// How many of these are possible.
        limit: usize,
    },
    /// The system did not provide memory.
    #[error("{algorithm} got no memory for its table: {reason}; free some, or choose a smaller algorithm")]
    Memory {
        /// The algorithm that asked for it.
        algorithm: &'static str,
        /// The system's error message.
        reason: String,
    },
}

/// An [`Instance`] of an immutable structure: every change needs a rebuild.
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
