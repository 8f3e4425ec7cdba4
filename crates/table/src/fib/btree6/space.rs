//! The allocation of lines.
//!
//! Lines are allocated in rows of 1 to 16, because the children of a branch lie in a row. A retired row is written
//! again only when no reader can be in it any more ([`Reclaim`]).

use std::io;
use std::sync::Arc;

use crate::memory::{Full, Reclaim, Token};
use crate::sync::Arc as TokenArc;

use super::lines::{FANOUT, LineStore};

/// The token that a view holds as long as a reader can read through it.
pub(super) type Hold = TokenArc<Token>;

/// One of the two stores.
#[derive(Clone, Copy, Debug)]
pub(super) enum LineKind {
    Branches,
    Leaves,
}

/// A row in use: its store and its first line.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineRow(pub(super) LineKind, pub(super) usize);

/// The bookkeeping of one store.
struct Rows {
    /// The first line that was never used.
    next: usize,
    /// The length of the row that begins at a line.
    lengths: Vec<u8>,
    /// Free rows by length.
    free: [Vec<u32>; FANOUT + 1],
    /// The number of lines in rows that are in use.
    used: usize,
}

impl Rows {
    /// Line 0 is left out: a link to it is a link that was never set.
    fn new() -> Self {
        Rows { next: 1, lengths: vec![0], free: Default::default(), used: 0 }
    }

    fn take(&mut self, length: usize, capacity: usize) -> Option<usize> {
        let first =
            self.again(length).or_else(|| self.fresh(length, capacity)).or_else(|| self.part(length))?;
        self.lengths[first] = length as u8;
        self.used += length;
        Some(first)
    }

    /// Takes a free row of this length.
    fn again(&mut self, length: usize) -> Option<usize> {
        self.free[length].pop().map(|first| first as usize)
    }

    fn fresh(&mut self, length: usize, capacity: usize) -> Option<usize> {
        let first = self.next;
        (first + length <= capacity).then(|| {
            self.next += length;
            self.lengths.resize(self.next, 0);
            first
        })
    }

    /// Takes the beginning of a longer row.
    fn part(&mut self, length: usize) -> Option<usize> {
        let (longer, first) =
            (length + 1..=FANOUT).find_map(|n| self.free[n].pop().map(|first| (n, first)))?;
        self.free[longer - length].push(first + length as u32);
        Some(first as usize)
    }
}

/// The lines, and the rows they form.
pub(super) struct LineSpace {
    pub(super) lines: Arc<LineStore>,
    rows: [Rows; 2],
    retired: Reclaim<LineRow>,
}

impl LineSpace {
    pub(super) fn new(lines: usize) -> io::Result<Self> {
        Ok(LineSpace {
            lines: Arc::new(LineStore::zeroed(lines)?),
            rows: [Rows::new(), Rows::new()],
            retired: Reclaim::new(),
        })
    }

    /// Takes a row that no reader can reach, with arbitrary content, and returns its first line.
    pub(super) fn take(&mut self, store: LineKind, length: usize) -> Result<usize, Full> {
        let capacity = self.lines.capacity();
        self.rows[store as usize].take(length, capacity).ok_or(Full)
    }

    /// The number of lines of a row.
    pub(super) fn length(&self, row: LineRow) -> usize {
        usize::from(self.rows[row.0 as usize].lengths[row.1])
    }

    /// Retires a row to which no path leads any more, or none will once the next view begins.
    pub(super) fn retire(&mut self, row: LineRow) {
        self.rows[row.0 as usize].used -= self.length(row);
        self.retired.retire(row);
    }

    /// The number of lines in use in each store.
    pub(super) fn used(&self) -> [usize; 2] {
        self.rows.each_ref().map(|rows| rows.used)
    }

    /// Whether at least as many lines are free as are in use, in both stores.
    pub(super) fn has_spare_half(&self) -> bool {
        self.rows.iter().all(|rows| rows.used <= self.lines.capacity() / 2)
    }

    /// The token of a new view, if the present view can reach retired rows.
    pub(super) fn turn(&mut self) -> Option<Hold> {
        (self.retired.retired() > 0).then(|| self.retired.turn())
    }

    /// The token of the newest view.
    pub(super) fn token(&self) -> Hold {
        self.retired.token()
    }

    /// Frees the rows that no reader can be in.
    pub(super) fn reclaim(&mut self) {
        for LineRow(store, first) in self.retired.reclaim() {
            let rows = &mut self.rows[store as usize];
            rows.free[usize::from(rows.lengths[first])].push(first as u32);
        }
    }
}
