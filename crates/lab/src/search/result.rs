//! What a search has found.

use serde::{Deserialize, Serialize};

use super::bounds::conditional_loss_ratio;
use super::goal::SearchGoal;
use super::grid::LoadGrid;
use super::history::TrialHistory;
use super::target::SearchTarget;
use super::trial::Trial;

/// What was found for a goal. A bound is missing where the smallest load is an upper bound, or the largest a lower one, or
/// where the search ended early.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GoalResult {
    pub goal: SearchGoal,
    /// The highest load below the upper bound that is a lower bound.
    pub relevant_lower_bound: Option<f64>,
    /// The lowest load that is an upper bound.
    pub relevant_upper_bound: Option<f64>,
    /// The rate that came out at the lower bound in the trial that the exceed ratio names.
    pub conditional_throughput: Option<f64>,
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SearchEnd {
    /// Every goal is reached, or its limit of the loads.
    Complete,
    /// The smallest load is an upper bound for the goal of this index, which ends the search.
    NoLowerBound(usize),
    /// It was stopped.
    Stopped,
}

/// A search with all its trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchResults {
    pub end: SearchEnd,
    /// In the order of the configuration.
    pub goals: Vec<GoalResult>,
    /// In the order in which they were made.
    pub trials: Vec<Trial>,
}

impl GoalResult {
    pub(super) fn of(
        goal: SearchGoal,
        target: &SearchTarget,
        history: &TrialHistory,
        grid: &LoadGrid,
    ) -> Self {
        let bounds = history.relevant_bounds(target);
        let throughput =
            |level: u32| grid.load(level) * (1.0 - conditional_loss_ratio(target, history.at(level)));
        GoalResult {
            goal,
            relevant_lower_bound: bounds.lower.map(|level| grid.load(level)),
            relevant_upper_bound: bounds.upper.map(|level| grid.load(level)),
            conditional_throughput: bounds.lower.map(throughput),
        }
    }
}
