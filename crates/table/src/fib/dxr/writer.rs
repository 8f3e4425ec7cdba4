//! The writer's half: collects changes and makes snapshots.

use std::sync::Arc;

use crate::fib::{CompileError, Fib, Instance, Outcome};
use crate::prefix::Prefix;
use crate::rib::{Change, Rib};
use crate::simd::Isa;

use super::snapshot::Snapshot;
use super::tables::{CHUNK_BITS, CHUNKS, DxrTables, MOST_WORDS};

/// The writer's half.
pub(super) struct Writer {
    tables: DxrTables,
    /// A bit for each chunk that may have changed since the snapshot.
    dirty: Vec<u64>,
    /// Whether the caller was asked to collect more changes.
    asked: bool,
    /// Routes when D was chosen.
    routes: usize,
    /// Of the RIB that the snapshot answers like.
    generation: u64,
    snapshot: Arc<Snapshot>,
}

/// Holes in the ranges, in per cent of them, beyond which a change means a rebuild: FreeBSD's default for
/// `net.route.algo.dxr.frag_limit`.
const FRAG_LIMIT: usize = 1;
/// Words of holes that are no reason to rebuild however small the table is.
const HOLES_ALLOWED: usize = 1024;
/// Beyond so many changed chunks compiling all is faster: each changed one is looked up in the RIB by itself.
const MOST_DIRTY: usize = CHUNKS / 16;
/// Below so many routes D is not chosen again.
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

    /// The marked chunks, whose marks it takes away.
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

    /// Whether a batch has stored ranges that descriptors cannot point to: they are lost, and so is what they stood
    /// for.
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

    /// A snapshot costs a copy of the table however little has changed, so one change alone is asked to wait for
    /// others; the call after that is taken for the batch, however small.
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
            // Compiling says what is wrong if it still is.
            Err(_) => return Outcome::Rebuild,
        }
        self.generation = rib.generation();
        Outcome::Applied
    }
}
