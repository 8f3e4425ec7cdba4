//! A graph of curves: medians along a logarithmic axis, with whiskers from minimum to maximum.

use std::collections::BTreeSet;

use super::axis::{self, Axis};
use super::bars::Bar;
use super::frame::{AXIS, BELOW_AXIS, CurveTexts, axis_lines, left_axis};
use super::page::{EDGE, Mark, TICK};
use super::scene::{Align, Edges, Scene, Shape};
use super::text::width;

/// Half the side of the square at a point, and half the width of a whisker's ends.
const POINT: i32 = 7;
/// The plot ends this much above the highest point, and at its sides this far from the first and the last one.
const HEADROOM: f64 = 1.05;
const BESIDE: i32 = 60;
/// Least distance of two figures on the lower axis.
const BETWEEN_FIGURES: i32 = 12;

/// The content of the graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Curves {
    pub texts: CurveTexts,
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
        let names = self.curves.iter().map(|curve| curve.name.as_str());
        let (mut scene, plot) = self.texts.scene(names, 2 * EDGE)?;
        let scales = self.scales(plot);
        self.axes(&mut scene, &scales)?;
        for (curve, mark) in self.curves.iter().zip(Mark::all()) {
            line(&mut scene, &scales, curve, mark);
        }
        Ok(scene)
    }

    fn scales(&self, plot: Edges) -> Scales {
        let points = || self.curves.iter().flat_map(|curve| &curve.points);
        let highest = points().map(|(_, bar)| bar.max).fold(0.0, f64::max);
        let places = || points().map(|(place, _)| (*place).max(1) as f64);
        let ends = (places().fold(f64::MAX, f64::min).ln(), places().fold(1.0, f64::max).ln());
        Scales { plot, axis: Axis::reaching(highest * HEADROOM), ends }
    }

    fn axes(&self, scene: &mut Scene, scales: &Scales) -> Result<(), String> {
        let marks = scales.axis.marks().into_iter().map(|mark| (scales.y(mark), axis::mark(mark)));
        left_axis(scene, scales.plot, marks);
        self.places(scene, scales)?;
        axis_lines(scene, scales.plot);
        Ok(())
    }

    /// Marks every place of a point, and names those whose figure does not touch the one before.
    fn places(&self, scene: &mut Scene, scales: &Scales) -> Result<(), String> {
        let (bottom, mut free) = (scales.plot.3, 0);
        let points = self.curves.iter().flat_map(|curve| &curve.points);
        for place in points.map(|(place, _)| *place).collect::<BTreeSet<u64>>() {
            let (x, figure) = (scales.x(place), axis::whole(place));
            scene.shapes.push(Shape::Line { from: (x, bottom), to: (x, bottom + 8), colour: AXIS, width: 2 });
            let half = width(&figure, TICK)? / 2 + 1;
            if x - half >= free {
                scene.text(&figure, (x, bottom + BELOW_AXIS), TICK, Align::Middle);
                free = x + half + BETWEEN_FIGURES;
            }
        }
        Ok(())
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(median: f64) -> Bar {
        Bar { min: median * 0.9, median, max: median * 1.1, extension: None }
    }

    fn drawn(points: Vec<(u64, Bar)>) -> Curves {
        let curve = |name: &str| Curve { name: name.into(), points: points.clone() };
        Curves {
            texts: CurveTexts {
                title: "A title".into(),
                y_label: "Packets per second".into(),
                x_label: "Rules".into(),
                notes: "conditions".into(),
            },
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
    fn places_that_are_near_have_one_figure() {
        let curves = drawn([60, 62, 64, 1514].map(|place| (place, bar(1e6))).into());
        let texts: Vec<String> = curves.scene().unwrap().texts.into_iter().map(|text| text.text).collect();
        let figures = ["60", "62", "64", "1514"].map(|figure| texts.iter().any(|text| text == figure));
        assert_eq!(figures, [true, false, false, true]);
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
