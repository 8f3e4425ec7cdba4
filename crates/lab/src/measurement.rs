//! The result of one run.

use std::collections::BTreeMap;

use crate::stats::{median, warnings_of_series};
use crate::validity::{Reasons, Validity};

/// The result of one run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measurement {
    /// The value of the run in the experiment's metric: the median of its samples.
    pub value: f64,
    /// The rate in each sample, in order of time.
    pub samples: Vec<f64>,
    /// Counts and secondary rates by name: offered, sent, received, lost and others.
    pub counters: BTreeMap<String, f64>,
    /// Reasons against counting the run that the subject itself found.
    pub reasons: Vec<Validity>,
    /// Whether the run ended early because it was stopped.
    pub interrupted: bool,
}

impl Measurement {
    /// Returns a complete run without counters or reasons against it. Its value is the median of `samples`; without any
    /// samples the result is `None`.
    pub fn of(samples: Vec<f64>) -> Option<Self> {
        Some(Self { value: median(&samples)?, samples, ..Self::default() })
    }

    /// The validity of the run: the reasons that the subject reported, and those that its samples and its end show.
    pub(crate) fn validity(&self) -> Reasons {
        let interrupted = self.interrupted.then_some(Validity::Interrupted);
        let drift = drifts(&self.samples).then_some(Validity::Drift);
        self.reasons.iter().copied().chain(interrupted).chain(drift).collect()
    }
}

/// A run that drifts by more than this fraction of its mean has not settled. One in thirty of the runs published in
/// eleven years does.
const DRIFT_LIMIT: f64 = 0.03;
/// A line through fewer samples fits too well by chance.
const FEWEST_SAMPLES: usize = 6;

fn drifts(samples: &[f64]) -> bool {
    samples.len() >= FEWEST_SAMPLES && !warnings_of_series(samples, DRIFT_LIMIT).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_is_the_median_of_the_samples() {
        assert_eq!(Measurement::of(vec![3.0, 1.0, 2.0]).map(|run| run.value), Some(2.0));
        assert_eq!(Measurement::of(Vec::new()), None);
    }

    fn validity(samples: Vec<f64>, reasons: Vec<Validity>, interrupted: bool) -> String {
        Measurement { samples, reasons, interrupted, ..Measurement::default() }.validity().to_string()
    }

    #[test]
    fn a_run_without_a_reason_against_it_is_ok() {
        assert_eq!(validity(vec![100.0; 10], vec![], false), "ok");
        assert_eq!(validity(vec![], vec![Validity::Ok], false), "ok");
    }

    #[test]
    fn every_reason_is_listed_once_and_ok_only_alone() {
        let reasons = vec![Validity::Misrouted, Validity::Ok, Validity::Misrouted];
        assert_eq!(validity(vec![], reasons, true), "misrouted, interrupted");
    }

    #[test]
    fn samples_that_fall_steadily_are_a_drift_if_there_are_enough() {
        let falling = |count: u32| (0..count).map(|sample| 100.0 - f64::from(sample)).collect();
        assert_eq!(validity(falling(10), vec![], false), "drift");
        assert_eq!(validity(falling(5), vec![], false), "ok");
    }
}
