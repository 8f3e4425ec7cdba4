//! Why a search cannot be made or continued.

use std::error::Error;

/// Why a search cannot be made or continued.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    #[error("a search needs at least one goal, for example the no drop rate")]
    NoGoal,
    #[error("goal {number}: {field} is {value}, and must be {allowed}")]
    Goal { number: usize, field: &'static str, value: f64, allowed: &'static str },
    #[error("the loads {min} to {max}: min must be above 0, and max above min")]
    Loads { min: f64, max: f64 },
    #[error("the warm-up takes {0} s; set 0, or seconds above it")]
    Warmup(f64),
    #[error(
        "a width of {width} between the loads {min} and {max} takes more than {most} steps: set a larger width"
    )]
    TooFine { width: f64, min: f64, max: f64, most: u32 },
    #[error("a trial at load {load} of {duration} s: {field} is {value}, and must be {allowed}")]
    Result { load: f64, duration: f64, field: &'static str, value: f64, allowed: &'static str },
    #[error("a result was recorded, but the search has ended and asked for no trial")]
    Ended,
    /// The measurer failed.
    #[error("a trial at load {load} of {duration} s: {source}")]
    Trial { load: f64, duration: f64, source: Box<dyn Error + Send + Sync> },
}
