//! The search for one goal: its targets, one after the other.

use super::expansion::{Expansion, SharedStep};
use super::history::{RelevantBounds, TrialHistory};
use super::strategy::{BoundSide, Choice, Nomination};
use super::target::SearchTarget;

/// The state of a goal.
#[derive(Debug, Clone)]
pub struct GoalSearch {
    /// The final target is the last.
    targets: Vec<SearchTarget>,
    current: usize,
    start: RelevantBounds,
    expansion: Expansion,
    top: u32,
}

impl GoalSearch {
    /// `targets` is not empty, as a chain never is. The search starts from the levels of two of the first trials.
    pub fn new(targets: Vec<SearchTarget>, (lower, upper): (u32, u32), top: u32) -> GoalSearch {
        let start = RelevantBounds { lower: Some(lower), upper: Some(upper) };
        let expansion = Expansion::new(&targets[0], start.distance(), top);
        GoalSearch { targets, current: 0, start, expansion, top }
    }

    /// The load that this goal would offer next; `None` if the goal is reached.
    pub fn nominate(&mut self, history: &TrialHistory, shared: SharedStep) -> Option<Nomination> {
        loop {
            let target = &self.targets[self.current];
            let bounds = history.relevant_bounds(target);
            let (start, top, expansion) = (self.start, self.top, &mut self.expansion);
            let nominated = Choice { target, bounds, start, top, shared, expansion }.nominate();
            if nominated.is_some() || self.current + 1 == self.targets.len() {
                return nominated;
            }
            self.start = bounds;
            self.current += 1;
            self.expansion = Expansion::new(&self.targets[self.current], bounds.distance(), self.top);
        }
    }

    /// Takes note that its nomination was measured. Returns the step of all goals if it grew.
    pub fn measured(&mut self, nomination: &Nomination, history: &TrialHistory) -> Option<SharedStep> {
        let bounds = history.relevant_bounds(&self.targets[self.current]);
        let became = match nomination.grows_at? {
            BoundSide::Lower => bounds.lower,
            BoundSide::Upper => bounds.upper,
        };
        (became == Some(nomination.level)).then(|| self.expansion.grow())
    }

    /// Whether the final target's trials leave no load below the upper bound.
    pub fn has_no_lower_bound(&self, history: &TrialHistory) -> bool {
        history.relevant_bounds(self.final_target()).lower.is_none()
    }

    /// The target that decides about the goal.
    pub fn final_target(&self) -> &SearchTarget {
        &self.targets[self.targets.len() - 1]
    }
}
