//! The phases of a panel.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The phases of a panel in their order: warm up, settle, measure; and the length of a turn.
///
/// The durations panic for a window that [`Experiment::check`](super::Experiment::check) refuses, because its seconds
/// may not be a duration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Seconds of turns before the measurement, of all arms together.
    pub warmup_s: f64,
    /// Seconds of turns after the warm-up that do not count either.
    #[serde(default)]
    pub settle_s: f64,
    /// Seconds that each arm is measured in a panel.
    pub measure_s: f64,
    /// Milliseconds of a turn that count. By default a calibration takes the shortest length that it does not refute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_ms: Option<f64>,
}

impl Window {
    /// The time of the turns that do not count.
    pub fn warmup(&self) -> Duration {
        Duration::from_secs_f64(self.warmup_s + self.settle_s)
    }

    /// The time that each arm is measured.
    pub fn measure(&self) -> Duration {
        Duration::from_secs_f64(self.measure_s)
    }

    /// The part of a turn that counts, where the experiment sets it.
    pub fn slice(&self) -> Option<Duration> {
        self.slice_ms.map(|milliseconds| Duration::from_secs_f64(milliseconds / 1e3))
    }
}

/// Keys of older versions, and why a file with one is refused.
pub(super) const OLD_KEYS: [(&str, &str); 2] = [
    (
        "sample_ms",
        "sample_ms was the length of a sample in older versions: remove it. A panel has turns in place of samples; the \
         program finds their length, or slice_ms sets it",
    ),
    ("drain_ms", "drain_ms changed nothing in older versions: remove it"),
];

/// Why a file with a key of older versions is refused, by the parser's message about it; `None` for other messages.
pub(super) fn replaced_key(message: &str) -> Option<&'static str> {
    let of = |key: &str| message.starts_with(&format!("unknown field `{key}`"));
    OLD_KEYS.iter().find(|(key, _)| of(key)).map(|(_, why)| *why)
}

/// Removes the keys of older versions from an experiment, which an archive may contain.
pub(super) fn without_old_keys(mut experiment: toml::Table) -> toml::Table {
    if let Some(toml::Value::Table(window)) = experiment.get_mut("window") {
        OLD_KEYS.iter().for_each(|(key, _)| _ = window.remove(*key));
    }
    experiment
}
