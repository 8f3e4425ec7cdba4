//! Whether the profile of a core shows the device that runs on it.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::core_tasks::{CoreTasks, Owner};
use crate::event::FREQUENCY;
use crate::quality::MOST_LOST;
use crate::script::Sample;
use crate::stacks::Stacks;
use crate::symbols::Function;

/// Fewer samples show a function of 1 % of the time with an error of more than a third of it.
const FEWEST: u64 = 1000;
/// A core that waits longer than this does not forward the load that was meant.
const MOST_IDLE: f64 = 0.8;
/// More time of others delays packets of the device, and empties its caches.
const MOST_OTHERS: f64 = 0.1;
const MOST_OF_MEASUREMENT: f64 = 0.05;
const MOST_UNKNOWN: f64 = 0.05;

/// What speaks for and against a profile. Shares are of the core's time, if nothing else is said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CoreQuality {
    /// The time in which samples were taken, in seconds.
    pub seconds: f64,
    /// Samples of the device.
    pub samples: u64,
    /// The device's share.
    pub device: f64,
    /// The share in which nothing ran.
    pub idle: f64,
    /// The share of the process that measures.
    pub measurement: f64,
    /// The shares of other programs, the largest first.
    pub others: Vec<ProgramShare>,
    /// The share of the device's samples that end in a function without a name.
    pub unknown: f64,
    /// Samples that perf had no room for.
    pub lost: u64,
    /// Whether the kernel hides the names of its functions.
    pub kernel_hidden: bool,
}

/// A program's part of a core.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgramShare {
    /// The name of its thread.
    pub program: String,
    /// Its part of the time.
    pub share: f64,
}

impl CoreQuality {
    pub(crate) fn of(
        samples: &[Sample],
        tasks: &CoreTasks,
        stacks: &Stacks,
        took: Duration,
        lost: u64,
    ) -> CoreQuality {
        let (mut idle, mut measurement, mut others) = (0, 0, BTreeMap::<String, u64>::new());
        for sample in samples {
            match tasks.owner(sample) {
                Owner::Idle => idle += 1,
                Owner::Measurement => measurement += 1,
                Owner::Other(name) => *others.entry(name).or_default() += 1,
                Owner::Device(_) => {}
            }
        }
        // A core that sleeps has no cycles, so that samples of its idle time may be missing.
        let expected = (took.as_secs_f64() * f64::from(FREQUENCY)).max(samples.len() as f64 + lost as f64);
        let share = |count: u64| count as f64 / expected.max(1.0);
        let missing = expected - (samples.len() as f64 + lost as f64);
        let mut others: Vec<ProgramShare> = others
            .into_iter()
            .map(|(program, count)| ProgramShare { program, share: share(count) })
            .collect();
        others.sort_by(|one, other| other.share.total_cmp(&one.share));
        CoreQuality {
            seconds: took.as_secs_f64(),
            samples: stacks.total(),
            device: share(stacks.total()),
            idle: share(idle) + missing / expected.max(1.0),
            measurement: share(measurement),
            others,
            unknown: unknown(stacks),
            lost,
            kernel_hidden: kernel_hides_names(),
        }
    }

    /// The share of all other programs together.
    pub fn of_others(&self) -> f64 {
        self.others.iter().map(|other| other.share).sum()
    }

    /// Reasons against the profile, in plain words; empty if it can be trusted.
    pub fn reasons(&self) -> Vec<String> {
        let all = self.seconds * f64::from(FREQUENCY);
        let reasons = [
            (self.samples < FEWEST, format!("only {} samples of the device", self.samples)),
            (self.idle > MOST_IDLE, format!("the core was idle for {} of the time", percent(self.idle))),
            (self.of_others() > MOST_OTHERS, self.named_others()),
            (
                self.measurement > MOST_OF_MEASUREMENT,
                format!("the measurement itself had {} of the device's core", percent(self.measurement)),
            ),
            (
                self.unknown > MOST_UNKNOWN,
                format!("{} of the time is in functions without a name", percent(self.unknown)),
            ),
            (self.lost as f64 > MOST_LOST * all, format!("perf lost {} samples", self.lost)),
            (
                self.kernel_hidden,
                "the kernel hides the names of its functions; `sysctl kernel.kptr_restrict=1` shows them to root"
                    .to_owned(),
            ),
        ];
        reasons.into_iter().filter_map(|(applies, reason)| applies.then_some(reason)).collect()
    }

    fn named_others(&self) -> String {
        let named = self.others.iter().take(3);
        let named: Vec<String> =
            named.map(|other| format!("{} {}", other.program, percent(other.share))).collect();
        format!("other programs had {} of the core: {}", percent(self.of_others()), named.join(", "))
    }
}

fn unknown(stacks: &Stacks) -> f64 {
    let unnamed = stacks.iter().filter(|(functions, _)| functions.last().is_some_and(Function::is_unknown));
    unnamed.map(|(_, count)| count).sum::<u64>() as f64 / stacks.total().max(1) as f64
}

/// The kernel prints zeros in place of addresses that it hides.
fn kernel_hides_names() -> bool {
    let text = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    text.lines().all(|line| line.starts_with("0000000000000000 "))
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::UNKNOWN;

    fn good() -> CoreQuality {
        CoreQuality { seconds: 4.0, samples: 3600, device: 0.9, idle: 0.1, ..CoreQuality::default() }
    }

    #[test]
    fn each_reason_is_given_alone() {
        assert!(good().reasons().is_empty());
        let others = vec![
            ProgramShare { program: "rustc".into(), share: 0.15 },
            ProgramShare { program: "perf".into(), share: 0.01 },
        ];
        for (quality, word) in [
            (CoreQuality { samples: 999, ..good() }, "999 samples"),
            (CoreQuality { idle: 0.81, ..good() }, "idle for 81.0 %"),
            (CoreQuality { others, ..good() }, "16.0 % of the core: rustc 15.0 %, perf 1.0 %"),
            (CoreQuality { measurement: 0.06, ..good() }, "6.0 % of the device's core"),
            (CoreQuality { unknown: 0.2, ..good() }, "20.0 % of the time is in functions"),
            (CoreQuality { lost: 50, ..good() }, "lost 50"),
            (CoreQuality { kernel_hidden: true, ..good() }, "kptr_restrict"),
        ] {
            let reasons = quality.reasons();
            assert!(reasons.len() == 1 && reasons[0].contains(word), "{reasons:?}");
        }
    }

    #[test]
    fn shares_are_of_the_cores_time() {
        let sample = |name: &str, process| Sample {
            name: name.into(),
            process,
            thread: 1,
            core: None,
            frames: vec![],
        };
        let tasks = CoreTasks { processes: vec![7], ..CoreTasks::default() };
        let samples = [sample("swapper", 0), sample("a", 7), sample("a", 7), sample("perf", 8)];
        let function = |name: &str| Function { name: name.into(), file: None };
        let stacks: Stacks = [(vec![function("a")], 1), (vec![function(UNKNOWN)], 1)].into_iter().collect();
        let took = Duration::from_secs_f64(5.0 / f64::from(FREQUENCY));
        let quality = CoreQuality::of(&samples, &tasks, &stacks, took, 0);
        let near = |value: f64, expected: f64| (value - expected).abs() < 1e-6;
        assert!(near(quality.device, 0.4) && near(quality.idle, 0.4) && near(quality.of_others(), 0.2));
        assert_eq!((quality.unknown, quality.others[0].program.as_str()), (0.5, "perf"));
    }
}
