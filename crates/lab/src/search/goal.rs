//! What a search looks for.

use serde::{Deserialize, Serialize};

use super::error::SearchError;

/// One search goal, in the draft's terms. Durations are in seconds.
///
/// A load is a lower bound for the goal if at most `exceed_ratio` of the time of its trials had a loss ratio above
/// `loss_ratio`, an upper bound if more had. Trials of `final_trial_duration` count in full, until they sum up to
/// `duration_sum`. The goal is reached when a lower and an upper bound are at most `width` apart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SearchGoal {
    /// The highest ratio of lost to sent packets that a good trial has.
    pub loss_ratio: f64,
    /// The highest share of bad trials, by time, at a load that is a lower bound.
    pub exceed_ratio: f64,
    /// How far apart the final bounds are at most, relative to the upper one.
    pub width: f64,
    /// Duration of the first trials, which find the region.
    pub initial_trial_duration: f64,
    /// Duration of the trials that decide.
    pub final_trial_duration: f64,
    /// How much time of trials decides about one load.
    pub duration_sum: f64,
    /// Number of rounds with shorter sums and larger widths before the one that decides.
    pub preceding_targets: u32,
    /// Factor by which the step grows while a bound is missing.
    pub expansion: u32,
    /// Whether the search ends when even the smallest load is an upper bound for this goal.
    pub fail_fast: bool,
}

impl SearchGoal {
    /// The defaults of CSIT: trials of one second, half of which may exceed the loss ratio, 21 seconds for each load.
    pub fn with_loss_ratio(loss_ratio: f64) -> SearchGoal {
        SearchGoal {
            loss_ratio,
            exceed_ratio: 0.5,
            width: 0.005,
            initial_trial_duration: 1.0,
            final_trial_duration: 1.0,
            duration_sum: 21.0,
            preceding_targets: 2,
            expansion: 2,
            fail_fast: false,
        }
    }

    /// The no drop rate.
    pub fn ndr() -> SearchGoal {
        SearchGoal::with_loss_ratio(0.0)
    }

    /// The partial drop rate at a loss of 0.5 %.
    pub fn pdr() -> SearchGoal {
        SearchGoal::with_loss_ratio(0.005)
    }

    /// The throughput of RFC 2544: one trial for each load, in which no packet may be lost.
    pub fn rfc2544(trial_duration: f64, width: f64) -> SearchGoal {
        SearchGoal {
            exceed_ratio: 0.0,
            width,
            initial_trial_duration: trial_duration,
            final_trial_duration: trial_duration,
            duration_sum: trial_duration,
            preceding_targets: 0,
            ..SearchGoal::ndr()
        }
    }

    /// The same goal with all durations multiplied by `factor`, for trials shorter than a second.
    pub fn scaled(self, factor: f64) -> SearchGoal {
        SearchGoal {
            initial_trial_duration: self.initial_trial_duration * factor,
            final_trial_duration: self.final_trial_duration * factor,
            duration_sum: self.duration_sum * factor,
            ..self
        }
    }

    /// Refuses values that no search can reach. `number` counts from 1 and names the goal in the error.
    pub(super) fn check(&self, number: usize) -> Result<(), SearchError> {
        match self.fault() {
            Some((field, value, allowed)) => Err(SearchError::Goal { number, field, value, allowed }),
            None => Ok(()),
        }
    }

    /// The first field with an impossible value.
    fn fault(&self) -> Option<(&'static str, f64, &'static str)> {
        let ratio = |value: f64| (0.0..1.0).contains(&value);
        let checks = [
            (ratio(self.loss_ratio), "loss_ratio", self.loss_ratio, "at least 0 and below 1"),
            (ratio(self.exceed_ratio), "exceed_ratio", self.exceed_ratio, "at least 0 and below 1"),
            (self.width > 0.0 && self.width < 1.0, "width", self.width, "above 0 and below 1"),
            (
                self.initial_trial_duration > 0.0 && self.initial_trial_duration.is_finite(),
                "initial_trial_duration",
                self.initial_trial_duration,
                "seconds above 0",
            ),
            (
                self.final_trial_duration >= self.initial_trial_duration
                    && self.final_trial_duration.is_finite(),
                "final_trial_duration",
                self.final_trial_duration,
                "at least initial_trial_duration",
            ),
            (
                self.duration_sum >= self.final_trial_duration && self.duration_sum.is_finite(),
                "duration_sum",
                self.duration_sum,
                "at least final_trial_duration",
            ),
            (
                self.preceding_targets > 0 || self.initial_trial_duration >= self.duration_sum,
                "preceding_targets",
                f64::from(self.preceding_targets),
                "at least 1 where initial_trial_duration is below duration_sum",
            ),
            (self.expansion > 1, "expansion", f64::from(self.expansion), "at least 2"),
        ];
        checks.into_iter().find(|check| !check.0).map(|(_, field, value, allowed)| (field, value, allowed))
    }
}
