//! The page on which the graph is laid out: the scene, the area of the plot, and ways to add texts and lines.

use plotters::style::{RGBColor, WHITE};

use super::bars::Chart;
use super::labels::TextBlock;
use super::scene::{Align, Edges, INK, Scene, Shape, Text};
use super::text::{SMALLEST, line_height, width};

const COLOURS: [RGBColor; 8] = [
    RGBColor(0x2f, 0x8f, 0x5b),
    RGBColor(0x4a, 0x6f, 0xc4),
    RGBColor(0xe0, 0x8a, 0x2c),
    RGBColor(0x9a, 0x5f, 0xb0),
    RGBColor(0xc4, 0x4e, 0x52),
    RGBColor(0x8c, 0x8c, 0x8c),
    RGBColor(0x8a, 0x5a, 0x3c),
    RGBColor(0x2b, 0xa3, 0xb5),
];

/// What stands for a name, in the legend and at the points of a graph.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Mark {
    pub(super) colour: RGBColor,
    pub(super) form: MarkForm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MarkForm {
    Square,
    HollowSquare,
    /// A triangle that points upwards.
    Up,
    /// A triangle that points downwards.
    Down,
}

impl Mark {
    pub(super) fn solid(colour: RGBColor) -> Mark {
        Mark { colour, form: MarkForm::Square }
    }

    /// Hollow squares follow the solid ones, so that twice as many names as there are colours can be told apart.
    pub(super) fn all() -> impl Iterator<Item = Mark> {
        let kind = |form| COLOURS.map(|colour| Mark { colour, form });
        [MarkForm::Square, MarkForm::HollowSquare].into_iter().flat_map(kind).cycle()
    }

    /// The shapes of a mark with these edges.
    pub(super) fn shapes(self, edges: Edges) -> impl Iterator<Item = Shape> {
        let ((left, top, right, bottom), colour) = (edges, self.colour);
        let middle = (left + right) / 2;
        let body = match self.form {
            MarkForm::Square | MarkForm::HollowSquare => Shape::Box { edges, colour },
            MarkForm::Up => {
                Shape::Triangle { corners: [(left, bottom), (middle, top), (right, bottom)], colour }
            }
            MarkForm::Down => {
                Shape::Triangle { corners: [(left, top), (middle, bottom), (right, top)], colour }
            }
        };
        let hole = self.hole(edges).map(|edges| Shape::Box { edges, colour: WHITE });
        [body].into_iter().chain(hole)
    }

    /// The edges of the hole in a hollow square that is large enough for one.
    fn hole(self, (left, top, right, bottom): Edges) -> Option<Edges> {
        let rim = ((right - left) / 4).max(2);
        let inner = (left + rim, top + rim, right - rim, bottom - rim);
        let has_hole = self.form == MarkForm::HollowSquare && inner.0 < inner.2 && inner.1 < inner.3;
        has_hole.then_some(inner)
    }
}

/// The colour of extensions in the legend, where it stands for those of all families.
pub(super) const PALE: RGBColor = RGBColor(0xd5, 0xd5, 0xd5);
pub(super) const AXIS_LABEL: u32 = 28;
pub(super) const TICK: u32 = 27;
/// Distance of texts from the edges of the picture.
pub(super) const EDGE: i32 = 28;

/// The least height of the plot; the picture grows if its texts leave less.
pub(super) const LOWEST_PLOT: i32 = 480;

/// A pale tint of a colour: dark text on it is readable.
pub(super) fn pale(colour: RGBColor) -> RGBColor {
    tint(colour, |part| part / 4 + 191)
}

/// A tint of a colour that is darker than any grid.
pub(super) fn light(colour: RGBColor) -> RGBColor {
    tint(colour, |part| part / 2 + 127)
}

fn tint(RGBColor(red, green, blue): RGBColor, part: fn(u8) -> u8) -> RGBColor {
    RGBColor(part(red), part(green), part(blue))
}

/// The picture during its layout.
pub(super) struct Page<'a> {
    pub(super) scene: Scene,
    pub(super) chart: &'a Chart,
    /// The area between the axes.
    pub(super) plot: Edges,
}

impl Page<'_> {
    pub(super) fn text(&mut self, text: &str, x: i32, y: i32, size: u32, align: Align) {
        self.scene.text(text, (x, y), size, align);
    }

    pub(super) fn line(&mut self, from: (i32, i32), to: (i32, i32), colour: RGBColor, width: i32) {
        self.scene.shapes.push(Shape::Line { from, to, colour, width });
    }

    /// Adds the lines of an axis label beside the middle of the plot, no longer than its height if possible.
    pub(super) fn beside(&mut self, lines: &[&str], x: i32) -> Result<(), String> {
        let (_, top, _, bottom) = self.plot;
        let mut size = AXIS_LABEL;
        for line in lines {
            while size > SMALLEST && width(line, size)? > bottom - top {
                size -= 1;
            }
        }
        for (row, line) in (0..).zip(lines) {
            self.upright(line, x + row * line_height(size), top + (bottom - top) / 2, size);
        }
        Ok(())
    }

    pub(super) fn upright(&mut self, text: &str, x: i32, y: i32, size: u32) {
        let align = Align::Middle;
        self.scene.texts.push(Text { text: text.into(), x, y, size, colour: INK, align, upright: true });
    }

    pub(super) fn stack(&mut self, block: &TextBlock, x: i32, top: i32, colour: RGBColor) {
        for (row, line) in (0..).zip(&block.lines) {
            self.text(line, x, top + row * line_height(block.size), block.size, Align::Middle);
            if let Some(last) = self.scene.texts.last_mut() {
                last.colour = colour;
            }
        }
    }

    /// Adds lines that read from bottom to top, the first on the left, centred at a point.
    pub(super) fn upright_stack(&mut self, block: &TextBlock, x: i32, y: i32) {
        let first = x - (block.height() - line_height(block.size)) / 2;
        for (row, line) in (0..).zip(&block.lines) {
            self.upright(line, first + row * line_height(block.size), y, block.size);
        }
    }

    pub(super) fn slot(&self) -> i32 {
        let (left, _, right, _) = self.plot;
        (right - left) / (self.chart.groups.len().max(1) as i32)
    }

    pub(super) fn middle(&self, group: usize) -> i32 {
        self.plot.0 + self.slot() * group as i32 + self.slot() / 2
    }
}
