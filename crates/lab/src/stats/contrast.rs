//! The comparison of two sets of runs: the ratio of their means, its interval and its p.

use super::difference::{Effect, LogDifference};
use serde::{Deserialize, Serialize};
use std::fmt;

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
        self.difference().filter(|_| level).map(|difference| difference.effect(1.0 - confidence))
    }

    pub(super) fn difference(&self) -> Option<LogDifference> {
        let (baseline, variant) = (logs(self.baseline)?, logs(self.variant)?);
        match self.design {
            Design::Independent => LogDifference::of_sets(&baseline, &variant),
            Design::Paired if baseline.len() != variant.len() => None,
            Design::Paired => {
                let pairs = variant.iter().zip(&baseline);
                LogDifference::of_pairs(&pairs.map(|(variant, base)| variant - base).collect::<Vec<_>>())
            }
        }
    }

    /// The number of runs of the arm that has fewer.
    pub(super) fn runs(&self) -> usize {
        self.baseline.len().min(self.variant.len())
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
