//! The writer's half: it collects changes and makes snapshots.

use std::sync::Arc;

use crate::fib::{CompileError, Fib, Instance, Outcome};
use crate::prefix::Prefix;
use crate::rib::{Change, Rib};
use crate::simd::Isa;

use super::snapshot::Snapshot;
use super::tables::{CHUNK_BITS, CHUNKS, DxrTables, MOST_WORDS};

/// The writer of a table.
pub(super) struct Writer {
    tables: DxrTables,
    /// A bit for each chunk, set if it may have changed since the snapshot.
    dirty: Vec<u64>,
    /// Whether the last outcome was [`Outcome::Batch`].
    asked: bool,
    /// The number of routes when D was chosen.
    routes: usize,
    /// The generation of the RIB that the snapshot answers like.
    generation: u64,
    snapshot: Arc<Snapshot>,
}

/// The percentage of holes in the ranges from which a change causes a rebuild: FreeBSD's default for
/// `net.route.algo.dxr.frag_limit`.
const FRAG_LIMIT: usize = 1;
/// Words of holes that do not cause a rebuild, even in a small table.
const HOLES_ALLOWED: usize = 1024;
/// With more changed chunks than this, compiling the whole table is faster: each changed chunk is read from the RIB
/// separately.
const MOST_DIRTY: usize = CHUNKS / 16;
/// With fewer routes than this D is not chosen again.
const FEW_ROUTES: usize = 1024;

impl Writer {
    pub(super) fn new(isa: Isa, rib: &Rib<u32>) -> Result<Self, CompileError> {
        let tables = DxrTables::compile(rib.ranges());
        let snapshot = Snapshot::new(&tables, isa)?;
        Ok(Writer {
            tables,
            dirty: vec![0; CHUNKS / 64],
            asked: false,
            routes: rib.len(),
            generation: rib.generation(),
            snapshot: Arc::new(snapshot),
        })
    }

    /// Marks the chunks that a change may have changed.
    fn mark(&mut self, prefix: Prefix<u32>) {
        let (first, last) = (prefix.first() >> CHUNK_BITS, prefix.last() >> CHUNK_BITS);
        (first..=last).for_each(|chunk| self.dirty[chunk as usize / 64] |= 1 << (chunk % 64));
    }

    fn count_dirty(&self) -> usize {
        self.dirty.iter().map(|bits| bits.count_ones() as usize).sum()
    }

    /// Returns the marked chunks and removes their marks.
    fn take_dirty(&mut self) -> Vec<usize> {
        let mut numbers = Vec::new();
        for (word, bits) in self.dirty.iter_mut().enumerate() {
            while *bits != 0 {
                numbers.push(word * 64 + bits.trailing_zeros() as usize);
                *bits &= *bits - 1;
            }
        }
        numbers
    }

    /// Whether the ranges have holes beyond the limit.
    fn is_fragmented(&self) -> bool {
        let ranges = &self.tables.ranges;
        ranges.unused() > ranges.used() * FRAG_LIMIT / 100 + HOLES_ALLOWED
    }

    /// Whether a batch has stored ranges that descriptors cannot reach, so that these ranges and their answers are
    /// lost.
    fn is_out_of_reach(&self) -> bool {
        self.tables.ranges.words().len() > MOST_WORDS
    }

    /// Whether the table has grown or shrunk so much that another D may be better.
    fn has_outgrown_its_split(&self, rib: &Rib<u32>) -> bool {
        let magnitude = |routes: usize| routes.max(FEW_ROUTES).ilog2();
        magnitude(rib.len()).abs_diff(magnitude(self.routes)) > 1
    }
}

impl Instance<u32> for Writer {
    fn fib(&self) -> Arc<dyn Fib<u32>> {
        Arc::<Snapshot>::clone(&self.snapshot)
    }

    /// A snapshot costs a copy of the table even after a small change, so a single change has to wait for others; the
    /// next call is treated as the batch, however small it is.
    fn patch(&mut self, rib: &Rib<u32>, changes: &[Change<u32>]) -> Outcome {
        if rib.generation() == self.generation {
            return Outcome::Applied;
        }
        changes.iter().for_each(|change| self.mark(change.prefix));
        if changes.len() == 1 && !self.asked {
            self.asked = true;
            return Outcome::Batch;
        }
        self.asked = false;
        if self.count_dirty() > MOST_DIRTY || self.has_outgrown_its_split(rib) || self.is_out_of_reach() {
            return Outcome::Rebuild;
        }
        let dirty = self.take_dirty();
        self.tables.recompile(rib, &dirty);
        if self.is_fragmented() {
            return Outcome::Rebuild;
        }
        match Snapshot::new(&self.tables, self.snapshot.isa) {
            Ok(snapshot) => self.snapshot = Arc::new(snapshot),
            // If the error persists, the compile returns it.
            Err(_) => return Outcome::Rebuild,
        }
        self.generation = rib.generation();
        Outcome::Applied
    }
}
