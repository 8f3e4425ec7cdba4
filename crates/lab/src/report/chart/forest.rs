//! The content of a forest plot: ratios with their intervals, one row for each comparison.

use crate::stats::Verdict;

#[derive(Debug, Clone, PartialEq)]
pub struct Forest {
    pub title: String,
    /// What the ratios are of.
    pub x_label: String,
    /// The text under the graph: what the intervals mean, and the conditions.
    pub notes: String,
    /// The relative difference that does not matter.
    pub margin: f64,
    /// What the band of the margin is, and what the pale intervals are; for the legend.
    pub margin_label: String,
    pub share_label: String,
    pub groups: Vec<ForestGroup>,
}

/// The comparisons of one family. Several groups have their titles above them.
#[derive(Debug, Clone, PartialEq)]
pub struct ForestGroup {
    pub title: String,
    pub rows: Vec<ForestRow>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ForestRow {
    pub label: String,
    /// A second line of the label: what the variant is compared with, unless that is the same for all.
    pub against: Option<String>,
    /// The ratio and its interval as text.
    pub figures: [String; 2],
    pub whole: RatioInterval,
    /// The ratio in the subject's share of the loop.
    pub share: Option<RatioInterval>,
    pub verdict: Verdict,
}

/// A ratio above zero. Its interval may begin at zero and end nowhere.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatioInterval {
    pub estimate: f64,
    pub low: f64,
    pub high: f64,
}

impl Forest {
    /// Whether the groups have titles above them.
    pub(super) fn has_headings(&self) -> bool {
        self.groups.len() > 1
    }

    pub(super) fn headings(&self) -> impl Iterator<Item = &str> {
        let shown = if self.has_headings() { self.groups.as_slice() } else { &[] };
        shown.iter().map(|group| group.title.as_str())
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &ForestRow> {
        self.groups.iter().flat_map(|group| &group.rows)
    }

    /// All intervals that are drawn.
    pub(super) fn intervals(&self) -> impl Iterator<Item = RatioInterval> {
        self.rows().flat_map(|row| [Some(row.whole), row.share]).flatten()
    }
}
