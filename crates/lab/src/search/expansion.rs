//! How far the next step goes while a bound is missing.

use super::target::SearchTarget;

/// The step of one target. The steps of all goals together are in [`SharedStep`].
#[derive(Debug, Clone)]
pub struct Expansion {
    factor: u32,
    /// The target's width.
    least: u32,
    /// No step is longer than the grid.
    most: u32,
    step: u32,
}

/// The last step that was made for any goal, in levels. No goal makes a smaller one, so that goals whose steps grow do not
/// go through the same loads one after the other.
pub type SharedStep = u32;

impl Expansion {
    /// Begins with the distance of the loads from which the target starts, if it is larger than its width.
    pub fn new(target: &SearchTarget, distance: Option<u32>, top: u32) -> Expansion {
        let mut expansion = Expansion { factor: target.expansion, least: target.width, most: top, step: 0 };
        expansion.restart(distance.unwrap_or(0));
        expansion
    }

    /// The step to make now.
    pub fn step(&self, shared: SharedStep) -> u32 {
        self.step.max(shared)
    }

    /// Makes the next step longer, and returns it.
    pub fn grow(&mut self) -> u32 {
        self.step = self.step.saturating_mul(self.factor).min(self.most);
        self.step
    }

    /// Begins again with steps one factor longer than this distance.
    pub fn restart(&mut self, distance: u32) {
        self.step = distance.max(self.least);
        self.grow();
    }
}
