//! The distribution of delays, in a histogram of three significant digits (HdrHistogram).

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// A longer delay counts as this one, as a packet that the test bed held back for so long is lost.
const LONGEST: u64 = 60_000_000_000;
const DIGITS: u8 = 3;
/// With fewer delays the percentile 99.9 is the largest of them, and says nothing.
const FEWEST_P99_9: u64 = 1000;

/// Delays in nanoseconds.
#[derive(Clone, Debug)]
pub struct Delays(Histogram<u64>);

/// Figures of a distribution, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelaySummary {
    pub min: u64,
    pub median: u64,
    pub p99: u64,
    /// Nothing of fewer than 1,000 delays.
    pub p99_9: Option<u64>,
    pub max: u64,
    /// The packet delay variation of RFC 5481: the percentile 99.9 less the minimum.
    pub pdv: Option<u64>,
}

impl Default for Delays {
    #[allow(clippy::expect_used)] // the limits are constants that the library accepts
    fn default() -> Delays {
        Delays(Histogram::new_with_bounds(1, LONGEST, DIGITS).expect("1 to 60 s in three digits"))
    }
}

impl Delays {
    pub fn record(&mut self, delay: Duration) {
        self.0.saturating_record(delay.as_nanos().min(LONGEST.into()) as u64);
    }

    /// What `buckets` told.
    pub fn of_buckets(buckets: &[(u64, u64)]) -> Delays {
        let mut delays = Delays::default();
        buckets.iter().for_each(|(delay, count)| delays.0.saturating_record_n(*delay, *count));
        delays
    }

    /// Adds the delays of another trial.
    #[allow(clippy::expect_used)] // both have the same limits
    pub fn add(&mut self, other: &Delays) {
        self.0.add(&other.0).expect("equal limits");
    }

    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The delay that a share of the packets does not exceed.
    pub fn at(&self, share: f64) -> u64 {
        self.0.value_at_quantile(share)
    }

    /// Nothing if there are no delays.
    pub fn summary(&self) -> Option<DelaySummary> {
        let min = self.0.min();
        let p99_9 = (self.count() >= FEWEST_P99_9).then(|| self.at(0.999));
        let summary = DelaySummary {
            min,
            median: self.at(0.5),
            p99: self.at(0.99),
            p99_9,
            max: self.0.max(),
            pdv: p99_9.map(|delay| delay - min),
        };
        (self.count() > 0).then_some(summary)
    }

    /// Each delay that occurred, with how often.
    pub fn buckets(&self) -> Vec<(u64, u64)> {
        self.0.iter_recorded().map(|one| (one.value_iterated_to(), one.count_at_value())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(micros: impl Iterator<Item = u64>) -> Delays {
        let mut delays = Delays::default();
        micros.for_each(|micros| delays.record(Duration::from_micros(micros)));
        delays
    }

    #[test]
    fn percentiles_are_exact_to_three_digits() {
        let DelaySummary { min, median, p99, p99_9, max, pdv } = delays(1..=1000).summary().unwrap();
        let is_near = |delay: u64, micros: u64| delay.abs_diff(micros * 1000) <= micros;
        assert!(is_near(min, 1) && is_near(median, 500) && is_near(p99, 990) && is_near(max, 1000));
        assert!(is_near(p99_9.unwrap(), 999) && is_near(pdv.unwrap(), 998));
    }

    #[test]
    fn few_delays_have_no_percentile_99_9_and_none_have_no_figures() {
        let summary = delays(1..=999).summary().unwrap();
        assert_eq!((summary.p99_9, summary.pdv), (None, None));
        assert_eq!(Delays::default().summary(), None);
    }

    #[test]
    fn trials_are_added_and_written_as_buckets() {
        let mut sum = delays([5, 5].into_iter());
        sum.add(&delays([7, 100_000_000_000].into_iter()));
        let buckets = sum.buckets();
        assert_eq!(buckets.iter().map(|(_, count)| count).collect::<Vec<_>>(), [&2, &1, &1]);
        assert!(buckets[2].0.abs_diff(LONGEST) < LONGEST / 1000, "{buckets:?}");
    }
}
