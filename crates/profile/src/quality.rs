//! Whether a profile shows what it should.

use std::time::Duration;

use serde::Serialize;

use crate::event::FREQUENCY;
use crate::script::Sample;
use crate::stacks::Stacks;
use crate::symbols::Function;

/// Fewer samples show a function of 1 % of the time with an error of more than a third of it.
const FEWEST: u64 = 1000;
/// Below this share of the expected samples the thread waited, or did not have its core.
const LEAST_BUSY: f64 = 0.8;
/// Below this share of whole stacks, or above that of unknown functions, the picture is wrong in some place.
const LEAST_WHOLE: f64 = 0.9;
const MOST_UNKNOWN: f64 = 0.05;
/// Of all samples.
pub(crate) const MOST_LOST: f64 = 0.01;

/// What speaks for and against a profile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Quality {
    /// The time in which samples were taken, in seconds.
    pub seconds: f64,
    /// Samples of the thread that did the work.
    pub samples: u64,
    /// The samples of that time if the thread had its core without a pause, as a share: 1 is busy all the time.
    pub busy: f64,
    /// The share of these samples whose stacks were unwound to the work's beginning.
    pub whole: f64,
    /// The share of whole stacks that end in a function without a name.
    pub unknown: f64,
    /// Samples of this process that perf had no room for.
    pub lost: u64,
}

impl Quality {
    pub(crate) fn of(samples: &[Sample], stacks: &Stacks, took: Duration, lost: u64) -> Quality {
        let thread = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        let own = samples.iter().filter(|sample| sample.thread == thread).count() as u64;
        let unknown =
            stacks.iter().filter(|(functions, _)| functions.last().is_some_and(Function::is_unknown));
        let share = |part: u64, of: f64| if of > 0.0 { part as f64 / of } else { 0.0 };
        Quality {
            seconds: took.as_secs_f64(),
            samples: own,
            busy: share(own, took.as_secs_f64() * f64::from(FREQUENCY)),
            whole: share(stacks.total(), own as f64),
            unknown: share(unknown.map(|(_, count)| count).sum(), stacks.total() as f64),
            lost,
        }
    }

    /// Reasons against the profile, in plain words; empty if it can be trusted.
    pub fn reasons(&self) -> Vec<String> {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let all = self.seconds * f64::from(FREQUENCY);
        let reasons = [
            (self.samples < FEWEST, format!("only {} samples: profile for longer", self.samples)),
            (
                self.busy < LEAST_BUSY,
                format!(
                    "the thread was on its core for {} of the time: it waits, or others take the core",
                    percent(self.busy)
                ),
            ),
            (self.whole < LEAST_WHOLE, format!("only {} of the stacks are whole", percent(self.whole))),
            (
                self.unknown > MOST_UNKNOWN,
                format!("{} of the time is in functions without a name", percent(self.unknown)),
            ),
            (self.lost as f64 > MOST_LOST * all, format!("perf lost {} samples", self.lost)),
        ];
        reasons.into_iter().filter_map(|(applies, reason)| applies.then_some(reason)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::UNKNOWN;

    const GOOD: Quality =
        Quality { seconds: 3.0, samples: 2900, busy: 0.97, whole: 0.99, unknown: 0.0, lost: 0 };

    #[test]
    fn each_reason_is_given_alone() {
        assert!(GOOD.reasons().is_empty());
        let idle = Quality { busy: 0.05, ..GOOD };
        for (quality, word) in [
            (Quality { samples: 999, ..GOOD }, "999 samples"),
            (idle, "5 % of the time"),
            (Quality { whole: 0.5, ..GOOD }, "50 % of the stacks"),
            (Quality { unknown: 0.2, ..GOOD }, "20 % of the time is in functions"),
            (Quality { lost: 30, ..GOOD }, "lost 30 samples"),
        ] {
            let reasons = quality.reasons();
            assert!(reasons.len() == 1 && reasons[0].contains(word), "{reasons:?}");
        }
    }

    #[test]
    fn the_figures_are_those_of_this_thread() {
        let thread = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        let function = |name: &str| Function { name: name.into(), file: None };
        let sample = |thread| Sample { name: "a".into(), process: 1, thread, core: None, frames: Vec::new() };
        let samples: Vec<Sample> = [thread, thread, thread, thread, 1].map(sample).into();
        let stacks: Stacks = [(vec![function("a")], 2), (vec![function(UNKNOWN)], 1)].into_iter().collect();
        let quality = Quality::of(&samples, &stacks, Duration::from_secs_f64(8.0 / f64::from(FREQUENCY)), 0);
        assert_eq!((quality.samples, quality.whole), (4, 0.75));
        assert!((quality.busy - 0.5).abs() < 1e-6 && (quality.unknown - 1.0 / 3.0).abs() < 1e-6);
    }
}
