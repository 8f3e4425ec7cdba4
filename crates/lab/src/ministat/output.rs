//! The output: legend, plot, table and comparisons.

use super::error::MinistatError;
use super::number::general;
use super::set::{SYMBOLS, Set, describe};
use super::style::{DEFAULT_WIDTH, Style, WIDTHS};
use super::{comparison, plot};
use crate::stats::Description;
use std::fmt::Write;

/// Returns the text that ministat prints for these sets: the legend, the plot, then the table with the comparison of
/// each set with the first one.
///
/// # Errors
/// See [`MinistatError`]. Finite values of sensible size in sets of three or more never fail.
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

fn table(described: &[Description], style: &Style) -> String {
    let mut text = String::new();
    if style.headers {
        text.push_str("    N           Min           Max        Median           Avg        Stddev\n");
    }
    for (index, set) in described.iter().enumerate() {
        text.push_str(&row(SYMBOLS[index + 1], set));
        if style.compare && index > 0 {
            text.push_str(&comparison::lines(set, &described[0], style));
        }
    }
    text
}

fn row(symbol: char, set: &Description) -> String {
    let mut line = format!("{symbol} {:3}", set.n);
    for figure in [set.min, set.max, set.median, set.mean, set.stddev] {
        // Writing to a string cannot fail.
        let _ = write!(line, " {:>13}", general(figure, 8));
    }
    line.push('\n');
    line
}
