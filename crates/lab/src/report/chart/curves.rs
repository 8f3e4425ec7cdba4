//! A graph of curves: medians along a logarithmic axis, with whiskers from minimum to maximum.

use plotters::style::RGBColor;

use super::axis::{self, Axis};
use super::bars::Bar;
use super::labels::TextBlock;
use super::legend::add_names;
use super::page::{AXIS_LABEL, EDGE, Mark, TICK};
use super::scene::{Align, Edges, HEIGHT, INK, Scene, Shape, Text, WIDTH};
use super::text::{Breaks, line_height, register, wrap};

pub(super) const AXIS: RGBColor = RGBColor(0x80, 0x80, 0x80);
pub(super) const GRID: RGBColor = RGBColor(0xe2, 0xe2, 0xe2);
pub(super) const TITLE: u32 = 46;
pub(super) const NOTE: u32 = 25;
pub(super) const AXIS_ROOM: i32 = 190;
/// Half the side of the square at a point, and half the width of a whisker's ends.
const POINT: i32 = 7;
/// The plot ends this much above the highest point, and at its sides this far from the first and the last one.
const HEADROOM: f64 = 1.05;
const BESIDE: i32 = 60;

/// The content of the graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Curves {
    pub title: String,
    /// What the left axis counts.
    pub y_label: String,
    /// What the lower axis counts.
    pub x_label: String,
    /// The text under the graph: the conditions.
    pub notes: String,
    pub curves: Vec<Curve>,
}

/// A line through points.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    pub name: String,
    /// Places on the lower axis, at least 1 and rising, with what was measured there.
    pub points: Vec<(u64, Bar)>,
}

/// Where values are on the picture.
struct Scales {
    plot: Edges,
    axis: Axis,
    /// Logarithms of the first and the last place.
    ends: (f64, f64),
}

impl Scales {
    fn x(&self, place: u64) -> i32 {
        let (left, _, right, _) = self.plot;
        let (first, last) = self.ends;
        let share = if last > first { ((place as f64).ln() - first) / (last - first) } else { 0.5 };
        left + BESIDE + (f64::from(right - left - 2 * BESIDE) * share).round() as i32
    }

    fn y(&self, value: f64) -> i32 {
        let (_, top, _, bottom) = self.plot;
        bottom - (f64::from(bottom - top) * value / self.axis.top).round() as i32
    }
}

impl Curves {
    /// Draws the graph as an SVG document.
    pub fn svg(&self) -> Result<String, String> {
        self.scene()?.svg()
    }

    /// Draws the graph as a PNG file.
    pub fn png(&self) -> Result<Vec<u8>, String> {
        self.scene()?.png()
    }

    pub(super) fn scene(&self) -> Result<Scene, String> {
        register()?;
        let mut scene = Scene { width: WIDTH, height: HEIGHT, shapes: Vec::new(), texts: Vec::new() };
        let top = self.head(&mut scene)?;
        let bottom = self.foot(&mut scene)?;
        let scales = self.scales((AXIS_ROOM, top, WIDTH - 2 * EDGE, bottom));
        self.axes(&mut scene, &scales);
        for (curve, mark) in self.curves.iter().zip(Mark::all()) {
            line(&mut scene, &scales, curve, mark);
        }
        Ok(scene)
    }

    /// Adds title and legend; returns the top of the plot.
    fn head(&self, scene: &mut Scene) -> Result<i32, String> {
        let below = stack(scene, &set(&self.title, TITLE)?, EDGE) + EDGE / 2;
        let names = self.curves.iter().map(|curve| curve.name.as_str());
        let names: Vec<(&str, Mark)> = names.zip(Mark::all()).collect();
        Ok(add_names(scene, &names, below)? + line_height(TICK))
    }

    /// Adds the notes; returns the bottom of the plot.
    fn foot(&self, scene: &mut Scene) -> Result<i32, String> {
        let notes = set(&self.notes, NOTE)?;
        let top = scene.height - EDGE - notes.height();
        stack(scene, &notes, top);
        let label = top - EDGE / 2 - line_height(AXIS_LABEL);
        scene.text(&self.x_label, (scene.width / 2, label), AXIS_LABEL, Align::Middle);
        Ok(label - line_height(TICK) - EDGE / 2)
    }

    fn scales(&self, plot: Edges) -> Scales {
        let points = || self.curves.iter().flat_map(|curve| &curve.points);
        let highest = points().map(|(_, bar)| bar.max).fold(0.0, f64::max);
        let places = || points().map(|(place, _)| (*place).max(1) as f64);
        let ends = (places().fold(f64::MAX, f64::min).ln(), places().fold(1.0, f64::max).ln());
        Scales { plot, axis: Axis::reaching(highest * HEADROOM), ends }
    }

    fn axes(&self, scene: &mut Scene, scales: &Scales) {
        let (left, top, right, bottom) = scales.plot;
        for mark in scales.axis.marks() {
            let y = scales.y(mark);
            scene.shapes.push(Shape::Line { from: (left, y), to: (right, y), colour: GRID, width: 1 });
            scene.text(&axis::mark(mark), (left - 14, y - line_height(TICK) / 2), TICK, Align::Right);
        }
        let mut places: Vec<u64> =
            self.curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.0)).collect();
        places.sort_unstable();
        places.dedup();
        for place in places {
            let x = scales.x(place);
            scene.shapes.push(Shape::Line { from: (x, bottom), to: (x, bottom + 8), colour: AXIS, width: 2 });
            scene.text(&axis::mark(place as f64), (x, bottom + 10), TICK, Align::Middle);
        }
        for to in [(left, top), (right, bottom)] {
            scene.shapes.push(Shape::Line { from: (left, bottom), to, colour: AXIS, width: 2 });
        }
        left_label(scene, &self.y_label, (top + bottom) / 2);
    }
}

/// Adds the label of the left axis, upright, around this height.
pub(super) fn left_label(scene: &mut Scene, text: &str, y: i32) {
    let (text, x) = (text.to_owned(), EDGE + AXIS_LABEL as i32 / 2);
    scene.texts.push(Text { text, x, y, size: AXIS_LABEL, colour: INK, align: Align::Middle, upright: true });
}

fn line(scene: &mut Scene, scales: &Scales, curve: &Curve, mark: Mark) {
    let colour = mark.colour;
    let mut before = None;
    for (place, bar) in &curve.points {
        let (x, y) = (scales.x(*place), scales.y(bar.median));
        let mut stroke = |from, to, width| scene.shapes.push(Shape::Line { from, to, colour, width });
        if let Some(before) = before {
            stroke(before, (x, y), 3);
        }
        let (low, high) = (scales.y(bar.min), scales.y(bar.max));
        stroke((x, low), (x, high), 2);
        for end in [low, high] {
            stroke((x - POINT, end), (x + POINT, end), 2);
        }
        before = Some((x, y));
    }
    for (place, bar) in &curve.points {
        let (x, y) = (scales.x(*place), scales.y(bar.median));
        scene.shapes.extend(mark.shapes((x - POINT, y - POINT, x + POINT, y + POINT)));
    }
}

pub(super) fn set(text: &str, size: u32) -> Result<TextBlock, String> {
    Ok(TextBlock { lines: wrap(text, size, WIDTH - 2 * EDGE, Breaks::Spaces)?, size })
}

/// Adds centred lines; returns their lower edge.
pub(super) fn stack(scene: &mut Scene, block: &TextBlock, top: i32) -> i32 {
    for (row, line) in (0..).zip(&block.lines) {
        let at = (scene.width / 2, top + row * line_height(block.size));
        scene.text(line, at, block.size, Align::Middle);
    }
    top + block.height()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(median: f64) -> Bar {
        Bar { min: median * 0.9, median, max: median * 1.1, extension: None }
    }

    fn drawn(points: Vec<(u64, Bar)>) -> Curves {
        let curve = |name: &str| Curve { name: name.into(), points: points.clone() };
        Curves {
            title: "A title".into(),
            y_label: "Packets per second".into(),
            x_label: "Rules".into(),
            notes: "conditions".into(),
            curves: vec![curve("one"), curve("other")],
        }
    }

    #[test]
    fn places_are_logarithmic_and_every_curve_has_a_line() {
        let curves = drawn(vec![(1, bar(9e6)), (100, bar(6e6)), (10_000, bar(3e6))]);
        let scene = curves.scene().unwrap();
        let points = scene.shapes.iter().filter_map(|shape| match shape {
            Shape::Box { edges: (left, top, right, bottom), .. } if right - left == 2 * POINT => {
                Some(((left + right) / 2, (top + bottom) / 2))
            }
            _ => None,
        });
        let points: Vec<(i32, i32)> = points.collect();
        assert_eq!(points.len(), 6, "three points of two curves");
        assert_eq!(points[1].0 - points[0].0, points[2].0 - points[1].0, "a hundred times as far each");
        assert!(points[0].1 < points[1].1 && points[1].1 < points[2].1, "lower rates are lower");
        assert!(points.iter().all(|(x, y)| (0..scene.width).contains(x) && (0..scene.height).contains(y)));
    }

    #[test]
    fn twice_as_many_curves_as_colours_can_be_told_apart() {
        let marks: Vec<Mark> = Mark::all().take(16).collect();
        for (at, mark) in marks.iter().enumerate() {
            assert!(!marks[..at].contains(mark), "{mark:?}");
            let shapes: Vec<Shape> = mark.shapes((0, 0, 2 * POINT, 2 * POINT)).collect();
            assert_eq!(shapes.len(), 1 + usize::from(at >= 8), "{shapes:?}");
        }
    }

    #[test]
    fn every_text_is_in_the_drawing_also_of_a_single_point() {
        let curves = drawn(vec![(64, bar(1e6))]);
        let svg = curves.svg().unwrap();
        for text in ["A title", "one", "other", "Rules", "64", "conditions"] {
            assert!(svg.contains(text), "{text}");
        }
        assert_eq!(curves.png().unwrap(), curves.png().unwrap());
    }
}
