//! The memory of a compiled table, for whoever looks up in a copy of it: a program in the kernel, a device.
//!
//! A copy follows its table block by block. Every store marks its block with the table's present *epoch*; whoever copies
//! begins a new epoch ([`Section::mark`]) and takes the blocks written since the one that they began before. Any number
//! of copies follow one table, each at its own pace, and the table knows none of them.
//!
//! Copying while the writer stores would mix two states: whoever copies is the writer, or has it wait.

use std::sync::atomic::{AtomicU64, Ordering};

/// Words of 32 bits in a block: the least that is copied.
pub const BLOCK: usize = 256;

/// The structure of a table, which says how to look up in its sections. Place and shift of entries, and the like, are
/// explained where the structure is.
pub enum Image<'t> {
    /// `dir18`: the index, and the leaves as a ring.
    Dir18 {
        /// 2^18 entries.
        index: Section<'t>,
        /// Two or four leaves a word, in the order of memory.
        leaves: Section<'t>,
        /// How wide a leaf is: 2, or 1 if that can number all next hops.
        leaf_bytes: usize,
    },
    /// `btree6`: the trees of each first 16 bits, and lines of 16 words.
    Btree6 {
        /// 2^16 places of branches.
        roots: Section<'t>,
        /// Branches, and lists of deeper trees.
        branches: Section<'t>,
        /// Leaves.
        leaves: Section<'t>,
    },
}

/// One array of a table.
#[derive(Clone, Copy)]
pub struct Section<'t>(pub(crate) &'t dyn Memory);

/// A moment in the life of a section's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    memory: u64,
    epoch: u64,
}

/// Memory that keeps track of its stores.
pub(crate) trait Memory {
    fn written(&self) -> &Written;
    /// The words from `first` on, as they lie in memory; zeroes beyond the end.
    fn read(&self, first: usize, words: &mut [u32; BLOCK]);
}

impl Section<'_> {
    /// Begins a new epoch, and says which one has ended: what is written from now on is [changed](Self::changed) since.
    pub fn mark(&self) -> Mark {
        self.0.written().mark()
    }

    /// Blocks up to the last one ever written. Those in it that never were are zero.
    pub fn blocks(&self) -> usize {
        let mut epochs = self.0.written().epochs.iter();
        epochs.rposition(|epoch| epoch.load(Ordering::Relaxed) != 0).map_or(0, |last| last + 1)
    }

    /// The blocks written since `mark`; `None` if that is a mark of another table's memory.
    pub fn changed(&self, mark: Mark) -> Option<impl Iterator<Item = usize>> {
        let Written { memory, epochs, .. } = self.0.written();
        let written_since = move |epoch: &AtomicU64| epoch.load(Ordering::Relaxed) > mark.epoch;
        let changed = epochs.iter().enumerate().filter(move |(_, epoch)| written_since(epoch));
        (*memory == mark.memory).then(|| changed.map(|(block, _)| block))
    }

    /// One block.
    pub fn read(&self, block: usize, words: &mut [u32; BLOCK]) {
        self.0.read(block * BLOCK, words);
    }
}

/// When each block of a memory was last written.
pub(crate) struct Written {
    /// Tells memories apart, whatever addresses they are given.
    memory: u64,
    epoch: AtomicU64,
    /// By block; 0 where nothing was ever written.
    epochs: Box<[AtomicU64]>,
}

impl Written {
    /// For a memory of so many words, all zero.
    pub(crate) fn new(words: usize) -> Self {
        static MEMORIES: AtomicU64 = AtomicU64::new(0);
        let epochs = (0..words.div_ceil(BLOCK)).map(|_| AtomicU64::new(0)).collect();
        Written { memory: MEMORIES.fetch_add(1, Ordering::Relaxed), epoch: AtomicU64::new(1), epochs }
    }

    /// A word was stored. Mostly its block's epoch is up to date: a load instead of a store.
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
    use crate::simd::{Pages, Word16};

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
    fn a_mark_of_another_memory_says_nothing() {
        let [one, other] = [(); 2].map(|()| Pages::<Word16>::zeroed(1).unwrap());
        assert!(Section(&one).changed(Section(&other).mark()).is_none());
    }
}
