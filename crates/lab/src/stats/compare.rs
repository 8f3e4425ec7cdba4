//! Two sets of runs: by what factor do they differ?

use super::describe::Description;
use super::student::{quantile, upper_tail};
use serde::{Deserialize, Serialize};

/// A relative difference with its interval: 0.05 is +5 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// Ratio of the geometric means, variant over baseline, less 1.
    pub estimate: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Two-sided probability of a difference at least this large if there were none.
    pub p: f64,
    /// Of Student's t, after Welch and Satterthwaite.
    pub degrees_of_freedom: f64,
}

/// Welch's t interval for the difference of the mean logarithms, as a relative difference.
///
/// Welch's test does not need equal variances and costs nothing where they are equal (B. L. Welch, Biometrika 34, 1947).
/// `None` unless both sets have two figures or more, all of them finite and above 0, and `confidence` lies strictly
/// between 0 and 1.
pub fn log_ratio(baseline: &[f64], variant: &[f64], confidence: f64) -> Option<Effect> {
    let level = confidence > 0.0 && confidence < 1.0;
    LogDifference::of(baseline, variant)
        .filter(|_| level)
        .map(|difference| difference.effect(1.0 - confidence))
}

/// What is known of the difference of the mean logarithms.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogDifference {
    pub mean: f64,
    pub standard_error: f64,
    pub degrees_of_freedom: f64,
    /// Sum of the two variances of a single run: what the standard error shrinks from as runs are added.
    pub variance: f64,
}

impl LogDifference {
    pub(super) fn of(baseline: &[f64], variant: &[f64]) -> Option<LogDifference> {
        let (baseline, variant) = (logs(baseline)?, logs(variant)?);
        let (v1, v2) = (baseline.stddev.powi(2), variant.stddev.powi(2));
        let (n1, n2) = (baseline.n as f64, variant.n as f64);
        let (s1, s2) = (v1 / n1, v2 / n2);
        let satterthwaite = (s1 + s2).powi(2) / (s1.powi(2) / (n1 - 1.0) + s2.powi(2) / (n2 - 1.0));
        Some(LogDifference {
            mean: variant.mean - baseline.mean,
            standard_error: (s1 + s2).sqrt(),
            // Without any spread the formula is 0/0, and the squares of a tiny spread vanish.
            degrees_of_freedom: if satterthwaite.is_finite() { satterthwaite } else { n1 + n2 - 2.0 },
            variance: v1 + v2,
        })
    }

    /// The interval that leaves `alpha` outside, half on each side.
    pub(super) fn effect(&self, alpha: f64) -> Effect {
        let reach = quantile(1.0 - alpha / 2.0, self.degrees_of_freedom) * self.standard_error;
        Effect {
            estimate: self.mean.exp_m1(),
            low: (self.mean - reach).exp_m1(),
            high: (self.mean + reach).exp_m1(),
            p: self.p(),
            degrees_of_freedom: self.degrees_of_freedom,
        }
    }

    /// Two-sided p of no difference at all.
    pub(super) fn p(&self) -> f64 {
        2.0 * self.tail_beyond(self.mean.abs())
    }

    /// p of the worse of two one-sided tests: that the difference lies outside (`low`, `high`), given as logarithms
    /// (D. J. Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987).
    pub(super) fn p_outside(&self, low: f64, high: f64) -> f64 {
        self.tail_beyond(self.mean - low).max(self.tail_beyond(high - self.mean))
    }

    /// Probability that an estimate errs upwards by this much or more.
    fn tail_beyond(&self, distance: f64) -> f64 {
        // Two sets without spread that do not differ: 0/0, and nothing speaks for a difference.
        let t = if distance == 0.0 { 0.0 } else { distance / self.standard_error };
        upper_tail(t, self.degrees_of_freedom)
    }
}

fn logs(values: &[f64]) -> Option<Description> {
    let usable = values.len() >= 2 && values.iter().all(|&value| value > 0.0 && value.is_finite());
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    Description::of(&logs).filter(|_| usable)
}

#[cfg(test)]
mod tests {
    use super::log_ratio;

    #[test]
    fn sets_that_cannot_be_compared_have_no_effect() {
        let good = [1.0, 2.0];
        for bad in [&[][..], &[1.0], &[0.0, 1.0], &[-1.0, 1.0], &[f64::NAN, 1.0], &[f64::INFINITY, 1.0]] {
            assert_eq!(log_ratio(bad, &good, 0.95), None, "{bad:?}");
            assert_eq!(log_ratio(&good, bad, 0.95), None, "{bad:?}");
        }
        assert_eq!(log_ratio(&good, &good, 1.0), None);
    }

    #[test]
    fn swapping_the_sets_inverts_the_ratio() {
        let (a, b) = ([100.0, 101.0, 99.5, 100.2], [110.0, 109.0, 111.5]);
        let (there, back) = (log_ratio(&a, &b, 0.9).expect("a, b"), log_ratio(&b, &a, 0.9).expect("b, a"));
        assert!(((1.0 + there.estimate) * (1.0 + back.estimate) - 1.0).abs() < 1e-12);
        assert!(((1.0 + there.low) * (1.0 + back.high) - 1.0).abs() < 1e-12);
        assert!((there.p - back.p).abs() < 1e-12);
    }

    #[test]
    fn sets_without_spread_are_judged_by_their_means() {
        let same = log_ratio(&[5.0, 5.0], &[5.0, 5.0, 5.0], 0.95).expect("same");
        assert_eq!((same.estimate, same.low, same.high, same.p), (0.0, 0.0, 0.0, 1.0));
        let other = log_ratio(&[5.0, 5.0], &[6.0, 6.0], 0.95).expect("other");
        assert_eq!((other.low, other.high, other.p), (other.estimate, other.estimate, 0.0));
    }
}
