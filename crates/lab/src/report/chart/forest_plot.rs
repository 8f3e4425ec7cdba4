//! What is behind the rows of a forest plot: the band of the margin, the grid, the axis, and the line at 1.

use super::frame::{AXIS, BELOW_AXIS, GRID};
use super::page::TICK;
use super::ratio_scale::RatioScale;
use super::scene::{Align, INK, Scene, Shape};
use super::text::width;
use super::verdict_mark::BAND;

/// Least distance of two figures on the axis.
const BETWEEN_FIGURES: i32 = 12;
const TICK_LENGTH: i32 = 8;

pub(super) fn add(scene: &mut Scene, scale: &RatioScale, margin: f64) -> Result<(), String> {
    let (left, top, right, bottom) = scale.plot;
    if margin > 0.0 {
        let edges = (scale.x((1.0 - margin).max(0.0)), top, scale.x(1.0 + margin), bottom);
        scene.shapes.push(Shape::Box { edges, colour: BAND });
    }
    marks(scene, scale)?;
    let one = scale.x(1.0);
    scene.shapes.push(Shape::Line { from: (one, top), to: (one, bottom), colour: INK, width: 2 });
    scene.shapes.push(Shape::Line { from: (left, bottom), to: (right, bottom), colour: AXIS, width: 2 });
    Ok(())
}

/// Adds a line of the grid for each mark, and the figures that do not touch the one before.
fn marks(scene: &mut Scene, scale: &RatioScale) -> Result<(), String> {
    let ((_, top, _, bottom), mut free) = (scale.plot, 0);
    for (ratio, figure) in scale.axis.marks() {
        let x = scale.x(ratio);
        let to = (x, bottom + TICK_LENGTH);
        scene.shapes.push(Shape::Line { from: (x, top), to, colour: GRID, width: 1 });
        scene.shapes.push(Shape::Line { from: (x, bottom), to, colour: AXIS, width: 2 });
        let half = width(&figure, TICK)? / 2 + 1;
        if x - half >= free {
            scene.text(&figure, (x, bottom + BELOW_AXIS), TICK, Align::Middle);
            free = x + half + BETWEEN_FIGURES;
        }
    }
    Ok(())
}
