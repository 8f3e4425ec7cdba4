//! Which blocks of a table's memory were stored to, so that copies can follow it.
//!
//! Every store marks its block with the table's present *epoch*. A copier begins a new epoch ([`Section::mark`]) and
//! copies the blocks written since the epoch that it began before. Any number of copies follow one table, each at its
//! own pace, and the table knows none of them.
//!
//! Copying while the writer stores would mix two states: the copier is the writer, or makes the writer wait.

use std::sync::atomic::{AtomicU64, Ordering};

/// Words of 32 bits in a block, the smallest unit that is copied.
pub const BLOCK: usize = 256;

/// One array of a table.
#[derive(Clone, Copy)]
pub struct Section<'t>(pub(crate) &'t dyn TrackedMemory);

/// The epoch of a section's memory at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    memory: u64,
    epoch: u64,
}

/// Memory that keeps track of its stores.
pub(crate) trait TrackedMemory {
    fn tracker(&self) -> &WriteTracker;
    /// Reads the words from `first` on, as they lie in memory, and zeroes beyond the end.
    fn read(&self, first: usize, words: &mut [u32; BLOCK]);
}

impl Section<'_> {
    /// Begins a new epoch and returns the one that ended: [`Self::changed`] finds every block that is stored to after
    /// this call.
    pub fn mark(&self) -> Mark {
        self.0.tracker().mark()
    }

    /// The number of blocks up to the last one ever written; blocks among them that were never written are zero.
    pub fn blocks(&self) -> usize {
        let mut epochs = self.0.tracker().epochs.iter();
        epochs.rposition(|epoch| epoch.load(Ordering::Relaxed) != 0).map_or(0, |last| last + 1)
    }

    /// The blocks written since `mark`; `None` if the mark belongs to another table's memory.
    pub fn changed(&self, mark: Mark) -> Option<impl Iterator<Item = usize>> {
        let WriteTracker { memory, epochs, .. } = self.0.tracker();
        let written_since = move |epoch: &AtomicU64| epoch.load(Ordering::Relaxed) > mark.epoch;
        let changed = epochs.iter().enumerate().filter(move |(_, epoch)| written_since(epoch));
        (*memory == mark.memory).then(|| changed.map(|(block, _)| block))
    }

    /// Copies one block into `words`.
    pub fn read(&self, block: usize, words: &mut [u32; BLOCK]) {
        self.0.read(block * BLOCK, words);
    }
}

/// When each block of a memory was last written.
pub(crate) struct WriteTracker {
    /// Distinguishes memories, even if one is mapped where another was before.
    memory: u64,
    epoch: AtomicU64,
    /// The epoch of the last store, by block; 0 where nothing was ever written.
    epochs: Box<[AtomicU64]>,
}

impl WriteTracker {
    /// The tracker of a memory of so many words, all zero.
    pub(crate) fn new(words: usize) -> Self {
        static MEMORIES: AtomicU64 = AtomicU64::new(0);
        let epochs = (0..words.div_ceil(BLOCK)).map(|_| AtomicU64::new(0)).collect();
        WriteTracker { memory: MEMORIES.fetch_add(1, Ordering::Relaxed), epoch: AtomicU64::new(1), epochs }
    }

    /// Records a store to a word. In most cases the epoch of its block is up to date, so this is a load and no store.
    #[inline(always)]
    pub(crate) fn note(&self, word: usize) {
        let (epoch, now) = (&self.epochs[word / BLOCK], self.epoch.load(Ordering::Relaxed));
        if epoch.load(Ordering::Relaxed) != now {
            epoch.store(now, Ordering::Relaxed);
        }
    }

    fn mark(&self) -> Mark {
        Mark { memory: self.memory, epoch: self.epoch.fetch_add(1, Ordering::Relaxed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Pages, Word16};

    fn changed(section: Section<'_>, mark: Mark) -> Vec<usize> {
        section.changed(mark).unwrap().collect()
    }

    #[test]
    fn each_copy_sees_what_was_written_since_its_own_mark() {
        let pages = Pages::<Word16>::zeroed(8 * BLOCK).unwrap();
        let section = Section(&pages);
        assert_eq!(section.blocks(), 0);
        let first = section.mark();
        pages.set(2 * BLOCK - 1, 7); // the last half word of block 0
        let second = section.mark();
        pages.set(5 * BLOCK, 9);
        assert_eq!((changed(section, first), changed(section, second)), (vec![0, 2], vec![2]));
        assert_eq!(changed(section, section.mark()), []);
        assert_eq!(section.blocks(), 3);
        let mut words = [1; BLOCK];
        section.read(0, &mut words);
        assert_eq!(
            words[BLOCK - 1],
            u32::from_ne_bytes([[0, 0], 7u16.to_ne_bytes()].concat().try_into().unwrap())
        );
        section.read(4, &mut words);
        assert_eq!(words, [0; BLOCK], "beyond the end");
    }

    #[test]
    fn a_mark_of_another_memory_is_refused() {
        let [one, other] = [(); 2].map(|()| Pages::<Word16>::zeroed(1).unwrap());
        assert!(Section(&one).changed(Section(&other).mark()).is_none());
    }
}
