//! A set of values with its label.

use super::error::MinistatError;
use crate::stats::Description;

/// A set of values and the label it is printed under, which usually is the name of its file.
#[derive(Debug, Clone, PartialEq)]
pub struct Set {
    /// The text after the set's symbol in the legend.
    pub label: String,
    /// The values in the order they were measured: at least [`FEWEST_VALUES`], all of them finite.
    pub values: Vec<f64>,
}

/// A set needs this many values, because the spread of fewer is unknown.
pub const FEWEST_VALUES: usize = 3;
/// The number of symbols limits the number of sets.
pub const MOST_SETS: usize = SYMBOLS.len() - 1;

/// The symbols of the plot, by the bitwise OR of the numbers of the sets that share a place: `x` (1) over `+` (2) is
/// `*` (3), which is also the symbol of the third set.
pub(super) const SYMBOLS: [char; 8] = [' ', 'x', '+', '*', '%', '#', '@', 'O'];

/// Describes every set, or returns why ministat cannot print them.
pub(super) fn describe(sets: &[Set]) -> Result<Vec<Description>, MinistatError> {
    match sets.len() {
        0 => Err(MinistatError::NoSets),
        1..=MOST_SETS => sets.iter().map(Set::describe).collect(),
        _ => Err(MinistatError::TooManySets),
    }
}

impl Set {
    fn describe(&self) -> Result<Description, MinistatError> {
        let label = || self.label.clone();
        let described = Description::of(&self.values)
            .filter(|d| d.n >= FEWEST_VALUES)
            .ok_or_else(|| MinistatError::TooFewValues { label: label() })?;
        let finite =
            described.mean.is_finite() && described.stddev.is_finite() && described.median.is_finite();
        if finite { Ok(described) } else { Err(MinistatError::NotFinite { label: label() }) }
    }
}

/// Splits the sets into blocks for ministat's seven symbols. Each block begins with the first set.
pub fn split(sets: &[Set]) -> Vec<Vec<Set>> {
    match sets.split_first() {
        None => Vec::new(),
        Some((first, [])) => vec![vec![first.clone()]],
        Some((first, others)) => {
            let chunks = others.chunks(MOST_SETS - 1);
            chunks.map(|chunk| [std::slice::from_ref(first), chunk].concat()).collect()
        }
    }
}
