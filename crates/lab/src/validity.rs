//! The validity of a run. Invalid runs are kept, labelled and repeated; no run is dropped silently.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

/// `Ok`, or one reason why a run does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Validity {
    /// The run counts.
    Ok,
    /// The bed could not send the offered load even without a subject.
    GeneratorLimited,
    /// The receiver could not count all packets or results.
    ReceiverLimited,
    /// The flows that arrived are not those that were configured.
    WrongFlows,
    /// The rate rose or fell steadily during the measurement.
    Drift,
    /// The output of the subject was wrong.
    Misrouted,
    /// The subject refused its settings; its log contains the reason.
    Refused,
    /// A link went down or changed its speed during the run.
    LinkEvent,
    /// Other work ran on the measured cores.
    NoisyCores,
    /// The run was stopped before the end of its window.
    Interrupted,
}

impl Validity {
    /// The name in reports.
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

    /// The meaning and the advice, in one sentence for the report.
    pub fn explanation(self) -> &'static str {
        match self {
            Self::Ok => "the run counts",
            Self::GeneratorLimited => {
                "the control could not send the offered load: use a faster generator or offer less"
            }
            Self::ReceiverLimited => "the receiver could not count everything: give it more cores or queues",
            Self::WrongFlows => {
                "the flows that arrived are not those configured: check the generator's addresses and ports"
            }
            Self::Drift => {
                "the rate rose or fell steadily during the run: lengthen the warm-up, check the cooling"
            }
            Self::Misrouted => "the output was wrong, so its rate does not count: fix the subject first",
            Self::Refused => "the subject refused its settings: see its log for the reason",
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

/// The validity of a run: [`Validity::Ok`] alone, or every reason against the run once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Reasons(Vec<Validity>);

impl Reasons {
    /// Whether the run counts.
    pub fn is_ok(&self) -> bool {
        self.0.iter().all(|reason| *reason == Validity::Ok)
    }

    /// Iterates over the reasons in the order of [`Validity`].
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_listed_once_and_ok_only_alone() {
        let reasons = [Validity::Misrouted, Validity::Ok, Validity::Misrouted, Validity::Interrupted];
        assert_eq!(Reasons::from_iter(reasons).to_string(), "misrouted, interrupted");
        assert_eq!(Reasons::from_iter([Validity::Ok]).to_string(), "ok");
        assert_eq!(Reasons::from_iter([]).to_string(), "ok");
    }
}
