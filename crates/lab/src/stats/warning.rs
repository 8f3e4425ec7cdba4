//! Warnings about the values of runs: properties that Student's t test does not allow for, each with advice.
//!
//! A warning never removes a run. The report prints it beside the result; the reader decides whether to repeat the run.

use super::description::{Description, median, sorted};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A property of the values that makes a verdict less reliable. Its `Display` is the text of the report.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Warning {
    /// There are too few runs to estimate the spread.
    FewRuns {
        /// Number of runs.
        runs: usize,
    },
    /// One run is far from the others.
    Outlier {
        /// Index of the run in the order given.
        run: usize,
        /// Distance of the run from the median, relative to the median.
        relative: f64,
    },
    /// The runs form two groups with a wide gap between them.
    Bimodal {
        /// Median of the lower group, in the unit of the runs.
        low: f64,
        /// Median of the upper group, in the unit of the runs.
        high: f64,
    },
    /// The runs of one variant vary far more than those of the other.
    UnequalSpread {
        /// Ratio of the coefficients of variation, the larger over the smaller.
        ratio: f64,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Warning::FewRuns { runs } => {
                write!(f, "only {runs} runs, too few to estimate the spread: make {FEW_RUNS} or more")
            }
            Warning::Outlier { run, relative } => {
                let (number, percent) = (run + 1, 100.0 * relative);
                write!(f, "run {number} lies {percent:+.1} % from the median: check its log and repeat it")
            }
            Warning::Bimodal { low, high } => {
                write!(
                    f,
                    "the runs form two groups, around {low} and {high}: find out what differs between the groups"
                )
            }
            Warning::UnequalSpread { ratio } => {
                write!(
                    f,
                    "the runs of one variant vary {ratio:.0} times as much as those of the other: find out why before comparing"
                )
            }
        }
    }
}

/// With fewer runs of a variant, the critical value of t is at least a quarter above that for many runs.
const FEW_RUNS: usize = 5;
/// An outlier is farther from the median than this many robust standard deviations …
const FAR_DEVIATIONS: f64 = 5.0;
/// … and farther than this fraction of the median. With both limits, 12 % of the 2,861 sets of runs that a forwarding
/// laboratory published in eleven years have an outlier.
const FAR_RELATIVE: f64 = 0.02;
/// Ratio of the standard deviation to the median absolute deviation, for the normal distribution.
const MAD_TO_STDDEV: f64 = 1.4826;
/// Fewer runs than this form apparent groups by chance too often.
const FEWEST_FOR_GROUPS: usize = 10;
/// The gap between two groups is wider than the wider group by this factor. Normally distributed runs have such a gap in
/// four of a thousand sets of ten, and in fewer of the larger sets.
const GAP_TO_WIDTH: f64 = 1.5;
/// Two sets of five runs with equal spread exceed this ratio of observed spreads once in a hundred pairs.
const UNEQUAL: f64 = 5.0;

/// Returns the warnings about the runs of one variant, which are given in the order they were made.
pub fn warnings_of_runs(runs: &[f64]) -> Vec<Warning> {
    let few = (runs.len() < FEW_RUNS).then_some(Warning::FewRuns { runs: runs.len() });
    let groups = groups(runs);
    // If there are two groups, the runs of the smaller one are not outliers.
    let outliers = if groups.is_some() { Vec::new() } else { outliers(runs) };
    few.into_iter().chain(groups).chain(outliers).collect()
}

/// Returns the warnings about comparing two variants, given the values of their runs.
pub fn warnings_of_spreads(baseline: &[f64], variant: &[f64]) -> Vec<Warning> {
    let spread = |runs: &[f64]| {
        Description::of(runs).filter(|runs| runs.n > 1).map(|runs| runs.coefficient_of_variation())
    };
    let ratio = spread(baseline).zip(spread(variant)).map(|(one, other)| one.max(other) / one.min(other));
    // A set without any spread is a counter that does not depend on the load, or its values are too coarse to compare.
    ratio
        .filter(|&ratio| ratio > UNEQUAL && ratio.is_finite())
        .map(|ratio| Warning::UnequalSpread { ratio })
        .into_iter()
        .collect()
}

fn outliers(runs: &[f64]) -> Vec<Warning> {
    let Some(middle) = median(runs) else { return Vec::new() };
    let deviations: Vec<f64> = runs.iter().map(|run| (run - middle).abs()).collect();
    let robust = MAD_TO_STDDEV * median(&deviations).unwrap_or(0.0);
    let limit = (FAR_DEVIATIONS * robust).max(FAR_RELATIVE * middle.abs());
    let far = runs.iter().enumerate().filter(|(run, _)| deviations[*run] > limit);
    far.map(|(run, value)| Warning::Outlier { run, relative: (value - middle) / middle }).collect()
}

/// Splits the runs at the widest gap that leaves at least a quarter of them on either side.
fn groups(runs: &[f64]) -> Option<Warning> {
    let sorted = sorted(runs);
    let fewest = sorted.len().div_ceil(4);
    if sorted.len() < FEWEST_FOR_GROUPS {
        return None;
    }
    let gap_at = |split: usize| sorted[split] - sorted[split - 1];
    let split = (fewest..=sorted.len() - fewest).max_by(|&a, &b| gap_at(a).total_cmp(&gap_at(b)))?;
    let (lower, upper) = sorted.split_at(split);
    let width = |group: &[f64]| group[group.len() - 1] - group[0];
    let limit = (GAP_TO_WIDTH * width(lower).max(width(upper))).max(FAR_RELATIVE * median(&sorted)?.abs());
    (gap_at(split) > limit).then_some(Warning::Bimodal { low: median(lower)?, high: median(upper)? })
}

#[cfg(test)]
mod tests {
    use super::{Warning, warnings_of_runs, warnings_of_spreads};

    #[test]
    fn runs_with_a_small_spread_have_no_warning() {
        assert_eq!(warnings_of_runs(&[100.0, 100.4, 99.7, 100.1, 99.9]), []);
    }

    /// Five published runs of a 16-core router with one outlier: the report gave that cell +21.3 % ± 9.6 %.
    #[test]
    fn one_outlier_is_named() {
        let warnings = warnings_of_runs(&[28.1e6, 28.2e6, 23.6e6, 28.15e6, 28.12e6]);
        assert!(
            matches!(warnings[..], [Warning::Outlier { run: 2, relative }] if (-0.17..-0.15).contains(&relative))
        );
    }

    #[test]
    fn few_runs_have_a_warning() {
        assert_eq!(warnings_of_runs(&[100.0, 100.1, 99.9]), [Warning::FewRuns { runs: 3 }]);
        assert_eq!(warnings_of_runs(&[]), [Warning::FewRuns { runs: 0 }]);
    }

    #[test]
    fn two_groups_have_one_warning() {
        let warnings =
            warnings_of_runs(&[100.0, 120.0, 100.5, 120.4, 99.5, 100.1, 119.6, 100.2, 99.9, 100.3]);
        assert_eq!(warnings, [Warning::Bimodal { low: 100.1, high: 120.0 }]);
    }

    #[test]
    fn very_different_spreads_have_a_warning() {
        let (steady, varying) = ([838e3, 840e3, 836e3, 839e3, 841e3], [659e3, 839e3, 700e3, 812e3, 765e3]);
        assert!(
            matches!(warnings_of_spreads(&steady, &varying)[..], [Warning::UnequalSpread { ratio }] if ratio > 30.0)
        );
        assert_eq!(warnings_of_spreads(&steady, &steady), []);
        assert_eq!(warnings_of_spreads(&[5.0; 5], &varying), []);
    }

    #[test]
    fn a_warning_contains_advice() {
        assert_eq!(
            Warning::Outlier { run: 2, relative: -0.161 }.to_string(),
            "run 3 lies -16.1 % from the median: check its log and repeat it"
        );
    }
}
