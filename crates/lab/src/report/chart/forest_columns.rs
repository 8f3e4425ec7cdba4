//! The columns of a forest plot: labels at the left, the plot, and figures at the right.

use super::forest::{Forest, ForestRow};
use super::page::EDGE;
use super::text::width;

pub(super) const HEADING: u32 = 30;
pub(super) const LABEL: u32 = 27;
pub(super) const AGAINST: u32 = 23;
/// The most that the labels take of the width, and the least that remains for the plot.
const WIDEST_LABELS: i32 = 640;
const NARROWEST_PLOT: i32 = 640;
/// From the plot to the texts beside it, and from a ratio to its interval.
const BESIDE: i32 = 36;
const BETWEEN: i32 = 10;

/// How wide the texts are.
#[derive(Debug, Clone, Copy)]
pub(super) struct ForestColumns {
    /// At most the room that there is; a longer label has several lines.
    pub(super) labels: i32,
    ratios: i32,
    intervals: i32,
}

impl ForestColumns {
    pub(super) fn of(forest: &Forest) -> Result<Self, String> {
        let headings = forest.headings().map(|title| width(title, HEADING));
        let labels = forest.rows().map(|row| width(&row.label, LABEL));
        let against = forest.rows().filter_map(|row| row.against.as_ref()).map(|text| width(text, AGAINST));
        let figures = |at: usize| forest.rows().map(move |row: &ForestRow| width(&row.figures[at], LABEL));
        Ok(Self {
            labels: widest(headings.chain(labels).chain(against))?.min(WIDEST_LABELS),
            ratios: widest(figures(0))?,
            intervals: widest(figures(1))?,
        })
    }

    /// The least width of the picture.
    pub(super) fn least_width(&self) -> i32 {
        self.plot_left() + NARROWEST_PLOT + self.right_room()
    }

    pub(super) fn plot_left(&self) -> i32 {
        EDGE + self.labels + BESIDE
    }

    /// From the plot to the right edge of the picture.
    pub(super) fn right_room(&self) -> i32 {
        BESIDE + self.ratios + BETWEEN + self.intervals + EDGE
    }

    /// Where the ratios end and their intervals begin, in a picture of this width.
    pub(super) fn figures(&self, across: i32) -> (i32, i32) {
        let intervals = across - EDGE - self.intervals;
        (intervals - BETWEEN, intervals)
    }
}

fn widest(mut widths: impl Iterator<Item = Result<i32, String>>) -> Result<i32, String> {
    widths.try_fold(0, |widest, width| Ok(widest.max(width?)))
}
