//! Doubts: what a reader should know about the figures before believing the verdict, each with advice.
//!
//! A doubt never drops a run. It is printed beside the result, and the run it names can be looked at or repeated.

use super::describe::{Description, median, sorted};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Something about the figures that Student's t does not allow for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// So few runs that the spread itself is hardly known.
    FewRuns {
        /// How many there are.
        runs: usize,
    },
    /// A run far from the others.
    Outlier {
        /// Which run, counted from 0 in the order given.
        run: usize,
        /// Its distance from the median, relative to the median.
        relative: f64,
    },
    /// The runs fall into two groups with nothing between.
    Bimodal {
        /// Median of the lower group, in the unit of the runs.
        low: f64,
        /// Median of the upper group, in the unit of the runs.
        high: f64,
    },
    /// The seconds of a run rise or fall steadily.
    Drift {
        /// Change from the first second to the last along the fitted line, relative to the mean.
        relative: f64,
    },
    /// One variant spreads far more than the other one.
    UnequalSpread {
        /// Ratio of the coefficients of variation, the larger over the smaller.
        ratio: f64,
    },
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Doubt::FewRuns { runs } => {
                write!(f, "only {runs} runs: the spread is hardly known; take {FEW_RUNS} or more")
            }
            Doubt::Outlier { run, relative } => {
                let (number, percent) = (run + 1, 100.0 * relative);
                write!(f, "run {number} lies {percent:+.1} % from the median: look at its log, and repeat it")
            }
            Doubt::Bimodal { low, high } => {
                write!(
                    f,
                    "the runs fall into two groups, around {low} and {high}: find the state that differs"
                )
            }
            Doubt::Drift { relative } => {
                let percent = 100.0 * relative;
                write!(
                    f,
                    "the rate drifts by {percent:+.1} % within the run: let it settle longer, check for throttling"
                )
            }
            Doubt::UnequalSpread { ratio } => {
                write!(
                    f,
                    "one variant spreads {ratio:.0} times as much as the other one: find out why before comparing"
                )
            }
        }
    }
}

/// Below this many runs of either variant the critical value of t is a quarter or more above that for many runs.
const FEW_RUNS: usize = 5;
/// An outlier is farther from the median than this many robust standard deviations …
const FAR_DEVIATIONS: f64 = 5.0;
/// … and farther than this part of the median. The two limits found one outlier in 12 % of the 2,861 sets of runs that
/// eleven years of a forwarding laboratory left behind.
const FAR_RELATIVE: f64 = 0.02;
/// Median absolute deviation to standard deviation, for the normal distribution.
const MAD_TO_STDDEV: f64 = 1.4826;
/// Fewer runs always fall into groups somehow.
const FEWEST_FOR_GROUPS: usize = 10;
/// Two groups lie this many times as far apart as the wider of them is wide. Normal runs do so in four of a thousand
/// sets of ten, and more rarely in larger sets.
const GAP_TO_WIDTH: f64 = 1.5;
/// A drift must stand out this many standard errors from the scatter of the seconds; they are correlated, so it is more
/// than independent seconds would need.
const DRIFT_ERRORS: f64 = 5.0;
/// A ratio of the spreads that equal spreads reach once in a hundred pairs of five runs.
const UNEQUAL: f64 = 5.0;

/// Doubts about the runs of one variant, in the order they were taken.
pub fn doubts_of_runs(runs: &[f64]) -> Vec<Doubt> {
    let few = (runs.len() < FEW_RUNS).then_some(Doubt::FewRuns { runs: runs.len() });
    let groups = groups(runs);
    // Where there are two groups, the smaller one is not a row of accidents.
    let outliers = if groups.is_some() { Vec::new() } else { outliers(runs) };
    few.into_iter().chain(groups).chain(outliers).collect()
}

/// Doubts about one run by its rates in successive seconds: a drift of more than `limit` relative to the mean (0.01 is
/// what one run in eleven shows, 0.03 one in thirty).
pub fn doubts_of_series(series: &[f64], limit: f64) -> Vec<Doubt> {
    drift(series)
        .filter(|relative| relative.abs() > limit)
        .map(|relative| Doubt::Drift { relative })
        .into_iter()
        .collect()
}

/// Doubts about comparing two variants by their runs.
pub fn doubts_of_spreads(baseline: &[f64], variant: &[f64]) -> Vec<Doubt> {
    let spread = |runs: &[f64]| {
        Description::of(runs).filter(|runs| runs.n > 1).map(|runs| runs.coefficient_of_variation())
    };
    let ratio = spread(baseline).zip(spread(variant)).map(|(one, other)| one.max(other) / one.min(other));
    // No spread at all on one side is a counter that does not move with the load, or figures too coarse to compare.
    ratio
        .filter(|&ratio| ratio > UNEQUAL && ratio.is_finite())
        .map(|ratio| Doubt::UnequalSpread { ratio })
        .into_iter()
        .collect()
}

fn outliers(runs: &[f64]) -> Vec<Doubt> {
    let Some(middle) = median(runs) else { return Vec::new() };
    let deviations: Vec<f64> = runs.iter().map(|run| (run - middle).abs()).collect();
    let robust = MAD_TO_STDDEV * median(&deviations).unwrap_or(0.0);
    let limit = (FAR_DEVIATIONS * robust).max(FAR_RELATIVE * middle.abs());
    let far = runs.iter().enumerate().filter(|(run, _)| deviations[*run] > limit);
    far.map(|(run, value)| Doubt::Outlier { run, relative: (value - middle) / middle }).collect()
}

/// Splits the runs at the widest gap that leaves a quarter of them on either side.
fn groups(runs: &[f64]) -> Option<Doubt> {
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
    (gap_at(split) > limit).then_some(Doubt::Bimodal { low: median(lower)?, high: median(upper)? })
}

/// Change along the line of least squares relative to the mean, where the line stands out from the scatter around it.
fn drift(series: &[f64]) -> Option<f64> {
    let seconds = Description::of(series).filter(|seconds| seconds.n > 2 && seconds.mean != 0.0)?;
    let centre = (seconds.n as f64 - 1.0) / 2.0;
    let offsets = || (0..seconds.n).map(|second| second as f64 - centre);
    let across: f64 = offsets().map(|offset| offset * offset).sum();
    let slope =
        offsets().zip(series).map(|(offset, rate)| offset * (rate - seconds.mean)).sum::<f64>() / across;
    let scatter = offsets()
        .zip(series)
        .map(|(offset, rate)| (rate - seconds.mean - slope * offset).powi(2))
        .sum::<f64>();
    let error = (scatter / (seconds.n as f64 - 2.0) / across).sqrt();
    (slope.abs() > DRIFT_ERRORS * error).then_some(slope * 2.0 * centre / seconds.mean)
}

#[cfg(test)]
mod tests {
    use super::{Doubt, doubts_of_runs, doubts_of_series, doubts_of_spreads};

    #[test]
    fn quiet_runs_raise_no_doubt() {
        assert_eq!(doubts_of_runs(&[100.0, 100.4, 99.7, 100.1, 99.9]), []);
    }

    /// Five published runs of a 16-core router, one of them far off: that cell was reported as +21.3 % ± 9.6 %.
    #[test]
    fn one_bad_run_is_named() {
        let doubts = doubts_of_runs(&[28.1e6, 28.2e6, 23.6e6, 28.15e6, 28.12e6]);
        assert!(
            matches!(doubts[..], [Doubt::Outlier { run: 2, relative }] if (-0.17..-0.15).contains(&relative))
        );
    }

    #[test]
    fn few_runs_are_few() {
        assert_eq!(doubts_of_runs(&[100.0, 100.1, 99.9]), [Doubt::FewRuns { runs: 3 }]);
        assert_eq!(doubts_of_runs(&[]), [Doubt::FewRuns { runs: 0 }]);
    }

    #[test]
    fn two_groups_are_told_once() {
        let doubts = doubts_of_runs(&[100.0, 120.0, 100.5, 120.4, 99.5, 100.1, 119.6, 100.2, 99.9, 100.3]);
        assert_eq!(doubts, [Doubt::Bimodal { low: 100.1, high: 120.0 }]);
    }

    #[test]
    fn a_falling_rate_is_a_drift() {
        let noise = [0.0, 300.0, -200.0, 100.0, -250.0];
        let falling: Vec<f64> =
            (0..54).map(|second| 396e3 - 430.0 * second as f64 + noise[second % 5]).collect();
        let doubts = doubts_of_series(&falling, 0.01);
        assert!(matches!(doubts[..], [Doubt::Drift { relative }] if (-0.062..-0.056).contains(&relative)));
        assert_eq!(doubts_of_series(&falling, 0.1), []);
    }

    #[test]
    fn scatter_is_no_drift() {
        let scatter: Vec<f64> = (0..60).map(|second| 1e6 + 3e4 * f64::from(second * 7 % 11)).collect();
        assert_eq!(doubts_of_series(&scatter, 0.001), []);
        assert_eq!(doubts_of_series(&[1.0, 2.0], 0.001), []);
    }

    #[test]
    fn very_different_spreads_are_told() {
        let (quiet, loud) = ([838e3, 840e3, 836e3, 839e3, 841e3], [659e3, 839e3, 700e3, 812e3, 765e3]);
        assert!(
            matches!(doubts_of_spreads(&quiet, &loud)[..], [Doubt::UnequalSpread { ratio }] if ratio > 30.0)
        );
        assert_eq!(doubts_of_spreads(&quiet, &quiet), []);
        assert_eq!(doubts_of_spreads(&[5.0; 5], &loud), []);
    }

    #[test]
    fn doubts_come_with_advice() {
        assert_eq!(
            Doubt::Outlier { run: 2, relative: -0.161 }.to_string(),
            "run 3 lies -16.1 % from the median: look at its log, and repeat it"
        );
    }
}
