//! Other rules for a filter while packets flow. Another thread hands them to the worker, which takes them between bursts and
//! hands back what it no longer needs, so that the worker neither allocates nor frees memory.

use std::sync::Arc;

use fullview_filter::ruleset::RuleSet;
use fullview_filter::state::Adoption;
use rtrb::{Consumer, Producer, PushError, RingBuffer};

use super::filter::{BurstFilter, EnforceableRules};

/// Changes that wait for the worker at most.
const RING: usize = 16;

/// Other rules, and how states and counters go on with them.
pub struct RuleChange {
    rules: Arc<RuleSet>,
    adoption: Adoption,
}

impl RuleChange {
    /// A change from the rules that are in force, or will be after the changes sent before.
    pub fn new(old: &EnforceableRules, new: &EnforceableRules) -> RuleChange {
        RuleChange { adoption: new.rules().adoption(old.rules()), rules: Arc::clone(new.rules()) }
    }
}

/// The worker has not yet taken the changes that were sent before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{RING} changes of the rules wait for the worker, which does not take them: try again later")]
pub struct FilterBusy;

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
}

/// Both ends of the connection with the filter of one worker.
pub fn filter_link() -> (FilterClient, FilterServer) {
    let (to_worker, changes) = RingBuffer::new(RING);
    let (taken, from_worker) = RingBuffer::new(RING);
    (FilterClient { changes: to_worker, taken: from_worker }, FilterServer { changes, taken })
}

impl FilterClient {
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
    /// Applies the changes that wait, as far as there is room to hand the former rules back.
    pub(super) fn serve(&mut self, filter: &mut BurstFilter) {
        while !self.taken.is_full()
            && let Ok(RuleChange { rules, adoption }) = self.changes.pop()
        {
            let (rules, adoption) = filter.adopt(rules, adoption);
            // There is room: only this thread fills the ring.
            let _ = self.taken.push(RuleChange { rules, adoption });
        }
    }
}
