//! The plot: every figure a symbol on one axis, and under it a bar from mean − stddev to mean + stddev.

use super::{SYMBOLS, Set};
use crate::stats::Description;

/// The framed plot, `width` columns inside the frame.
pub(super) fn draw(sets: &[Set], described: &[Description], width: usize, separate_bars: bool) -> String {
    let Some(axis) = Axis::over(described, width) else {
        return "[no plot, span is zero width]\n".to_owned();
    };
    let frame = format!("+{}+\n", "-".repeat(width));
    let mut text = frame.clone();
    for row in stacks(sets, &axis).iter().rev() {
        text.push_str(&framed(row.iter().map(|&place| SYMBOLS[place])));
    }
    for bar in bars(described, &axis, separate_bars) {
        text.push_str(&framed(bar.into_iter()));
    }
    text.push_str(&frame);
    text
}

fn framed(cells: impl Iterator<Item = char>) -> String {
    format!("|{}|\n", cells.collect::<String>())
}

/// Maps figures to columns: linear, the lowest in the middle of the first column, the highest in that of the last one.
struct Axis {
    left: f64,
    step: f64,
    width: usize,
}

impl Axis {
    /// `None` when all there is to show lies in one point, to the resolution of a double.
    fn over(described: &[Description], width: usize) -> Option<Axis> {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for set in described {
            low = low.min(set.min).min(set.mean - set.stddev);
            high = high.max(set.max).max(set.mean + set.stddev);
        }
        let step = (high - low) / (width as f64 - 1.0);
        (step > 0.0).then_some(Axis { left: low - 0.5 * step, step, width })
    }

    fn column(&self, value: f64) -> usize {
        // The cast drops the fraction, as C's does; the bound is for the last column's rounding only.
        (((value - self.left) / self.step) as usize).min(self.width - 1)
    }
}

/// Rows from the axis upwards, each place the OR of the numbers of the sets that have a figure there.
///
/// The rows are as many as the highest stack *of the last set* asks for: each set cuts or raises the plot to its own
/// height, so that higher stacks of earlier sets lose their tops. That is what the reference program shows.
fn stacks(sets: &[Set], axis: &Axis) -> Vec<Vec<usize>> {
    let mut rows: Vec<Vec<usize>> = Vec::new();
    for (index, set) in sets.iter().enumerate() {
        let heights = heights(set, axis);
        rows.resize(heights.iter().copied().max().unwrap_or(0), vec![0; axis.width]);
        for (column, &height) in heights.iter().enumerate() {
            rows.iter_mut().take(height).for_each(|row| row[column] |= index + 1);
        }
    }
    rows
}

/// How many figures of a set fall into each column.
fn heights(set: &Set, axis: &Axis) -> Vec<usize> {
    let mut heights = vec![0; axis.width];
    set.values.iter().for_each(|&value| heights[axis.column(value)] += 1);
    heights
}

/// One line a set, or one for all. Ends overwrite everything, the line between them only blanks, and the mean (`A`)
/// the median (`M`).
fn bars(described: &[Description], axis: &Axis, separate: bool) -> Vec<Vec<char>> {
    let mut bars = vec![vec![' '; axis.width]; if separate { described.len() } else { 1 }];
    for (index, set) in described.iter().enumerate() {
        let bar = &mut bars[if separate { index } else { 0 }];
        let (from, to) = (axis.column(set.mean - set.stddev), axis.column(set.mean + set.stddev));
        bar[from..=to].iter_mut().filter(|cell| **cell == ' ').for_each(|cell| *cell = '_');
        bar[from] = '|';
        bar[to] = '|';
        bar[axis.column(set.median)] = 'M';
        bar[axis.column(set.mean)] = 'A';
    }
    bars
}
