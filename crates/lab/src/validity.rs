//! Whether a run may count. Invalid runs are kept, labelled and repeated; nothing is dropped silently.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::stats::doubts_of_series;
use crate::subject::Measurement;

/// One reason for or against counting a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Validity {
    /// Nothing speaks against it.
    Ok,
    /// The load offered was the limit, so the run says nothing about the subject.
    GeneratorLimited,
    /// The counting end could not keep up.
    ReceiverLimited,
    /// Not the flows that were asked for arrived.
    WrongFlows,
    /// The rate moved steadily during the measurement.
    Drift,
    /// Something came out where it should not have.
    Misrouted,
    /// The subject could not be set up as asked, and said why.
    Refused,
    /// A link went down or changed its speed during the run.
    LinkEvent,
    /// Other work ran on the measured cores.
    NoisyCores,
    /// The run was stopped before its window ended.
    Interrupted,
}

impl Validity {
    /// The words reports use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::GeneratorLimited => "generator limited",
            Self::ReceiverLimited => "receiver limited",
            Self::WrongFlows => "wrong flows",
            Self::Drift => "drift",
            Self::Misrouted => "misrouted",
            Self::Refused => "refused",
            Self::LinkEvent => "link event",
            Self::NoisyCores => "noisy cores",
            Self::Interrupted => "interrupted",
        }
    }

    /// What it means and what to do about it, in one sentence.
    pub fn explanation(self) -> &'static str {
        match self {
            Self::Ok => "nothing speaks against the run",
            Self::GeneratorLimited => {
                "the load offered was the limit: use a faster generator or a smaller subject"
            }
            Self::ReceiverLimited => "the receiver could not count everything: give it more cores or queues",
            Self::WrongFlows => {
                "other flows arrived than were asked for: check the generator's addresses and ports"
            }
            Self::Drift => {
                "the rate moved steadily while it was measured: lengthen the warm-up, check cooling"
            }
            Self::Misrouted => {
                "the output was wrong, and a wrong result has no speed: mend the subject first"
            }
            Self::Refused => "the subject cannot be what was asked for: its log says why",
            Self::LinkEvent => {
                "a link changed state during the run: wait for the links before the load starts"
            }
            Self::NoisyCores => "other work ran on the measured cores: isolate them or choose others",
            Self::Interrupted => "the run was stopped before its end",
        }
    }
}

impl fmt::Display for Validity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The judgement of a run: [`Validity::Ok`] alone, or every reason against it once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Reasons(Vec<Validity>);

impl Reasons {
    /// What the subject noticed itself is joined by what its samples and its end show.
    pub(crate) fn of_run(measured: &Measurement) -> Self {
        let mut doubts: BTreeSet<Validity> = measured.doubts.iter().copied().collect();
        doubts.extend(measured.interrupted.then_some(Validity::Interrupted));
        doubts.extend(drifts(&measured.samples).then_some(Validity::Drift));
        Self::from_iter(doubts)
    }

    /// Whether nothing speaks against the run.
    pub fn is_ok(&self) -> bool {
        self.0.iter().all(|reason| *reason == Validity::Ok)
    }

    /// Every reason, in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = Validity> {
        self.0.iter().copied()
    }
}

impl FromIterator<Validity> for Reasons {
    fn from_iter<I: IntoIterator<Item = Validity>>(reasons: I) -> Self {
        let against: BTreeSet<Validity> =
            reasons.into_iter().filter(|reason| *reason != Validity::Ok).collect();
        if against.is_empty() { Self(vec![Validity::Ok]) } else { Self(against.into_iter().collect()) }
    }
}

impl fmt::Display for Reasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(Validity::name).collect();
        f.write_str(&names.join(", "))
    }
}

/// One run in thirty of a long-kept archive drifts by more than this part of its mean; such a run has not settled.
const DRIFT_LIMIT: f64 = 0.03;
/// A line through fewer samples fits too well by chance.
const FEWEST_SAMPLES: usize = 6;

fn drifts(samples: &[f64]) -> bool {
    samples.len() >= FEWEST_SAMPLES && !doubts_of_series(samples, DRIFT_LIMIT).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_run(samples: Vec<f64>, doubts: Vec<Validity>, interrupted: bool) -> String {
        let measured = Measurement { samples, doubts, interrupted, ..Measurement::default() };
        Reasons::of_run(&measured).to_string()
    }

    #[test]
    fn a_run_without_a_doubt_is_ok() {
        assert_eq!(of_run(vec![100.0; 10], vec![], false), "ok");
        assert_eq!(of_run(vec![], vec![Validity::Ok], false), "ok");
    }

    #[test]
    fn every_reason_stands_once_and_ok_beside_none() {
        let doubts = vec![Validity::Misrouted, Validity::Ok, Validity::Misrouted];
        assert_eq!(of_run(vec![], doubts, true), "misrouted, interrupted");
    }

    #[test]
    fn samples_that_fall_steadily_are_a_drift_if_there_are_enough() {
        let falling = |count: u32| (0..count).map(|sample| 100.0 - f64::from(sample)).collect();
        assert_eq!(of_run(falling(10), vec![], false), "drift");
        assert_eq!(of_run(falling(5), vec![], false), "ok");
    }
}
