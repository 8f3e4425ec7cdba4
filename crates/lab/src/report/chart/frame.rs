//! What surrounds the plot of curves: title, legend, labels of the axes, and notes.

use plotters::style::RGBColor;

use super::labels::TextBlock;
use super::legend::{add_names, widest};
use super::page::{AXIS_LABEL, EDGE, LOWEST_PLOT, Mark, TICK};
use super::scene::{Align, Edges, HEIGHT, INK, Scene, Text, WIDTH};
use super::text::{Breaks, line_height, register, width, wrap};

pub(super) const AXIS: RGBColor = RGBColor(0x80, 0x80, 0x80);
pub(super) const GRID: RGBColor = RGBColor(0xe2, 0xe2, 0xe2);
const TITLE: u32 = 46;
const NOTE: u32 = 25;
const AXIS_ROOM: i32 = 190;
/// From the lower axis to its figures, which have to be below the lowest figure of the left axis.
pub(super) const BELOW_AXIS: i32 = 17;

/// The texts around the plot.
pub(super) struct CurveFrame<'c> {
    pub(super) title: &'c str,
    /// One for each curve.
    pub(super) names: Vec<&'c str>,
    pub(super) y_label: &'c str,
    pub(super) x_label: &'c str,
    pub(super) notes: &'c str,
}

impl CurveFrame<'_> {
    /// The picture with these texts, as large as they need, and the area of the plot, which ends `margin` before its right
    /// edge.
    pub(super) fn scene(&self, margin: i32) -> Result<(Scene, Edges), String> {
        register()?;
        let names: Vec<(&str, Mark)> = self.names.iter().copied().zip(Mark::all()).collect();
        let across = WIDTH.max(widest(&names)? + 2 * EDGE);
        let set = |text, size| {
            let lines = wrap(text, size, across - 2 * EDGE, Breaks::Spaces)?;
            Ok::<_, String>(TextBlock { lines, size })
        };
        let mut scene = Scene::new(across, self.title, self.notes);
        let below_title = stack(&mut scene, &set(self.title, TITLE)?, EDGE) + EDGE / 2;
        let top = add_names(&mut scene, &names, below_title)? + line_height(TICK);
        let (label, notes) = (set(self.x_label, AXIS_LABEL)?, set(self.notes, NOTE)?);
        let ticks = BELOW_AXIS + line_height(TICK) + 4;
        let below = ticks + label.height() + EDGE / 2 + notes.height() + EDGE;
        let lowest = LOWEST_PLOT.max(width(self.y_label, AXIS_LABEL)?);
        scene.height = HEIGHT.max(top + lowest + below);
        let bottom = scene.height - below;
        stack(&mut scene, &label, bottom + ticks);
        let below_notes = scene.height - EDGE;
        stack(&mut scene, &notes, below_notes - notes.height());
        left_label(&mut scene, self.y_label, (top + bottom) / 2);
        Ok((scene, (AXIS_ROOM, top, across - margin, bottom)))
    }
}

/// Adds the label of the left axis, upright, around this height.
fn left_label(scene: &mut Scene, text: &str, y: i32) {
    let (text, x) = (text.to_owned(), EDGE + AXIS_LABEL as i32 / 2);
    scene.texts.push(Text { text, x, y, size: AXIS_LABEL, colour: INK, align: Align::Middle, upright: true });
}

/// Adds centred lines; returns their lower edge.
fn stack(scene: &mut Scene, block: &TextBlock, top: i32) -> i32 {
    for (row, line) in (0..).zip(&block.lines) {
        let at = (scene.width / 2, top + row * line_height(block.size));
        scene.text(line, at, block.size, Align::Middle);
    }
    top + block.height()
}
