//! A graph of distributions: on the lower axis the share of values that are not larger, ten times closer to all of them
//! at each mark; on the left axis the values, logarithmic. A value of nothing is at the lower edge.

use plotters::style::RGBColor;

use super::axis;
use super::curves::{AXIS, AXIS_ROOM, GRID, NOTE, TITLE, left_label, set, stack};
use super::legend::add_names;
use super::page::{AXIS_LABEL, EDGE, FAMILIES, Mark, TICK, pale};
use super::scene::{Align, Edges, HEIGHT, Scene, Shape, WIDTH};
use super::text::{line_height, register};

/// The least value that is not nothing.
const LEAST: f64 = 1e-3;
/// Marks of each power of ten.
const MARKS: [f64; 3] = [1.0, 2.0, 5.0];

/// The content of the graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Distributions {
    pub title: String,
    /// What the left axis counts.
    pub y_label: String,
    /// What the lower axis counts.
    pub x_label: String,
    /// The text under the graph: the conditions.
    pub notes: String,
    pub curves: Vec<Distribution>,
}

/// The curve of one distribution.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    pub name: String,
    /// Shares from 0, below 1 and rising, with the value that so many do not exceed.
    pub points: Vec<(f64, f64)>,
    /// What is drawn beside it in a pale tint of its colour; may be empty.
    pub reference: Vec<(f64, f64)>,
}

/// Where shares and values are on the picture.
struct DistributionScales {
    plot: Edges,
    /// The last mark of the lower axis: the share of larger values is a tenth to this power.
    nines: f64,
    /// Powers of ten at the ends of the left axis.
    ends: (f64, f64),
}

impl DistributionScales {
    fn x(&self, share: f64) -> i32 {
        let (left, _, right, _) = self.plot;
        let place = -(1.0 - share).log10() / self.nines;
        left + (f64::from(right - left) * place).round() as i32
    }

    fn y(&self, value: f64) -> i32 {
        let (_, top, _, bottom) = self.plot;
        let (low, high) = self.ends;
        bottom
            - (f64::from(bottom - top) * (value.max(LEAST).log10().max(low) - low) / (high - low)).round()
                as i32
    }

    /// The values that have a mark.
    fn marks(&self) -> Vec<f64> {
        let (low, high) = self.ends;
        let all = (low as i32..=high as i32).flat_map(|power| MARKS.map(|factor| factor * 10f64.powi(power)));
        all.filter(|value| value.log10() <= high + 1e-9).collect()
    }
}

impl Distributions {
    /// Draws the graph as an SVG document.
    pub fn svg(&self) -> Result<String, String> {
        self.scene()?.svg()
    }

    /// Draws the graph as a PNG file.
    pub fn png(&self) -> Result<Vec<u8>, String> {
        self.scene()?.png()
    }

    fn scene(&self) -> Result<Scene, String> {
        register()?;
        let mut scene = Scene { width: WIDTH, height: HEIGHT, shapes: Vec::new(), texts: Vec::new() };
        let top = self.head(&mut scene)?;
        let bottom = self.foot(&mut scene)?;
        let scales = self.scales((AXIS_ROOM, top, WIDTH - 3 * EDGE, bottom));
        self.axes(&mut scene, &scales);
        let coloured = || self.curves.iter().zip(FAMILIES.into_iter().cycle());
        for (curve, colour) in coloured() {
            line(&mut scene, &scales, &curve.reference, pale(colour), 2);
        }
        for (curve, colour) in coloured() {
            line(&mut scene, &scales, &curve.points, colour, 4);
        }
        Ok(scene)
    }

    /// Adds title and legend; returns the top of the plot.
    fn head(&self, scene: &mut Scene) -> Result<i32, String> {
        let below = stack(scene, &set(&self.title, TITLE)?, EDGE) + EDGE / 2;
        let names = self.curves.iter().map(|curve| curve.name.as_str());
        let names: Vec<(&str, Mark)> = names.zip(FAMILIES.into_iter().cycle().map(Mark::solid)).collect();
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

    fn scales(&self, plot: Edges) -> DistributionScales {
        let points = || self.curves.iter().flat_map(|curve| curve.points.iter().chain(&curve.reference));
        let values = || points().filter(|(_, value)| *value >= LEAST).map(|(_, value)| value.log10());
        let low = values().fold(f64::MAX, f64::min).floor();
        let high = values().fold(f64::MIN, f64::max).ceil().max(low + 1.0);
        let nines = points().map(|(share, _)| -(1.0 - share).log10()).fold(1.0, f64::max).ceil();
        DistributionScales { plot, nines, ends: if low < f64::MAX { (low, high) } else { (0.0, 1.0) } }
    }

    fn axes(&self, scene: &mut Scene, scales: &DistributionScales) {
        let (left, top, right, bottom) = scales.plot;
        for mark in scales.marks() {
            let y = scales.y(mark);
            scene.shapes.push(Shape::Line { from: (left, y), to: (right, y), colour: GRID, width: 1 });
            scene.text(&label(mark), (left - 14, y - line_height(TICK) / 2), TICK, Align::Right);
        }
        for nines in 0..=scales.nines as i32 {
            let x = scales.x(1.0 - 10f64.powi(-nines));
            scene.shapes.push(Shape::Line { from: (x, top), to: (x, bottom + 8), colour: GRID, width: 1 });
            scene.text(&share(nines), (x, bottom + 10), TICK, Align::Middle);
        }
        for to in [(left, top), (right, bottom)] {
            scene.shapes.push(Shape::Line { from: (left, bottom), to, colour: AXIS, width: 2 });
        }
        left_label(scene, &self.y_label, (top + bottom) / 2);
    }
}

/// A mark of the left axis, down to the least value.
fn label(mark: f64) -> String {
    if mark < 0.1 { format!("{mark:.3}").trim_end_matches('0').into() } else { axis::mark(mark) }
}

/// All but a tenth to this power, in percent.
fn share(nines: i32) -> String {
    let decimals = (nines - 2).max(0) as usize;
    format!("{:.decimals$} %", (1.0 - 10f64.powi(-nines)) * 100.0)
}

fn line(scene: &mut Scene, scales: &DistributionScales, points: &[(f64, f64)], colour: RGBColor, width: i32) {
    let places: Vec<(i32, i32)> =
        points.iter().map(|(share, value)| (scales.x(*share), scales.y(*value))).collect();
    let lines = places.windows(2).map(|pair| Shape::Line { from: pair[0], to: pair[1], colour, width });
    scene.shapes.extend(lines);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(curves: &[(&str, f64)]) -> Distributions {
        let points = |factor: f64| {
            (0..=30)
                .map(move |step| (1.0 - 10f64.powf(-f64::from(step) / 10.0), factor * f64::from(step + 1)))
        };
        let curve = |(name, factor): &(&str, f64)| Distribution {
            name: (*name).into(),
            points: points(*factor).collect(),
            reference: points(factor / 10.0).collect(),
        };
        Distributions {
            title: "A title".into(),
            y_label: "Microseconds".into(),
            x_label: "Share".into(),
            notes: "conditions".into(),
            curves: curves.iter().map(curve).collect(),
        }
    }

    #[test]
    fn marks_are_percentiles_and_powers_of_ten() {
        let svg = drawn(&[("one", 1.0), ("other", 20.0)]).svg().unwrap();
        for text in ["A title", "one", "other", "90 %", "99 %", "99.9 %", "100", "1k", "0.1", "conditions"] {
            assert!(svg.contains(text), "{text}");
        }
    }

    #[test]
    fn nothing_is_at_the_lower_edge_and_stretches_no_axis() {
        let mut drawing = drawn(&[("one", 0.01)]);
        drawing.curves[0].reference.clear();
        let before = drawing.scales((0, 0, 100, 100)).ends;
        drawing.curves[0].points[0].1 = 0.0;
        let scales = drawing.scales((0, 0, 100, 100));
        assert_eq!((before, scales.ends, scales.y(0.0)), ((-2.0, 0.0), (-2.0, 0.0), 100));
        assert_eq!([0.005, 0.02, 0.1, 5.0, 2e3].map(label), ["0.005", "0.02", "0.1", "5", "2k"]);
    }

    #[test]
    fn every_curve_has_a_colour_and_is_in_the_plot() {
        let scene = drawn(&[("one", 1.0), ("other", 20.0)]).scene().unwrap();
        let ends: Vec<(RGBColor, (i32, i32))> = scene
            .shapes
            .iter()
            .filter_map(|shape| match shape {
                Shape::Line { to, colour, width: 4, .. } => Some((*colour, *to)),
                _ => None,
            })
            .collect();
        assert_eq!(ends.len(), 60, "thirty lines of two curves");
        assert_ne!(ends[0].0, ends[59].0);
        assert!(ends[..30].is_sorted_by(|before, after| before.1.0 < after.1.0 && before.1.1 >= after.1.1));
        assert!(ends.iter().all(|(_, (x, y))| (0..scene.width).contains(x) && (0..scene.height).contains(y)));
    }

    #[test]
    fn no_curves_are_an_empty_graph() {
        assert!(drawn(&[]).svg().is_ok());
    }
}
