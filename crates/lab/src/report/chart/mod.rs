//! The graph: bars of medians with whiskers from minimum to maximum, the families of a variant side by side.
//!
//! [`layout`](layout::layout) turns the figures into a [`Scene`] of rectangles, lines and texts. The scene is drawn as
//! SVG and as PNG, so that both have the same content and a test can check the box of every text.
//!
//! [`Curves`] are a second graph, of points along an axis; [`Distributions`] a third, of shares of values; a [`Forest`] a
//! fourth, of ratios with their intervals.

mod axis;
mod bars;
mod curves;
mod distributions;
mod forest;
mod forest_columns;
mod forest_layout;
mod forest_plot;
mod forest_rows;
mod frame;
mod labels;
mod layout;
mod legend;
mod page;
mod plot;
mod ratio_axis;
mod ratio_scale;
mod scene;
mod text;
mod verdict_mark;

pub use bars::{Bar, Chart, Group};
pub use curves::{Curve, Curves};
pub use distributions::{Distribution, Distributions};
pub use forest::{Forest, ForestGroup, ForestRow, RatioInterval};
pub use frame::CurveTexts;
use scene::Scene;

impl Chart {
    fn scene(&self) -> Result<Scene, String> {
        layout::layout(self)
    }

    /// Draws the graph as an SVG document.
    pub fn svg(&self) -> Result<String, String> {
        self.scene()?.svg()
    }

    /// Draws the graph as a PNG file.
    pub fn png(&self) -> Result<Vec<u8>, String> {
        self.scene()?.png()
    }
}

impl Forest {
    fn scene(&self) -> Result<Scene, String> {
        forest_layout::scene(self)
    }

    /// Draws the graph as an SVG document.
    pub fn svg(&self) -> Result<String, String> {
        self.scene()?.svg()
    }

    /// Draws the graph as a PNG file.
    pub fn png(&self) -> Result<Vec<u8>, String> {
        self.scene()?.png()
    }
}

#[cfg(test)]
mod forest_tests;
#[cfg(test)]
mod tests;
