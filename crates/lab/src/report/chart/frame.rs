//! What surrounds the plot of curves or of ratios: title, legend, labels of the axes, and notes.

use plotters::style::RGBColor;

use super::labels::TextBlock;
use super::legend::{add_names, widest};
use super::page::{AXIS_LABEL, EDGE, LOWEST_PLOT, Mark, TICK};
use super::scene::{Align, Edges, HEIGHT, INK, Scene, Shape, Text, WIDTH};
use super::text::{Breaks, line_height, register, width, wrap};

pub(super) const AXIS: RGBColor = RGBColor(0x80, 0x80, 0x80);
pub(super) const GRID: RGBColor = RGBColor(0xe2, 0xe2, 0xe2);
pub(super) const TITLE: u32 = 46;
pub(super) const NOTE: u32 = 25;
const AXIS_ROOM: i32 = 190;
/// From the lower axis to its figures, which have to be below the lowest figure of the left axis.
pub(super) const BELOW_AXIS: i32 = 17;

/// The texts around curves.
#[derive(Debug, Clone, PartialEq)]
pub struct CurveTexts {
    pub title: String,
    /// What the left axis counts.
    pub y_label: String,
    /// What the lower axis counts.
    pub x_label: String,
    /// The text under the graph: the conditions.
    pub notes: String,
}

impl CurveTexts {
    /// The picture with these texts and the names of the curves, as large as they need, and the area of the plot, which ends
    /// `margin` before its right edge.
    pub(super) fn scene<'n>(
        &self,
        names: impl Iterator<Item = &'n str>,
        margin: i32,
    ) -> Result<(Scene, Edges), String> {
        register()?;
        let names: Vec<(&str, Mark)> = names.zip(Mark::all()).collect();
        let across = WIDTH.max(widest(&names)? + 2 * EDGE);
        let set = |text, size| {
            let lines = wrap(text, size, across - 2 * EDGE, Breaks::Spaces)?;
            Ok::<_, String>(TextBlock { lines, size })
        };
        let mut scene = Scene::new(across, &self.title, &self.notes);
        let below_title = stack(&mut scene, &set(&self.title, TITLE)?, EDGE) + EDGE / 2;
        let top = add_names(&mut scene, &names, below_title)? + line_height(TICK);
        let (label, notes) = (set(&self.x_label, AXIS_LABEL)?, set(&self.notes, NOTE)?);
        let ticks = BELOW_AXIS + line_height(TICK) + 4;
        let below = ticks + label.height() + EDGE / 2 + notes.height() + EDGE;
        let lowest = LOWEST_PLOT.max(width(&self.y_label, AXIS_LABEL)?);
        scene.height = HEIGHT.max(top + lowest + below);
        let bottom = scene.height - below;
        stack(&mut scene, &label, bottom + ticks);
        let below_notes = scene.height - EDGE;
        stack(&mut scene, &notes, below_notes - notes.height());
        left_label(&mut scene, &self.y_label, (top + bottom) / 2);
        Ok((scene, (AXIS_ROOM, top, across - margin, bottom)))
    }
}

/// Adds the figures of the left axis at these heights, with a line of the grid each.
pub(super) fn left_axis(
    scene: &mut Scene,
    (left, _, right, _): Edges,
    marks: impl Iterator<Item = (i32, String)>,
) {
    for (y, figure) in marks {
        scene.shapes.push(Shape::Line { from: (left, y), to: (right, y), colour: GRID, width: 1 });
        scene.text(&figure, (left - 14, y - line_height(TICK) / 2), TICK, Align::Right);
    }
}

/// Adds the lines of both axes, over the grid.
pub(super) fn axis_lines(scene: &mut Scene, (left, top, right, bottom): Edges) {
    for to in [(left, top), (right, bottom)] {
        scene.shapes.push(Shape::Line { from: (left, bottom), to, colour: AXIS, width: 2 });
    }
}

/// Adds the label of the left axis, upright, around this height.
fn left_label(scene: &mut Scene, text: &str, y: i32) {
    let (text, x) = (text.to_owned(), EDGE + AXIS_LABEL as i32 / 2);
    scene.texts.push(Text { text, x, y, size: AXIS_LABEL, colour: INK, align: Align::Middle, upright: true });
}

/// Adds lines in the middle of the picture; returns their lower edge.
pub(super) fn stack(scene: &mut Scene, block: &TextBlock, top: i32) -> i32 {
    stack_around(scene, block, scene.width / 2, top)
}

/// Adds lines centred at a place; returns their lower edge.
pub(super) fn stack_around(scene: &mut Scene, block: &TextBlock, x: i32, top: i32) -> i32 {
    for (row, line) in (0..).zip(&block.lines) {
        scene.text(line, (x, top + row * line_height(block.size)), block.size, Align::Middle);
    }
    top + block.height()
}
