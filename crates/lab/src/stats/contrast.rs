//! The comparison of two sets of runs: the ratio of their means, its interval and its p.

use super::description::Description;
use super::power::detectable;
use super::student::{quantile, upper_tail};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A relative difference with its confidence interval. 0.05 is +5 %.
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
    /// Degrees of freedom of Student's t: the number of pairs minus one, or those of Welch and Satterthwaite.
    pub degrees_of_freedom: f64,
}

/// How the runs of two variants are matched, which decides the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Design {
    /// Runs at the same position come from the same block: each block is one observation of the ratio, and drift from
    /// block to block cancels (paired t).
    Paired,
    /// The runs are two unmatched sets (Welch's t).
    Independent,
}

impl fmt::Display for Design {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Design::Paired => "paired",
            Design::Independent => "Welch",
        })
    }
}

impl Design {
    /// Degrees of freedom of `runs` runs of each variant when both variants have the same spread.
    pub(super) fn degrees_of_freedom(self, runs: f64) -> f64 {
        match self {
            Design::Paired => runs - 1.0,
            Design::Independent => 2.0 * runs - 2.0,
        }
    }
}

/// The runs of a baseline and of a variant, ready to be compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contrast<'a> {
    /// Values of the runs of the baseline.
    pub baseline: &'a [f64],
    /// Values of the runs of the variant that is judged.
    pub variant: &'a [f64],
    /// Whether the two lists are in the same order, block by block.
    pub design: Design,
}

impl<'a> Contrast<'a> {
    /// Compares variants that have one run each in every block; both lists are in the order of the blocks.
    pub fn paired(baseline: &'a [f64], variant: &'a [f64]) -> Self {
        Contrast { baseline, variant, design: Design::Paired }
    }

    /// Compares two unmatched sets of runs.
    pub fn independent(baseline: &'a [f64], variant: &'a [f64]) -> Self {
        Contrast { baseline, variant, design: Design::Independent }
    }

    /// Returns Student's t interval for the mean difference of the logarithms, as a relative difference. Paired runs give
    /// the interval of the differences within the blocks. Other runs give Welch's interval, which does not need equal
    /// variances and loses nothing where they are equal (B. L. Welch, Biometrika 34, 1947).
    ///
    /// Returns `None` unless both sets have at least two values, all values are finite and above 0, paired sets have the
    /// same length, and `confidence` lies strictly between 0 and 1.
    pub fn log_ratio(&self, confidence: f64) -> Option<Effect> {
        let level = confidence > 0.0 && confidence < 1.0;
        LogDifference::of(self).filter(|_| level).map(|difference| difference.effect(1.0 - confidence))
    }

    /// Returns the smallest relative difference that this number of runs with this spread detects with probability
    /// `power` in a two-sided test at `alpha`; see [`super::smallest_effect`]. For paired runs the result is 5 % too
    /// small at three pairs and 1 % at five. Returns `None` where [`Self::log_ratio`] does.
    pub fn smallest_effect(&self, alpha: f64, power: f64) -> Option<f64> {
        let possible = [alpha, power].iter().all(|&x| x > 0.0 && x < 1.0);
        let difference = LogDifference::of(self).filter(|_| possible)?;
        let runs = self.baseline.len().min(self.variant.len()) as f64;
        let degrees = self.design.degrees_of_freedom(runs);
        Some(detectable(degrees, alpha, power) * (difference.variance / runs).sqrt())
    }
}

/// The difference of the mean logarithms and its precision.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogDifference {
    pub mean: f64,
    pub standard_error: f64,
    pub degrees_of_freedom: f64,
    /// Variance of the difference between one run of each variant; the standard error falls from it as runs are added.
    pub variance: f64,
}

impl LogDifference {
    pub(super) fn of(contrast: &Contrast<'_>) -> Option<LogDifference> {
        let (baseline, variant) = (logs(contrast.baseline)?, logs(contrast.variant)?);
        match contrast.design {
            Design::Paired => Self::of_pairs(&baseline, &variant),
            Design::Independent => Self::of_sets(&baseline, &variant),
        }
    }

    fn of_pairs(baseline: &[f64], variant: &[f64]) -> Option<LogDifference> {
        let differences: Vec<f64> =
            variant.iter().zip(baseline).map(|(variant, base)| variant - base).collect();
        let described = Description::of(&differences).filter(|_| variant.len() == baseline.len())?;
        let (n, variance) = (described.n as f64, described.stddev.powi(2));
        Some(LogDifference {
            mean: described.mean,
            standard_error: (variance / n).sqrt(),
            degrees_of_freedom: n - 1.0,
            variance,
        })
    }

    fn of_sets(baseline: &[f64], variant: &[f64]) -> Option<LogDifference> {
        let (baseline, variant) = (Description::of(baseline)?, Description::of(variant)?);
        let (v1, v2) = (baseline.stddev.powi(2), variant.stddev.powi(2));
        let (n1, n2) = (baseline.n as f64, variant.n as f64);
        let (s1, s2) = (v1 / n1, v2 / n2);
        let satterthwaite = (s1 + s2).powi(2) / (s1.powi(2) / (n1 - 1.0) + s2.powi(2) / (n2 - 1.0));
        Some(LogDifference {
            mean: variant.mean - baseline.mean,
            standard_error: (s1 + s2).sqrt(),
            // Without any spread the formula is 0/0, and the squares of a tiny spread underflow.
            degrees_of_freedom: if satterthwaite.is_finite() { satterthwaite } else { n1 + n2 - 2.0 },
            variance: v1 + v2,
        })
    }

    /// The effect with the interval that leaves `alpha` outside, half on each side.
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

    /// Two-sided p of the hypothesis that there is no difference.
    pub(super) fn p(&self) -> f64 {
        2.0 * self.tail_beyond(self.mean.abs())
    }

    /// The larger p of two one-sided tests of the hypothesis that the difference lies outside (`low`, `high`), logarithms
    /// (D. J. Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987).
    pub(super) fn p_outside(&self, low: f64, high: f64) -> f64 {
        self.tail_beyond(self.mean - low).max(self.tail_beyond(high - self.mean))
    }

    /// Probability that an estimate is too high by this much or more.
    fn tail_beyond(&self, distance: f64) -> f64 {
        // Two equal sets without spread would give 0/0; there is no evidence of a difference.
        let t = if distance == 0.0 { 0.0 } else { distance / self.standard_error };
        upper_tail(t, self.degrees_of_freedom)
    }
}

fn logs(values: &[f64]) -> Option<Vec<f64>> {
    let usable = values.len() >= 2 && values.iter().all(|&value| value > 0.0 && value.is_finite());
    usable.then(|| values.iter().map(|value| value.ln()).collect())
}

#[cfg(test)]
mod tests {
    use super::{Contrast, Effect};

    fn log_ratio(baseline: &[f64], variant: &[f64], confidence: f64) -> Option<Effect> {
        Contrast::independent(baseline, variant).log_ratio(confidence)
    }

    #[test]
    fn paired_sets_have_the_same_length() {
        let runs = [1.0, 2.0, 3.0];
        assert_eq!(Contrast::paired(&runs, &runs[..2]).log_ratio(0.95), None);
        assert!(Contrast::paired(&runs, &runs).log_ratio(0.95).is_some());
    }

    /// Drift from block to block hides the difference from Welch's test, but cancels within the blocks.
    #[test]
    fn drift_from_block_to_block_cancels_in_pairs() {
        let drifting = [100.0, 120.0, 144.0, 172.0];
        let faster = [102.1, 121.9, 147.2, 175.0];
        let paired = Contrast::paired(&drifting, &faster);
        let (pairs, sets) = (paired.log_ratio(0.95).expect("pairs"), log_ratio(&drifting, &faster, 0.95));
        let sets = sets.expect("sets");
        assert!((pairs.estimate - sets.estimate).abs() < 1e-12);
        assert!(pairs.p < 0.01 && sets.p > 0.9, "{} and {}", pairs.p, sets.p);
        let smallest = |contrast: Contrast<'_>| contrast.smallest_effect(0.05, 0.8).expect("a plan");
        assert!(smallest(paired) < 0.02 && smallest(Contrast::independent(&drifting, &faster)) > 0.5);
    }

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
