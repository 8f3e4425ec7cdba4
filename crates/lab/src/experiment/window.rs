//! The phases of one run.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The phases of one run in their order: warm up, settle, measure, drain.
///
/// The durations panic for a window that [`Experiment::check`](super::Experiment::check) refuses, because its seconds
/// may not be a duration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Seconds of full load before the measurement.
    pub warmup_s: f64,
    /// Seconds between the warm-up and the measurement.
    #[serde(default)]
    pub settle_s: f64,
    /// Seconds of the measurement.
    pub measure_s: f64,
    /// Milliseconds per sample. The default is one second, or a tenth of a measurement shorter than ten seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_ms: Option<u64>,
    /// Milliseconds to wait, after the load has stopped, for what is still under way.
    #[serde(default = "default_drain_ms")]
    pub drain_ms: u64,
}

impl Window {
    /// The time of full load before the measurement.
    pub fn warmup(&self) -> Duration {
        Duration::from_secs_f64(self.warmup_s)
    }

    /// The time between the warm-up and the measurement.
    pub fn settle(&self) -> Duration {
        Duration::from_secs_f64(self.settle_s)
    }

    /// The time of the measurement.
    pub fn measure(&self) -> Duration {
        Duration::from_secs_f64(self.measure_s)
    }

    /// The time of one sample.
    pub fn sample(&self) -> Duration {
        let tenth = self.measure() / 10;
        self.sample_ms.map_or_else(|| tenth.min(Duration::from_secs(1)), Duration::from_millis)
    }

    /// The time to wait, after the load has stopped, for what is still under way.
    pub fn drain(&self) -> Duration {
        Duration::from_millis(self.drain_ms)
    }

    /// The time of all phases of a run.
    pub fn total(&self) -> Duration {
        self.warmup() + self.settle() + self.measure() + self.drain()
    }
}

fn default_drain_ms() -> u64 {
    200
}
