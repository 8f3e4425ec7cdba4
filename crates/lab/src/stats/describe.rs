//! A set of figures in six numbers.

use serde::{Deserialize, Serialize};

/// Count, extremes and moments of a set, all but the count in the unit of the figures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// How many figures.
    pub n: usize,
    /// The lowest.
    pub min: f64,
    /// The highest.
    pub max: f64,
    /// The middle one, or the mean of the two middle ones.
    pub median: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the population the figures are a sample of (divisor n − 1); 0 for a single figure.
    pub stddev: f64,
}

impl Description {
    /// Describes a set; `None` when it is empty.
    pub fn of(values: &[f64]) -> Option<Description> {
        let sorted = sorted(values);
        let n = sorted.len();
        // The orders of the two summations are ministat's, so that both agree to the last bit: the mean over the
        // figures as they came, the squares over the sorted ones. Squared deviations, not squares: the difference of
        // two sums of squares has no digits left when the spread is small.
        // And from zero on: an empty sum of floats is −0 in Rust, which would make the mean of zeros −0 if all were.
        let mean = values.iter().fold(0.0, |sum, value| sum + value) / n as f64;
        let squares: f64 = sorted.iter().map(|value| (value - mean) * (value - mean)).sum();
        let stddev = if n > 1 { (squares / (n as f64 - 1.0)).sqrt() } else { 0.0 };
        Some(Description {
            n,
            min: *sorted.first()?,
            max: *sorted.last()?,
            median: middle(&sorted)?,
            mean,
            stddev,
        })
    }

    /// Standard deviation over mean.
    pub fn coefficient_of_variation(&self) -> f64 {
        self.stddev / self.mean.abs()
    }
}

/// The middle figure of an unsorted set, or the mean of the two middle ones; `None` when it is empty.
pub fn median(values: &[f64]) -> Option<f64> {
    middle(&sorted(values))
}

pub(super) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    // Added to 0, −0 becomes 0: the two are equal, as in ministat, and stay in the order they came.
    sorted.sort_by(|one, other| (one + 0.0).total_cmp(&(other + 0.0)));
    sorted
}

fn middle(sorted: &[f64]) -> Option<f64> {
    let half = sorted.len() / 2;
    let upper = *sorted.get(half)?;
    if sorted.len() % 2 == 1 { Some(upper) } else { Some((upper + sorted[half - 1]) / 2.0) }
}

#[cfg(test)]
mod tests {
    use super::{Description, median};

    #[test]
    fn describes_the_classic_example() {
        let described = Description::of(&[50.0, 200.0, 150.0, 400.0, 750.0, 400.0, 150.0]);
        let described = described.expect("seven figures can be described");
        assert_eq!((described.n, described.min, described.max), (7, 50.0, 750.0));
        assert_eq!((described.median, described.mean), (200.0, 300.0));
        assert!((described.stddev - 238.047_614_284_761_67).abs() < 1e-9);
    }

    #[test]
    fn an_even_set_has_two_middles() {
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&[7.0]), Some(7.0));
    }

    #[test]
    fn nothing_is_not_described() {
        assert_eq!(Description::of(&[]), None);
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn one_figure_has_no_spread() {
        assert_eq!(Description::of(&[3.0]).map(|described| described.stddev), Some(0.0));
    }

    #[test]
    fn a_small_spread_on_a_large_mean_keeps_its_digits() {
        let described = Description::of(&[1e15, 1e15 + 1.0, 1e15 + 2.0]).expect("three figures");
        assert_eq!(described.stddev, 1.0);
    }
}
