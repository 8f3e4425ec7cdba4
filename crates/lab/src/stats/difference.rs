//! The difference of two arms in logarithms: its mean, its precision, and its interval as a relative difference.

use super::description::Description;
use super::student::{quantile, upper_tail};
use serde::{Deserialize, Serialize};

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

/// The mean difference of the logarithms and its precision.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogDifference {
    pub mean: f64,
    pub standard_error: f64,
    pub degrees_of_freedom: f64,
}

impl LogDifference {
    /// The difference of arms that were observed together: one log ratio per block.
    pub(super) fn of_pairs(ratios: &[f64]) -> Option<LogDifference> {
        let usable = ratios.len() >= 2 && ratios.iter().all(|ratio| ratio.is_finite());
        let described = Description::of(ratios).filter(|_| usable)?;
        Some(LogDifference {
            mean: described.mean,
            standard_error: described.stddev / (described.n as f64).sqrt(),
            degrees_of_freedom: described.n as f64 - 1.0,
        })
    }

    /// The difference of two unmatched sets of logarithms, each of at least two.
    pub(super) fn of_sets(baseline: &[f64], variant: &[f64]) -> Option<LogDifference> {
        let (baseline, variant) = (Description::of(baseline)?, Description::of(variant)?);
        let (n1, n2) = (baseline.n as f64, variant.n as f64);
        let (s1, s2) = (baseline.stddev.powi(2) / n1, variant.stddev.powi(2) / n2);
        let satterthwaite = (s1 + s2).powi(2) / (s1.powi(2) / (n1 - 1.0) + s2.powi(2) / (n2 - 1.0));
        Some(LogDifference {
            mean: variant.mean - baseline.mean,
            standard_error: (s1 + s2).sqrt(),
            // Without any spread the formula is 0/0, and the squares of a tiny spread underflow.
            degrees_of_freedom: if satterthwaite.is_finite() { satterthwaite } else { n1 + n2 - 2.0 },
        })
    }

    /// The effect with the interval that leaves `level` outside, half on each side.
    pub(super) fn effect(&self, level: f64) -> Effect {
        let reach = quantile(1.0 - level / 2.0, self.degrees_of_freedom) * self.standard_error;
        Effect {
            estimate: self.mean.exp_m1(),
            low: (self.mean - reach).exp_m1(),
            high: (self.mean + reach).exp_m1(),
            p: self.p(),
            degrees_of_freedom: self.degrees_of_freedom,
        }
    }

    /// Two-sided p of the hypothesis that there is no difference.
    fn p(&self) -> f64 {
        // Two equal sets without spread would give 0/0; there is no evidence of a difference.
        let t = if self.mean == 0.0 { 0.0 } else { self.mean.abs() / self.standard_error };
        2.0 * upper_tail(t, self.degrees_of_freedom)
    }
}
