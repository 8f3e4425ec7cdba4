//! The targets that lead to a goal: shorter sums and larger widths first.

use super::goal::SearchGoal;
use super::grid::LoadGrid;

/// What decides about a load in one stage of a goal.
#[derive(Debug, Clone)]
pub struct SearchTarget {
    pub loss_ratio: f64,
    pub exceed_ratio: f64,
    /// In levels of the grid.
    pub width: u32,
    pub trial_duration: f64,
    pub duration_sum: f64,
    pub expansion: u32,
}

impl SearchTarget {
    /// The targets of a goal, the final one last. Their sums grow in equal ratios, and their widths halve.
    pub fn chain(goal: &SearchGoal, grid: &LoadGrid) -> Vec<SearchTarget> {
        let width = grid.levels_of(goal.width);
        let target = |steps_before: u32| SearchTarget {
            loss_ratio: goal.loss_ratio,
            exceed_ratio: goal.exceed_ratio,
            width: 1u32
                .checked_shl(steps_before)
                .map_or(grid.top(), |factor| width.saturating_mul(factor).min(grid.top())),
            trial_duration: goal.final_trial_duration.min(duration_sum(goal, steps_before)),
            duration_sum: duration_sum(goal, steps_before),
            expansion: goal.expansion,
        };
        (0..=goal.preceding_targets).rev().map(target).collect()
    }
}

/// The sum of the target that comes so many steps before the final one.
fn duration_sum(goal: &SearchGoal, steps_before: u32) -> f64 {
    match steps_before {
        0 => goal.duration_sum,
        first if first == goal.preceding_targets => goal.initial_trial_duration,
        between => {
            let whole = goal.initial_trial_duration / goal.duration_sum;
            let step = whole.powf(1.0 / f64::from(goal.preceding_targets));
            goal.duration_sum * step.powf(f64::from(between))
        }
    }
}
