//! A trial: what is asked, and what came of it.

use std::error::Error;

use serde::{Deserialize, Serialize};

use super::error::SearchError;

/// Why a trial is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrialPurpose {
    /// Nothing follows from its result.
    Warmup,
    /// It finds the region of the search.
    Initial,
    /// It was the best for the goal of this index.
    Goal(usize),
    /// It is a burst: no search for loads asked for it.
    Burst,
}

/// The next trial of a search.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TrialRequest {
    /// Load to offer, in the unit of the configuration.
    pub load: f64,
    /// Seconds for which it is offered.
    pub duration: f64,
    pub purpose: TrialPurpose,
}

/// The result of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TrialResult {
    /// Share of the offered packets that did not come out, 0 to 1.
    pub loss_ratio: f64,
    /// Seconds that the trial took, which count towards a goal's duration sum. Equal to the requested duration, or longer
    /// if the time between trials is to count.
    pub effective_duration: f64,
}

/// A trial that was made.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    #[serde(flatten)]
    pub request: TrialRequest,
    #[serde(flatten)]
    pub result: TrialResult,
}

/// Makes trials.
pub trait Measurer {
    type Error: Error + Send + Sync + 'static;

    /// Offers `request.load` for `request.duration` seconds.
    fn measure(&mut self, request: TrialRequest) -> Result<TrialResult, Self::Error>;
}

impl Trial {
    /// The load that came out, had exactly the requested load been offered.
    pub fn forwarding_rate(&self) -> f64 {
        self.request.load * (1.0 - self.result.loss_ratio)
    }

    /// Refuses results that no measurement can have.
    pub(super) fn new(request: TrialRequest, result: TrialResult) -> Result<Trial, SearchError> {
        let TrialResult { loss_ratio, effective_duration } = result;
        let TrialRequest { load, duration, .. } = request;
        let refused =
            |field, value, allowed| Err(SearchError::Result { load, duration, field, value, allowed });
        if !(0.0..=1.0).contains(&loss_ratio) {
            return refused("loss_ratio", loss_ratio, "0 to 1");
        }
        if !(effective_duration > 0.0 && effective_duration.is_finite()) {
            return refused("effective_duration", effective_duration, "seconds above 0");
        }
        Ok(Trial { request, result })
    }
}
