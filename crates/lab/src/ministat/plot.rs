//! The plot: every value is a symbol on one axis, with a bar from mean − stddev to mean + stddev below.

use super::set::{SYMBOLS, Set};
use crate::stats::Description;

/// Draws the plot with its frame; `width` is the number of columns inside the frame.
pub(super) fn draw(sets: &[Set], described: &[Description], width: usize, separate_bars: bool) -> String {
    let Some(scale) = PlotScale::over(described, width) else {
        return "[no plot, span is zero width]\n".to_owned();
    };
    let frame = format!("+{}+\n", "-".repeat(width));
    let mut text = frame.clone();
    for row in stacks(sets, &scale).iter().rev() {
        text.push_str(&framed(row.iter().map(|&place| SYMBOLS[place])));
    }
    for bar in bars(described, &scale, separate_bars) {
        text.push_str(&framed(bar.into_iter()));
    }
    text.push_str(&frame);
    text
}

fn framed(cells: impl Iterator<Item = char>) -> String {
    format!("|{}|\n", cells.collect::<String>())
}

/// Maps values to columns linearly: the lowest to the middle of the first column, the highest to that of the last one.
struct PlotScale {
    left: f64,
    step: f64,
    width: usize,
}

impl PlotScale {
    /// `None` if all values are equal within the resolution of a double.
    fn over(described: &[Description], width: usize) -> Option<PlotScale> {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for set in described {
            low = low.min(set.min).min(set.mean - set.stddev);
            high = high.max(set.max).max(set.mean + set.stddev);
        }
        let step = (high - low) / (width as f64 - 1.0);
        (step > 0.0).then_some(PlotScale { left: low - 0.5 * step, step, width })
    }

    fn column(&self, value: f64) -> usize {
        // The cast drops the fraction, like C's; the bound only matters for rounding in the last column.
        (((value - self.left) / self.step) as usize).min(self.width - 1)
    }
}

/// Returns the rows from the axis upwards. Each place is the OR of the numbers of the sets that have a value there.
///
/// The number of rows is the height of the highest stack *of the last set*: each set cuts or raises the plot to its own
/// height, so that higher stacks of earlier sets are cut. The reference program does the same.
fn stacks(sets: &[Set], scale: &PlotScale) -> Vec<Vec<usize>> {
    let mut rows: Vec<Vec<usize>> = Vec::new();
    for (index, set) in sets.iter().enumerate() {
        let heights = heights(set, scale);
        rows.resize(heights.iter().copied().max().unwrap_or(0), vec![0; scale.width]);
        for (column, &height) in heights.iter().enumerate() {
            rows.iter_mut().take(height).for_each(|row| row[column] |= index + 1);
        }
    }
    rows
}

/// Counts the values of a set in each column.
fn heights(set: &Set, scale: &PlotScale) -> Vec<usize> {
    let mut heights = vec![0; scale.width];
    set.values.iter().for_each(|&value| heights[scale.column(value)] += 1);
    heights
}

/// Returns one line for each set, or one line for all. The ends of a bar overwrite everything, the line between them
/// overwrites only blanks, and the mean (`A`) overwrites the median (`M`).
fn bars(described: &[Description], scale: &PlotScale, separate: bool) -> Vec<Vec<char>> {
    let mut bars = vec![vec![' '; scale.width]; if separate { described.len() } else { 1 }];
    for (index, set) in described.iter().enumerate() {
        let bar = &mut bars[if separate { index } else { 0 }];
        let (from, to) = (scale.column(set.mean - set.stddev), scale.column(set.mean + set.stddev));
        bar[from..=to].iter_mut().filter(|cell| **cell == ' ').for_each(|cell| *cell = '_');
        bar[from] = '|';
        bar[to] = '|';
        bar[scale.column(set.median)] = 'M';
        bar[scale.column(set.mean)] = 'A';
    }
    bars
}
