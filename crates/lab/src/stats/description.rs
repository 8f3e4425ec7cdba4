//! A set of values described by count, extremes, median, mean and standard deviation.

use serde::{Deserialize, Serialize};

/// Count, extremes and moments of a set. All but the count are in the unit of the values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// Number of values.
    pub n: usize,
    /// Lowest value.
    pub min: f64,
    /// Highest value.
    pub max: f64,
    /// Middle value, or the mean of the two middle values.
    pub median: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the population, estimated from this sample (divisor n − 1); 0 for a single value.
    pub stddev: f64,
}

impl Description {
    /// Describes a set; returns `None` if it is empty.
    pub fn of(values: &[f64]) -> Option<Description> {
        let sorted = sorted(values);
        let n = sorted.len();
        // Both sums run in ministat's order, so that the results agree to the last bit: the mean over the values in
        // the given order, the squares over the sorted values. The squares are those of the deviations, because the
        // difference of two sums of squares has no digits left when the spread is small.
        // The fold starts at +0: Rust's empty sum of floats is −0, which would make the mean of negative zeros −0.
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

    /// Standard deviation divided by the mean.
    pub fn coefficient_of_variation(&self) -> f64 {
        self.stddev / self.mean.abs()
    }
}

/// Middle value of an unsorted set, or the mean of the two middle values; `None` if the set is empty.
pub fn median(values: &[f64]) -> Option<f64> {
    middle(&sorted(values))
}

pub(super) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    // Adding 0 turns −0 into 0: both zeros compare equal, as in ministat, and the sort keeps their order.
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
        let described = described.expect("seven values can be described");
        assert_eq!((described.n, described.min, described.max), (7, 50.0, 750.0));
        assert_eq!((described.median, described.mean), (200.0, 300.0));
        assert!((described.stddev - 238.047_614_284_761_67).abs() < 1e-9);
    }

    #[test]
    fn an_even_set_averages_its_two_middle_values() {
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&[7.0]), Some(7.0));
    }

    #[test]
    fn an_empty_set_has_no_description() {
        assert_eq!(Description::of(&[]), None);
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn one_value_has_no_spread() {
        assert_eq!(Description::of(&[3.0]).map(|described| described.stddev), Some(0.0));
    }

    #[test]
    fn a_small_spread_on_a_large_mean_keeps_its_digits() {
        let described = Description::of(&[1e15, 1e15 + 1.0, 1e15 + 2.0]).expect("three values");
        assert_eq!(described.stddev, 1.0);
    }
}
