//! What a search is made from.

use super::error::SearchError;
use super::goal::SearchGoal;

/// The goals of a search and the loads that it may offer.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchConfig {
    /// Earlier goals come first where two would measure the same.
    pub goals: Vec<SearchGoal>,
    /// The smallest load, in any unit.
    pub min_load: f64,
    /// The largest load, in the same unit.
    pub max_load: f64,
    /// Seconds of a trial at the largest load that does not count; 0 for none.
    pub warmup_duration: f64,
}

impl SearchConfig {
    pub(super) fn check(&self) -> Result<(), SearchError> {
        if self.goals.is_empty() {
            return Err(SearchError::NoGoal);
        }
        let (min, max) = (self.min_load, self.max_load);
        if !(min > 0.0 && max > min && max.is_finite()) {
            return Err(SearchError::Loads { min, max });
        }
        if !(self.warmup_duration >= 0.0 && self.warmup_duration.is_finite()) {
            return Err(SearchError::Warmup(self.warmup_duration));
        }
        self.goals.iter().enumerate().try_for_each(|(index, goal)| goal.check(index + 1))
    }
}
