//! The first trials: they find the region in which the search begins, from the rates that were forwarded.

use super::grid::LoadGrid;
use super::spacing::Spacing;
use super::target::SearchTarget;

/// What all goals have in common at the start.
#[derive(Debug, Clone)]
pub struct InitialTarget {
    loss_ratio: f64,
    pub duration: f64,
    width: u32,
}

/// The next of the first trials, or the levels from which the goals start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InitialStep {
    Measure(u32),
    Start { lower: u32, upper: u32 },
}

/// A result of one of the first trials.
#[derive(Debug, Clone, Copy)]
pub struct InitialTrial {
    pub level: u32,
    pub loss_ratio: f64,
    pub forwarding_rate: f64,
}

impl InitialTarget {
    /// The smallest loss ratio, the longest trial and the largest width of the goals' first targets.
    pub fn of<'t>(first_targets: impl Iterator<Item = &'t SearchTarget>) -> InitialTarget {
        let none = InitialTarget { loss_ratio: f64::INFINITY, duration: 0.0, width: 0 };
        first_targets.fold(none, |so_far, target| InitialTarget {
            loss_ratio: so_far.loss_ratio.min(target.loss_ratio),
            duration: so_far.duration.max(target.trial_duration),
            width: so_far.width.max(target.width),
        })
    }

    /// What follows from the first trials so far.
    pub fn next(&self, trials: &[InitialTrial], grid: &LoadGrid) -> InitialStep {
        match trials {
            [] => InitialStep::Measure(grid.top()),
            [top] => self.after_top(top, grid),
            [_, second] => self.after_second(second, grid),
            [.., second, third] => {
                let (one, other) = (second.level, third.level);
                InitialStep::Start { lower: one.min(other), upper: one.max(other) }
            }
        }
    }

    /// The rate that was forwarded at the largest load is the next load.
    fn after_top(&self, top: &InitialTrial, grid: &LoadGrid) -> InitialStep {
        let level = self.level_without_loss(top, grid);
        let start = InitialStep::Start { lower: top.level, upper: top.level };
        let below = || Spacing::new(None, Some(top.level), grid.top()).place(level, self.width);
        if level < top.level { below().map_or(start, InitialStep::Measure) } else { start }
    }

    /// The rate that was forwarded then is the third load, or one width more if nothing was lost.
    fn after_second(&self, second: &InitialTrial, grid: &LoadGrid) -> InitialStep {
        let (level, top) = (second.level, grid.top());
        let third = if second.loss_ratio > self.loss_ratio {
            Spacing::new(None, Some(level), top).place(self.level_without_loss(second, grid), self.width)
        } else {
            Spacing::new(Some(level), Some(top), top).place(level.saturating_add(self.width), self.width)
        };
        third.map_or(InitialStep::Start { lower: level, upper: level }, InitialStep::Measure)
    }

    /// The load at which the smallest loss ratio of the goals would leave the forwarded rate.
    fn level_without_loss(&self, trial: &InitialTrial, grid: &LoadGrid) -> u32 {
        grid.level_of(trial.forwarding_rate * (1.0 / (1.0 - self.loss_ratio)))
    }
}
