//! Pieces of what a filter remembers. Another thread hands an empty piece to the worker, which fills it between bursts and
//! hands it back: the worker neither allocates nor frees memory, and a piece takes little of its time.

use std::sync::Arc;

use fullview_filter::ruleset::{RuleSet, StateRecord, records, remove};
use fullview_filter::state::RuleCounters;

use super::filter::BurstFilter;
use crate::kernel_flows::SharedTotals;

/// So many entries of the table of states, or so many rules, are in a piece at most.
const PIECE: u32 = 1024;
/// A piece removes so many states at most: that takes longer than to copy them.
pub const MOST_REMOVED: usize = 128;

/// What a piece is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceOf {
    /// The states among the entries of the table from this number on.
    States(u32),
    /// How many states each rule has, from the rule with this index on.
    Rules(u32),
    /// States to remove, the first of which has this number.
    Removal(u32),
}

/// A piece of what a filter remembers.
pub struct FilterPiece {
    what: PieceOf,
    /// The number of the question. The worker hands it back.
    pub number: u64,
    /// The states of the piece, or those to remove.
    pub states: Vec<StateRecord>,
    /// How many states were removed.
    pub removed: u32,
    pub rule_states: Vec<u32>,
    /// Where the next piece begins. `None` if this was the last one.
    pub next: Option<u32>,
    /// How many states and how many sources there are.
    pub totals: (u32, u32),
    /// How many states have ended for new ones in the full table.
    pub replaced: u64,
    /// Known flows that a program in the kernel forwards, if it may.
    pub shared: Option<SharedTotals>,
    /// The rules in force and their counters, to which the piece belongs. Absent until the worker has filled it.
    pub rules: Option<(Arc<RuleSet>, Arc<RuleCounters>)>,
}

impl FilterPiece {
    /// A piece for the worker to fill.
    pub fn of(what: PieceOf) -> FilterPiece {
        let (states, rules) = match what {
            PieceOf::States(_) => (PIECE as usize, 0),
            PieceOf::Rules(_) => (0, PIECE as usize),
            PieceOf::Removal(_) => (0, 0),
        };
        FilterPiece {
            what,
            number: 0,
            states: Vec::with_capacity(states),
            rule_states: Vec::with_capacity(rules),
            removed: 0,
            next: None,
            totals: (0, 0),
            replaced: 0,
            shared: None,
            rules: None,
        }
    }

    /// A piece that removes states; of more than [`MOST_REMOVED`] those behind stay.
    pub fn removal(states: Vec<StateRecord>) -> FilterPiece {
        let first = states.first().map_or(0, |state| state.entry);
        FilterPiece { states, ..FilterPiece::of(PieceOf::Removal(first)) }
    }

    /// Fills the piece, whose lists are empty and have room, or removes its states.
    pub(super) fn fill(&mut self, filter: &mut BurstFilter, now: u64) {
        self.shared = filter.shared_totals();
        let (rules, worker) = filter.parts();
        self.totals = (worker.states().len() as u32, worker.sources().len() as u32);
        self.replaced = worker.replaced_states();
        self.rules = Some((Arc::clone(rules), Arc::clone(worker.counters())));
        match self.what {
            PieceOf::States(from) => {
                let entries = from..from.saturating_add(PIECE);
                self.next = records(rules, worker, now, entries, &mut self.states);
            }
            PieceOf::Rules(from) => {
                let all = worker.rule_states();
                let [from, end] =
                    [from, from.saturating_add(PIECE)].map(|bound| all.len().min(bound as usize));
                self.rule_states.extend_from_slice(&all[from..end]);
                self.next = (end < all.len()).then_some(end as u32);
            }
            PieceOf::Removal(_) => {
                let states = self.states.iter().take(MOST_REMOVED);
                self.removed = states.filter(|state| remove(worker, state)).count() as u32;
            }
        }
    }
}
