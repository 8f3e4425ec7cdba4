//! The copy of one section of a table in shared memory.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use fullview_table::fib::image::{BLOCK, Mark, Section};

/// A copy, and what is known about its memory, which was all zero at first.
pub(super) struct SectionCopy {
    /// The blocks of the copy.
    range: Range<usize>,
    mark: Option<Mark>,
    /// How many of its first blocks may hold other words than zero.
    held: usize,
    /// How many of its first blocks hold nothing of other tables.
    clean: usize,
}

impl SectionCopy {
    /// An empty copy in memory that no other table uses.
    pub fn exclusive(blocks: usize) -> SectionCopy {
        SectionCopy { range: 0..blocks, mark: None, held: 0, clean: blocks }
    }

    /// A copy without memory.
    pub fn unplaced() -> SectionCopy {
        SectionCopy::exclusive(0)
    }

    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Moves to other blocks. A copy with another first block is written in full at the next update.
    pub fn move_to(&mut self, range: Range<usize>) {
        if range.start != self.range.start {
            (self.mark, self.held, self.clean) = (None, 0, 0);
        }
        self.clean = self.clean.min(range.len());
        self.held = self.held.min(range.len());
        self.range = range;
    }

    /// Copies the changed blocks of a section that fits, and returns how many. The section of another table is copied in
    /// full, and zeroes after it.
    pub fn follow(&mut self, memory: &[AtomicU32], section: Section<'_>) -> usize {
        let blocks = self.range.len();
        let own = &memory[self.range.start * BLOCK..self.range.end * BLOCK];
        let copy = |block: usize| copy(section, block, &own[block * BLOCK..][..BLOCK]);
        let needed = section.blocks();
        let since = self.mark.replace(section.mark());
        let copied = match since.and_then(|mark| section.changed(mark)) {
            Some(changed) => changed.map(copy).count(),
            None => (0..needed.max(self.held)).map(copy).count(),
        };
        self.held = self.held.max(needed);
        let foreign = std::mem::replace(&mut self.clean, blocks)..blocks;
        copied + foreign.map(copy).count()
    }
}

fn copy(section: Section<'_>, block: usize, to: &[AtomicU32]) {
    let mut words = [0; BLOCK];
    section.read(block, &mut words);
    store(to, &words);
}

pub(super) fn store(to: &[AtomicU32], words: &[u32]) {
    to.iter().zip(words).for_each(|(to, word)| to.store(*word, Ordering::Relaxed));
}
