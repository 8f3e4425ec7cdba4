//! A run's window as samples, and samples as a measurement.

use std::time::Duration;

use fullview_lab::{Measurement, Validity, Window};

use super::core_share::CoreShare;

/// The lengths of a run's samples: the lead-in as the first, which is not counted, then the samples.
pub fn sample_lengths(window: &Window) -> impl Iterator<Item = Duration> {
    let lead_in = window.warmup() + window.settle();
    std::iter::once(lead_in.max(Duration::from_millis(1)))
        .chain(std::iter::repeat_n(window.sample(), samples(window)))
}

/// Samples in a window, at least one.
pub fn samples(window: &Window) -> usize {
    (window.measure().as_secs_f64() / window.sample().as_secs_f64()).round().max(1.0) as usize
}

/// A measurement of these samples. A run that was interrupted before its first sample has the value 0 and no samples.
pub fn measurement(samples: Vec<f64>) -> Measurement {
    Measurement::of(samples).unwrap_or_default()
}

/// Records the share of the core that a run had, and marks the run as invalid if the share was too small.
pub fn judge_share(measurement: &mut Measurement, share: f64) {
    measurement.counters.insert("core_share".into(), share);
    if !CoreShare::is_enough(share) {
        measurement.reasons.push(Validity::NoisyCores);
    }
}
