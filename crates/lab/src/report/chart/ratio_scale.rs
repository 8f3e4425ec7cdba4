//! Where ratios are on the picture.

use super::ratio_axis::RatioAxis;
use super::scene::Edges;

#[derive(Debug, Clone, Copy)]
pub(super) struct RatioScale {
    pub(super) plot: Edges,
    pub(super) axis: RatioAxis,
}

/// The end of an interval on the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RatioEnd {
    At(i32),
    /// The interval goes on beyond this edge of the plot.
    Beyond(i32),
}

impl RatioScale {
    /// The place of a ratio, at most at an edge of the plot.
    pub(super) fn x(&self, ratio: f64) -> i32 {
        let (RatioEnd::At(x) | RatioEnd::Beyond(x)) = self.end(ratio);
        x
    }

    pub(super) fn end(&self, ratio: f64) -> RatioEnd {
        let (left, _, right, _) = self.plot;
        match self.axis.place(ratio) {
            place if place < 0.0 => RatioEnd::Beyond(left),
            place if place > 1.0 => RatioEnd::Beyond(right),
            place => RatioEnd::At(left + (f64::from(right - left) * place).round() as i32),
        }
    }
}
