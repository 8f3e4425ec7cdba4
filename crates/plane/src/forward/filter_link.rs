//! What other threads want of a filter while packets flow: other rules, and pieces of what it remembers. They hand it to the
//! worker, which takes it between bursts and hands back what it no longer needs, so that the worker neither allocates nor
//! frees memory.

use std::sync::Arc;

use fullview_filter::ruleset::RuleSet;
use fullview_filter::state::Adoption;
use rtrb::{Consumer, Producer, PushError, RingBuffer};

use super::filter::{BurstFilter, EnforceableRules};
use super::filter_piece::FilterPiece;
use crate::filter_time::milliseconds;

/// Changes, and pieces, that wait for the worker at most.
const RING: usize = 16;

/// Other rules, and how states and counters go on with them.
pub struct RuleChange {
    rules: Arc<RuleSet>,
    /// `None` if the rules are the same ones, with other tables.
    adoption: Option<Adoption>,
}

impl RuleChange {
    /// A change from the rules that are in force, or will be after the changes sent before.
    pub fn new(old: &EnforceableRules, new: &EnforceableRules) -> RuleChange {
        RuleChange { adoption: Some(new.rules().adoption(old.rules())), rules: Arc::clone(new.rules()) }
    }

    /// A change to the same rules with other tables, for which the worker has next to nothing to do.
    pub fn of_tables(new: &EnforceableRules) -> RuleChange {
        RuleChange { adoption: None, rules: Arc::clone(new.rules()) }
    }
}

/// The worker has not yet taken the changes that were sent before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{RING} changes of the rules wait for the worker, which does not take them: try again later")]
pub struct FilterBusy;

/// The end of the threads that ask what the filter remembers.
pub struct FilterInspector {
    pieces: Producer<Box<FilterPiece>>,
    filled: Consumer<Box<FilterPiece>>,
}

/// The end of the thread that changes rules.
pub struct FilterClient {
    changes: Producer<RuleChange>,
    taken: Consumer<RuleChange>,
}

/// The worker's end.
pub struct FilterServer {
    changes: Consumer<RuleChange>,
    /// The former rules of each change.
    taken: Producer<RuleChange>,
    pieces: Consumer<Box<FilterPiece>>,
    filled: Producer<Box<FilterPiece>>,
}

/// All ends of the connection with the filter of one worker.
pub fn filter_link() -> (FilterClient, FilterInspector, FilterServer) {
    let (to_worker, changes) = RingBuffer::new(RING);
    let (taken, from_worker) = RingBuffer::new(RING);
    let (to_fill, pieces) = RingBuffer::new(RING);
    let (filled, from_filling) = RingBuffer::new(RING);
    let client = FilterClient { changes: to_worker, taken: from_worker };
    let inspector = FilterInspector { pieces: to_fill, filled: from_filling };
    (client, inspector, FilterServer { changes, taken, pieces, filled })
}

impl FilterInspector {
    /// Hands a piece to the worker, to be filled.
    ///
    /// # Errors
    /// Fails if too many wait.
    pub fn send(&mut self, piece: Box<FilterPiece>) -> Result<(), FilterBusy> {
        self.pieces.push(piece).map_err(|PushError::Full(_)| FilterBusy)
    }

    /// The next piece that the worker has filled.
    pub fn receive(&mut self) -> Option<Box<FilterPiece>> {
        self.filled.pop().ok()
    }
}

impl FilterClient {
    /// Whether the next change can be handed over.
    pub fn has_room(&self) -> bool {
        !self.changes.is_full()
    }

    /// Hands a change to the worker.
    ///
    /// # Errors
    /// Fails if too many wait; then nothing changes.
    pub fn send(&mut self, change: RuleChange) -> Result<(), FilterBusy> {
        self.changes.push(change).map_err(|PushError::Full(_)| FilterBusy)
    }

    /// Frees the former rules of the changes that the worker has taken. Returns how many there were.
    pub fn free_former(&mut self) -> usize {
        std::iter::from_fn(|| self.taken.pop().ok()).count()
    }
}

impl FilterServer {
    /// Applies the changes that wait, as far as there is room to hand the former rules back, and fills one piece: who sent changes
    /// before a piece knows from the answer that they are applied.
    pub fn serve(&mut self, filter: &mut BurstFilter) {
        while !self.taken.is_full()
            && let Ok(change) = self.changes.pop()
        {
            // There is room: only this thread fills the ring.
            let _ = self.taken.push(adopt(filter, change));
        }
        if self.changes.is_empty()
            && !self.filled.is_full()
            && let Ok(mut piece) = self.pieces.pop()
        {
            piece.fill(filter, milliseconds());
            let _ = self.filled.push(piece);
        }
    }
}

/// Goes on with other rules; returns what is no longer needed.
fn adopt(filter: &mut BurstFilter, RuleChange { rules, adoption }: RuleChange) -> RuleChange {
    let Some(adoption) = adoption else {
        return RuleChange { rules: filter.replace_rules(rules), adoption: None };
    };
    let (rules, adoption) = filter.adopt(rules, adoption);
    RuleChange { rules, adoption: Some(adoption) }
}
