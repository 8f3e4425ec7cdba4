//! The results so far, by load.

use std::collections::BTreeMap;

use super::bounds::{BoundKind, LoadTrial, classify};
use super::target::SearchTarget;

/// The trials at each level.
#[derive(Debug, Clone, Default)]
pub struct TrialHistory {
    levels: BTreeMap<u32, Vec<LoadTrial>>,
}

/// The bounds that count for a target. Where losses are inverted, the upper bound is the lowest one, and lower bounds above
/// it do not count: a load is only as good as the loads below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RelevantBounds {
    pub lower: Option<u32>,
    pub upper: Option<u32>,
}

impl TrialHistory {
    pub fn add(&mut self, level: u32, trial: LoadTrial) {
        self.levels.entry(level).or_default().push(trial);
    }

    /// The trials at a level.
    pub fn at(&self, level: u32) -> &[LoadTrial] {
        self.levels.get(&level).map(Vec::as_slice).unwrap_or_default()
    }

    pub fn relevant_bounds(&self, target: &SearchTarget) -> RelevantBounds {
        let mut bounds = RelevantBounds { lower: None, upper: None };
        for (&level, trials) in &self.levels {
            match classify(target, trials) {
                Some(BoundKind::Lower) => bounds.lower = Some(level),
                Some(BoundKind::Upper) => {
                    bounds.upper = Some(level);
                    break;
                }
                None => {}
            }
        }
        bounds
    }
}

impl RelevantBounds {
    /// Whether a trial at this level can still tell something: it is between the bounds, and they are more than `width`
    /// apart.
    pub fn leave_open(&self, level: u32, width: u32) -> bool {
        let between =
            self.lower.is_none_or(|lower| lower < level) && self.upper.is_none_or(|upper| level < upper);
        between && self.distance().is_none_or(|distance| distance > width)
    }

    /// Levels between the bounds, if there are both.
    pub fn distance(&self) -> Option<u32> {
        Some(self.upper? - self.lower?)
    }
}
