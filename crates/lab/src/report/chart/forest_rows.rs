//! The rows of a forest plot: labels, intervals and figures.

use plotters::style::RGBColor;

use super::forest::{ForestRow, RatioInterval};
use super::forest_columns::LABEL;
use super::labels::TextBlock;
use super::page::{EDGE, light};
use super::ratio_scale::{RatioEnd, RatioScale};
use super::scene::{Align, Edges, Scene, Shape};
use super::text::line_height;
use super::verdict_mark;

/// Half the side of the mark at a ratio.
pub(super) const POINT: i32 = 10;
/// The line of an interval, half the height of its ends, and the length of an arrow where it is cut.
pub(super) const INTERVAL: i32 = 4;
const END: i32 = 9;
const ARROW: i32 = 14;
/// The same of the share's interval, and how far it is below that of the whole loop.
pub(super) const SHARE: i32 = 3;
const SHARE_END: i32 = 5;
const BELOW: i32 = 18;
/// An end so near to its mark has no bar, which would spoil the form of the mark.
const HIDDEN: u32 = 13;

/// A row with its texts and its place.
pub(super) struct PlacedRow<'f> {
    pub(super) row: &'f ForestRow,
    /// The label, and what the variant is compared with.
    pub(super) labels: [TextBlock; 2],
    /// Upper and lower edge.
    pub(super) span: (i32, i32),
}

/// Adds a row, whose ratio ends and whose interval begins at these places.
pub(super) fn draw(scene: &mut Scene, scale: &RatioScale, placed: &PlacedRow<'_>, figures: (i32, i32)) {
    add_labels(scene, placed);
    let middle = placed.middle();
    let top = middle - line_height(LABEL) / 2;
    let [ratio, interval] = &placed.row.figures;
    scene.text(ratio, (figures.0, top), LABEL, Align::Right);
    scene.text(interval, (figures.1, top), LABEL, Align::Left);
    add_intervals(scene, scale, placed.row, middle);
}

fn add_labels(scene: &mut Scene, placed: &PlacedRow<'_>) {
    let height: i32 = placed.labels.iter().map(TextBlock::height).sum();
    let mut y = placed.middle() - height / 2;
    for block in &placed.labels {
        for line in &block.lines {
            scene.text(line, (EDGE, y), block.size, Align::Left);
            y += line_height(block.size);
        }
    }
}

fn add_intervals(scene: &mut Scene, scale: &RatioScale, row: &ForestRow, middle: i32) {
    let mark = verdict_mark::mark(row.verdict);
    let y = middle - if row.share.is_some() { BELOW / 2 } else { 0 };
    if let Some(share) = &row.share {
        let colour = light(mark.colour);
        Stroke { y: y + BELOW, width: SHARE, end: SHARE_END, colour }.draw(scene, scale, share);
        let edges = around((scale.x(share.estimate), y + BELOW), SHARE_END);
        scene.shapes.push(Shape::Box { edges, colour });
    }
    Stroke { y, width: INTERVAL, end: END, colour: mark.colour }.draw(scene, scale, &row.whole);
    let edges = around((scale.x(row.whole.estimate), y), POINT);
    scene.shapes.extend(mark.shapes(edges));
}

impl PlacedRow<'_> {
    fn middle(&self) -> i32 {
        i32::midpoint(self.span.0, self.span.1)
    }
}

/// How an interval is drawn.
struct Stroke {
    y: i32,
    width: i32,
    /// Half the height of its ends.
    end: i32,
    colour: RGBColor,
}

impl Stroke {
    fn draw(&self, scene: &mut Scene, scale: &RatioScale, interval: &RatioInterval) {
        let (low, high) = (scale.x(interval.low), scale.x(interval.high));
        self.line(scene, (low, self.y), (high, self.y));
        let point = scale.x(interval.estimate);
        for end in [interval.low, interval.high] {
            match scale.end(end) {
                RatioEnd::At(x) if x.abs_diff(point) > HIDDEN => self.bar(scene, x),
                RatioEnd::At(_) => {}
                RatioEnd::Beyond(x) => self.arrow(scene, x, (point - x).signum()),
            }
        }
    }

    fn bar(&self, scene: &mut Scene, x: i32) {
        self.line(scene, (x, self.y - self.end), (x, self.y + self.end));
    }

    /// Adds an arrow, whose foot is in this direction from its tip.
    fn arrow(&self, scene: &mut Scene, x: i32, inwards: i32) {
        let foot = x + inwards * ARROW;
        let corners = [(x, self.y), (foot, self.y - self.end), (foot, self.y + self.end)];
        scene.shapes.push(Shape::Triangle { corners, colour: self.colour });
    }

    fn line(&self, scene: &mut Scene, from: (i32, i32), to: (i32, i32)) {
        scene.shapes.push(Shape::Line { from, to, colour: self.colour, width: self.width });
    }
}

fn around((x, y): (i32, i32), half: i32) -> Edges {
    (x - half, y - half, x + half, y + half)
}
