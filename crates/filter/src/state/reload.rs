//! What a worker needs to go on with another rule set: states and counters keep their rules.

use std::sync::Arc;

use super::counters::RuleCounters;

/// The rule of what no rule made.
pub(crate) const NO_RULE: u32 = u32::MAX;
/// The rule of what a rule made that is gone. States let packets pass, as the rule did.
pub(crate) const GONE: u32 = u32::MAX - 1;
/// As [`GONE`], but the rule of ipfw did something else, so that its states end.
pub(crate) const GONE_WITH_STATES: u32 = u32::MAX - 2;

/// The rule with this index, unless the number stands for none.
#[inline(always)]
pub(crate) fn known_rule(rule: u32) -> Option<u32> {
    (rule < GONE_WITH_STATES).then_some(rule)
}

/// For each rule of one rule set, what it is in the next one.
#[derive(Clone, Debug, Default)]
pub struct RuleMap {
    /// The index of the rule and that of its timeouts; [`GONE`] or [`GONE_WITH_STATES`] if it is gone.
    pub(crate) rules: Box<[(u32, u8)]>,
}

impl RuleMap {
    /// The new index of a rule.
    pub(crate) fn rule(&self, old: u32) -> u32 {
        self.of((old, 0)).0
    }

    /// The rule and the timeouts of what had these. What had no rule has none.
    fn of(&self, old: (u32, u8)) -> (u32, u8) {
        self.rules.get(old.0 as usize).copied().unwrap_or(old)
    }
}

/// How many reloads are remembered while the sweep has not yet visited all states. The next one visits them all at once.
const MOST_MAPS: usize = 64;

/// The maps between the rule set of the oldest state and the current one.
#[derive(Debug, Default)]
pub(super) struct RuleMaps {
    maps: Vec<Arc<RuleMap>>,
    /// Maps that no state needs any more, which the next adoption hands back: the worker frees no memory.
    retired: Vec<Arc<RuleMap>>,
    /// The number of the current rule set.
    pub generation: u8,
    /// How many entries the sweep must still visit before no state needs the maps.
    unvisited: usize,
}

impl RuleMaps {
    pub fn new() -> Self {
        RuleMaps {
            maps: Vec::with_capacity(MOST_MAPS),
            retired: Vec::with_capacity(MOST_MAPS),
            ..RuleMaps::default()
        }
    }

    pub fn push(&mut self, map: Arc<RuleMap>, entries: usize) {
        self.maps.push(map);
        self.generation = self.generation.wrapping_add(1);
        self.unvisited = entries;
    }

    /// The rule and the timeouts of a state of an older rule set.
    pub fn settle(&self, generation: u8, rule: u32, timeouts: u8) -> (u32, u8) {
        let missed = usize::from(self.generation.wrapping_sub(generation));
        let Some(first) = self.maps.len().checked_sub(missed) else { return (NO_RULE, 0) };
        self.maps[first..].iter().fold((rule, timeouts), |old, map| map.of(old))
    }

    /// Whether states must get the numbers of the current rule set before another map fits.
    pub fn is_full(&self) -> bool {
        self.maps.len() == MOST_MAPS
    }

    /// Notes that the sweep has visited so many entries.
    pub fn visited(&mut self, entries: usize) {
        self.unvisited = self.unvisited.saturating_sub(entries);
        if self.unvisited == 0 {
            self.retired.append(&mut self.maps);
        }
    }

    /// Takes the maps that no state needs any more.
    pub fn hand_back(&mut self, to: &mut Vec<Arc<RuleMap>>) {
        to.append(&mut self.retired);
    }
}

/// What the control plane prepares for each worker, and what the worker returns in exchange.
#[derive(Debug)]
pub struct Adoption {
    pub(crate) map: Arc<RuleMap>,
    pub(crate) counters: Arc<RuleCounters>,
    pub(crate) rule_states: Vec<u32>,
    pub(crate) rule_sources: Vec<u32>,
    /// Has room for all maps that a worker may hand back.
    pub(crate) former_maps: Vec<Arc<RuleMap>>,
}

impl Adoption {
    /// Room for maps that are handed back.
    pub(crate) fn room() -> Vec<Arc<RuleMap>> {
        Vec::with_capacity(2 * MOST_MAPS)
    }

    /// Takes over the counts of rules that are still there.
    pub(super) fn carry(&mut self, counters: &RuleCounters, states: &[u32], sources: &[u32]) {
        for old in 0..self.map.rules.len() {
            let new = self.map.rule(old as u32) as usize;
            self.counters.carry(new, counters.get(old));
            let pairs = [(&mut self.rule_states, states), (&mut self.rule_sources, sources)];
            for (counts, before) in pairs {
                if let (Some(count), Some(before)) = (counts.get_mut(new), before.get(old)) {
                    *count = *before;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_that_no_state_needs_are_handed_back_and_not_freed() {
        let (map, mut maps) = (Arc::new(RuleMap::default()), RuleMaps::new());
        maps.push(Arc::clone(&map), 10);
        maps.visited(9);
        let mut back = Adoption::room();
        maps.hand_back(&mut back);
        assert!(back.is_empty(), "an entry is not visited yet");
        maps.visited(1);
        assert_eq!(Arc::strong_count(&map), 2);
        maps.hand_back(&mut back);
        assert_eq!((back.len(), Arc::strong_count(&map)), (1, 2));
    }
}
