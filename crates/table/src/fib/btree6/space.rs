//! Which lines are in use, and which may be written again.
//!
//! Lines are taken and given back in rows, 1 to 16 in a row, as the children of a branch lie. A row given back is
//! written again only when no reader can be in it any more ([`Reclaim`]).

use std::io;
use std::sync::Arc;

use crate::memory::{Full, Reclaim, Token};
use crate::sync::Arc as TokenArc;

use super::lines::{FANOUT, LineStore};

/// What a view holds for as long as somebody can read through it.
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
    /// Lines from here on were never used.
    next: usize,
    /// The length of the row that begins at a line.
    lengths: Vec<u8>,
    /// Free rows by length.
    free: [Vec<u32>; FANOUT + 1],
    /// Lines of rows that are in use.
    used: usize,
}

impl Rows {
    /// Line 0 is left out: a link to it is one never set.
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

    /// A row of this very length.
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

    /// The beginning of a longer row.
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

    /// A row that no reader can reach, of which nothing is known but where it begins.
    pub(super) fn take(&mut self, store: LineKind, length: usize) -> Result<usize, Full> {
        let capacity = self.lines.capacity();
        self.rows[store as usize].take(length, capacity).ok_or(Full)
    }

    /// How many lines the row that begins here has.
    pub(super) fn length(&self, row: LineRow) -> usize {
        usize::from(self.rows[row.0 as usize].lengths[row.1])
    }

    /// No path leads to this row any more, or will when the next view begins.
    pub(super) fn retire(&mut self, row: LineRow) {
        self.rows[row.0 as usize].used -= self.length(row);
        self.retired.retire(row);
    }

    /// Lines in use in each store.
    pub(super) fn used(&self) -> [usize; 2] {
        self.rows.each_ref().map(|rows| rows.used)
    }

    /// Whether changes find at least as many lines as are in use, in either store.
    pub(super) fn has_spare_half(&self) -> bool {
        self.rows.iter().all(|rows| rows.used <= self.lines.capacity() / 2)
    }

    /// The token of a new view if the present one can reach rows that were given back.
    pub(super) fn turn(&mut self) -> Option<Hold> {
        (self.retired.retired() > 0).then(|| self.retired.turn())
    }

    /// What the newest view holds.
    pub(super) fn token(&self) -> Hold {
        self.retired.token()
    }

    /// Makes the rows free that no reader can be in.
    pub(super) fn reclaim(&mut self) {
        for LineRow(store, first) in self.retired.reclaim() {
            let rows = &mut self.rows[store as usize];
            rows.free[usize::from(rows.lengths[first])].push(first as u32);
        }
    }
}
