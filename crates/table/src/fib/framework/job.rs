//! A compile that can run in another thread: from a snapshot of the RIB to a compiled table.

use std::sync::Arc;

use crate::addr::Address;
use crate::fib::{CompileError, Instance};
use crate::rib::{Change, Rib};

use super::modules::Module;

/// A table to be compiled.
#[must_use = "the table is not synced until the job was run and its result offered"]
pub struct Job<A: Address> {
    pub(super) module: Module<A>,
    pub(super) rib: Arc<Rib<A>>,
    pub(super) number: u64,
}

impl<A: Address> Job<A> {
    /// Compiles the table, which may take long.
    pub fn run(self) -> Built<A> {
        let Job { module, rib, number } = self;
        Built { result: module.compile(&rib), module, generation: rib.generation(), number }
    }
}

/// The result of a [`Job`].
#[must_use = "the table is not synced until this is offered"]
pub struct Built<A: Address> {
    pub(super) result: Result<Box<dyn Instance<A>>, CompileError>,
    pub(super) module: Module<A>,
    /// The generation of the RIB that it was compiled from.
    pub(super) generation: u64,
    pub(super) number: u64,
}

/// Changes kept for a table while it is compiled. With more changes, compiling again is faster than patching.
const MOST_CHANGES: usize = 1 << 16;

/// A job under way, and the changes since it was given out.
pub(super) struct Building<A: Address> {
    pub(super) number: u64,
    /// `None` once there were too many.
    pub(super) since: Option<Vec<Change<A>>>,
}

impl<A: Address> Building<A> {
    pub(super) fn new(number: u64) -> Self {
        Building { number, since: Some(Vec::new()) }
    }

    pub(super) fn changed(&mut self, changes: &[Change<A>]) {
        let room = |since: &Vec<Change<A>>| since.len() + changes.len() <= MOST_CHANGES;
        self.since = self.since.take().filter(room).map(|mut since| {
            since.extend_from_slice(changes);
            since
        });
    }
}
