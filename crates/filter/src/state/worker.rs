//! Everything that one worker remembers, and the sweep that forgets it.

use std::sync::Arc;

use super::counters::RuleCounters;
use super::hash::split_mix;
use super::table::StateTable;

/// How much a worker remembers at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerLimits {
    pub states: u32,
}

impl Default for WorkerLimits {
    /// pf's limits.
    fn default() -> Self {
        WorkerLimits { states: 100_000 }
    }
}

/// The rule of a state whose rule is gone.
pub(crate) const NO_RULE: u32 = u32::MAX;

/// What one worker remembers.
#[derive(Debug)]
pub struct FilterWorker {
    pub(crate) states: StateTable,
    pub(crate) counters: Arc<RuleCounters>,
    /// How many states each rule has.
    pub(crate) rule_states: Vec<u32>,
    /// Where the sweep goes on.
    pub(crate) cursor: u32,
    /// When the sweep last ran.
    pub(crate) swept: u32,
    /// What timeouts are multiplied with, in 1/65536.
    pub(crate) timeout_scale: u32,
    random: u64,
}

impl FilterWorker {
    /// A worker that remembers nothing yet. The seed is secret: hashes and translated ports follow from it.
    pub fn new(limits: WorkerLimits, rules: usize, seed: u64) -> Self {
        let mut random = seed;
        FilterWorker {
            states: StateTable::new(limits.states, split_mix(&mut random)),
            counters: Arc::new(RuleCounters::new(rules)),
            rule_states: vec![0; rules],
            cursor: 0,
            swept: 0,
            timeout_scale: 1 << 16,
            random,
        }
    }

    /// The table of states.
    pub fn states(&self) -> &StateTable {
        &self.states
    }

    /// The counters of rules, to be read by other threads.
    pub fn counters(&self) -> &Arc<RuleCounters> {
        &self.counters
    }

    /// A random number.
    #[inline]
    pub(crate) fn random(&mut self) -> u64 {
        split_mix(&mut self.random)
    }

    /// Removes a state, and stops counting it.
    pub(crate) fn forget(&mut self, id: u32) {
        let (_, cold) = self.states.remove(id);
        if let Some(count) = self.rule_states.get_mut(cold.rule as usize) {
            *count = count.saturating_sub(1);
        }
    }
}
