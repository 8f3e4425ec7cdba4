//! Runs of words, of which equal ones are stored once: the chunks and the trie rows of `dxr`, found by hash and
//! counted.

use std::collections::BTreeSet;
use std::hash::BuildHasher;
use std::ops;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

/// The runs, one after the other, with holes where runs were released.
#[derive(Default)]
pub(super) struct Runs {
    words: Vec<u32>,
    runs: HashTable<Run>,
    /// Holes as (length, start), so that the shortest one that suffices is found first.
    holes: BTreeSet<(usize, usize)>,
    /// The number of words in holes.
    unused: usize,
}

struct Run {
    start: usize,
    len: usize,
    /// The number of users, never 0.
    users: u32,
}

impl Run {
    fn span(&self) -> ops::Range<usize> {
        self.start..self.start + self.len
    }
}

fn hash(content: &[u32]) -> u64 {
    FxBuildHasher.hash_one(content)
}

impl Runs {
    /// Counts one more user of the run with this content, which is stored if it is new. Returns its start.
    pub(super) fn share(&mut self, content: &[u32]) -> usize {
        let hash_of_content = hash(content);
        let words = &self.words;
        if let Some(run) = self.runs.find_mut(hash_of_content, |run| words[run.span()] == *content) {
            run.users += 1;
            return run.start;
        }
        let start = self.place(content);
        let (words, run) = (&self.words, Run { start, len: content.len(), users: 1 });
        self.runs.insert_unique(hash_of_content, run, |run| hash(&words[run.span()]));
        start
    }

    /// Counts one user less of the run at `start`, which [`Self::share`] returned; a run without users becomes a hole.
    #[allow(clippy::expect_used)]
    pub(super) fn release(&mut self, start: usize, len: usize) {
        let found = self.runs.find_entry(hash(&self.words[start..start + len]), |run| run.start == start);
        let mut entry =
            found.ok().expect("a run that is released was shared before, and its content never changes");
        entry.get_mut().users -= 1;
        if entry.get().users == 0 {
            entry.remove();
            self.unused += len;
            self.holes.insert((len, start));
        }
    }

    /// Writes the content into the shortest hole that has room, otherwise after all other words.
    fn place(&mut self, content: &[u32]) -> usize {
        let Some(hole) = self.holes.range((content.len(), 0)..).next().copied() else {
            self.words.extend_from_slice(content);
            return self.words.len() - content.len();
        };
        let (len, start) = hole;
        self.holes.remove(&hole);
        self.unused -= content.len();
        if len > content.len() {
            self.holes.insert((len - content.len(), start + content.len()));
        }
        self.words[start..start + content.len()].copy_from_slice(content);
        start
    }

    /// All words, holes included.
    pub(super) fn words(&self) -> &[u32] {
        &self.words
    }

    /// The number of words in holes.
    pub(super) fn unused(&self) -> usize {
        self.unused
    }

    /// The number of words in runs.
    pub(super) fn used(&self) -> usize {
        self.words.len() - self.unused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_runs_are_stored_once_until_their_last_user_releases_them() {
        let mut store = Runs::default();
        let first = store.share(&[1, 2, 3]);
        assert_eq!(store.share(&[1, 2, 3]), first);
        let other = store.share(&[1, 2]);
        assert_ne!(other, first);
        assert_eq!((store.used(), store.unused()), (5, 0));
        store.release(first, 3);
        assert_eq!((store.used(), store.unused()), (5, 0), "one user is left");
        store.release(first, 3);
        assert_eq!((store.used(), store.unused()), (2, 3));
        assert_eq!(store.words()[other..other + 2], [1, 2]);
    }

    #[test]
    fn a_hole_is_filled_again_the_shortest_first() {
        let mut store = Runs::default();
        let runs: [&[u32]; 4] = [&[1; 6], &[2], &[3; 4], &[4]];
        let starts = runs.map(|run| store.share(run));
        store.release(starts[0], 6);
        store.release(starts[2], 4);
        assert_eq!(store.share(&[5; 3]), starts[2]);
        assert_eq!(store.share(&[6; 6]), starts[0]);
        assert_eq!(store.share(&[7]), starts[2] + 3, "the rest of the hole");
        assert_eq!((store.words().len(), store.unused()), (12, 0));
    }
}
