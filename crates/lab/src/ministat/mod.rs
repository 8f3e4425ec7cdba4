//! ministat, the statistics utility of FreeBSD, to the byte.
//!
//! Two decades of performance claims in the BSD world are written in ministat's form, so the lab prints it too, and old
//! series can be compared with new ones by eye or by `diff`. The form is that of FreeBSD since 2020: the median of an
//! even set averages the two middle values, and the error of the relative difference is that of a ratio (delta
//! method).
//!
//! It answers less than [`crate::stats`] does: the variances are pooled, every set is compared with the first one
//! without any correction for the number of comparisons, and "no difference proven" is not "equal".

mod command;
mod number;
mod parse;
mod plot;
mod relative;
mod student;
mod terminal;

pub use command::{main, run};
pub use parse::{ParseError, parse};
pub use student::Confidence;

use crate::stats::Description;
use number::general;
use std::fmt::Write;

/// One set of figures and the name it is printed under (the file it came from, as a rule).
#[derive(Debug, Clone, PartialEq)]
pub struct Set {
    /// What stands behind the set's symbol in the legend.
    pub label: String,
    /// The figures in the order they were taken; at least [`FEWEST_VALUES`], all of them finite.
    pub values: Vec<f64>,
}

/// What is printed, and how wide.
#[derive(Debug, Clone, PartialEq)]
pub struct Style {
    /// Level of the test against the first set.
    pub confidence: Confidence,
    /// `-s`: one bar a set under the plot instead of one bar in which later sets overwrite earlier ones.
    pub separate_bars: bool,
    /// `-w`: columns of the plot without its frame, [`WIDTHS`]; `None` is [`DEFAULT_WIDTH`].
    pub width: Option<usize>,
    /// `false` with `-A` and `-n`: no plot.
    pub plot: bool,
    /// `false` with `-n`: no comparison with the first set.
    pub compare: bool,
    /// `false` with `-q`: neither the names of the sets nor the header of the table.
    pub headers: bool,
}

impl Default for Style {
    fn default() -> Self {
        Style {
            confidence: Confidence::P95,
            separate_bars: false,
            width: None,
            plot: true,
            compare: true,
            headers: true,
        }
    }
}

/// A set of fewer figures says nothing about its spread.
pub const FEWEST_VALUES: usize = 3;
/// There are seven symbols.
pub const MOST_SETS: usize = SYMBOLS.len() - 1;
/// Columns of a plot that is not shown on a terminal.
pub const DEFAULT_WIDTH: usize = 74;
/// Columns a plot can have. The reference program is killed by a plot of 0 or 1 columns.
pub const WIDTHS: std::ops::RangeInclusive<usize> = 2..=65_535;

/// The symbol of a set, and of the sets that share a place: the place shows the symbol of the bitwise OR of their
/// numbers, so `x` (1) over `+` (2) is `*` (3), which is also the third set's own.
const SYMBOLS: [char; 8] = [' ', 'x', '+', '*', '%', '#', '@', 'O'];

/// Why there is nothing to print.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum MinistatError {
    /// No set at all.
    #[error("No datasets: give at least one")]
    NoSets,
    /// More sets than symbols.
    #[error("Too many datasets.")]
    TooManySets,
    /// Fewer than [`FEWEST_VALUES`] figures.
    #[error("Dataset {label} must contain at least 3 data points")]
    TooFewValues {
        /// Name of the set.
        label: String,
    },
    /// A NaN, an infinity, or figures whose squared deviations leave the range of a double.
    #[error("Dataset {label} has figures that are not finite, or too large to square: use a larger unit")]
    NotFinite {
        /// Name of the set.
        label: String,
    },
    /// A plot of fewer columns than two, or of absurdly many.
    #[error("No plot can be {width} columns wide: give a width from 2 to 65535")]
    Width {
        /// Columns asked for.
        width: usize,
    },
}

/// The text ministat prints for these sets: legend, plot, then the table with each set compared with the first one.
///
/// # Errors
/// See [`MinistatError`]; finite figures of sensible size in sets of three or more never fail.
pub fn render(sets: &[Set], style: &Style) -> Result<String, MinistatError> {
    let described = describe(sets)?;
    let mut text = String::new();
    if style.headers {
        text.extend(sets.iter().zip(&SYMBOLS[1..]).map(|(set, symbol)| format!("{symbol} {}\n", set.label)));
    }
    if style.plot {
        let width = style.width.unwrap_or(DEFAULT_WIDTH);
        let width = Some(width).filter(|w| WIDTHS.contains(w)).ok_or(MinistatError::Width { width })?;
        text.push_str(&plot::draw(sets, &described, width, style.separate_bars));
    }
    text.push_str(&table(&described, style));
    Ok(text)
}

fn describe(sets: &[Set]) -> Result<Vec<Description>, MinistatError> {
    match sets.len() {
        0 => Err(MinistatError::NoSets),
        1..=MOST_SETS => sets.iter().map(describe_one).collect(),
        _ => Err(MinistatError::TooManySets),
    }
}

fn describe_one(set: &Set) -> Result<Description, MinistatError> {
    let label = || set.label.clone();
    let described = Description::of(&set.values)
        .filter(|d| d.n >= FEWEST_VALUES)
        .ok_or_else(|| MinistatError::TooFewValues { label: label() })?;
    let finite = described.mean.is_finite() && described.stddev.is_finite() && described.median.is_finite();
    if finite { Ok(described) } else { Err(MinistatError::NotFinite { label: label() }) }
}

fn table(described: &[Description], style: &Style) -> String {
    let mut text = String::new();
    if style.headers {
        text.push_str("    N           Min           Max        Median           Avg        Stddev\n");
    }
    for (index, set) in described.iter().enumerate() {
        text.push_str(&vitals(SYMBOLS[index + 1], set));
        if style.compare && index > 0 {
            text.push_str(&relative::compare(set, &described[0], style.confidence));
        }
    }
    text
}

fn vitals(symbol: char, set: &Description) -> String {
    let mut line = format!("{symbol} {:3}", set.n);
    for figure in [set.min, set.max, set.median, set.mean, set.stddev] {
        // Writing to a string cannot fail.
        let _ = write!(line, " {:>13}", general(figure, 8));
    }
    line.push('\n');
    line
}
