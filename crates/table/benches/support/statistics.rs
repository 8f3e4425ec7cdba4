//! Medians and their confidence intervals.

use std::fmt;

pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A median and its interval of 95 % confidence, valid for any distribution.
pub struct Interval {
    low: f64,
    median: f64,
    high: f64,
}

impl Interval {
    pub fn of_median(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let bounds = outside(values.len()).map(|skip| [values[skip], values[values.len() - 1 - skip]]);
        let [low, high] = bounds.unwrap_or([f64::NAN; 2]);
        Interval { low, median: median(values.iter().copied()), high }
    }
}

/// The number of smallest and of largest values, out of `count`, that lie outside the interval: each value is below or
/// above the true median with equal probability, so the number on one side is binomial. `None` if there are too few
/// values.
fn outside(count: usize) -> Option<usize> {
    let (mut tosses, mut below) = (0.5f64.powi(count as i32), 0.0);
    for heads in 0..count {
        below += tosses;
        if below > 0.025 {
            return heads.checked_sub(1);
        }
        tosses *= (count - heads) as f64 / (heads + 1) as f64;
    }
    None
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Interval { low, median, high } = self;
        write!(f, "{median:.3} ({low:.3} to {high:.3} with 95 % confidence)")
    }
}
