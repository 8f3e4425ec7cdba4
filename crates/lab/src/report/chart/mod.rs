//! The graph: bars of medians with whiskers from minimum to maximum, the families of a variant side by side.
//!
//! [`layout`](layout::layout) turns the figures into a [`Scene`] of rectangles, lines and texts; the scene is then
//! drawn twice, as SVG and as PNG, so the two cannot disagree and a test can look at every text box.

mod axis;
mod labels;
mod layout;
mod scene;
mod text;

use scene::Scene;

/// What a graph shows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chart {
    /// Headline.
    pub(crate) title: String,
    /// What the left axis counts.
    pub(crate) y_label: String,
    /// What of it is shown, on a second line.
    pub(crate) y_detail: String,
    /// Words under the graph: the conditions.
    pub(crate) notes: String,
    /// What the bars of a group stand for, in order; a legend when there are several.
    pub(crate) families: Vec<String>,
    /// One group a variant.
    pub(crate) groups: Vec<Group>,
    /// Whether the right axis shows the rate as Ethernet throughput under simple IMIX.
    pub(crate) imix_axis: bool,
}

/// The bars of one variant.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Group {
    /// Stands under the bars.
    pub(crate) label: String,
    /// One entry a family; `None` where nothing valid was measured.
    pub(crate) bars: Vec<Option<Bar>>,
}

/// One bar and its whisker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bar {
    pub(crate) min: f64,
    pub(crate) median: f64,
    pub(crate) max: f64,
}

impl Chart {
    fn scene(&self) -> Result<Scene, String> {
        layout::layout(self)
    }

    /// The graph as an SVG document.
    pub(crate) fn svg(&self) -> Result<String, String> {
        self.scene()?.svg()
    }

    /// The graph as a PNG file.
    pub(crate) fn png(&self) -> Result<Vec<u8>, String> {
        self.scene()?.png()
    }
}

#[cfg(test)]
mod tests;
