//! A graph of distributions: on the lower axis the share of values that are not larger, ten times closer to all of them
//! at each mark; on the left axis the values, logarithmic. A value of nothing is at the lower edge.

use plotters::style::RGBColor;

use super::axis;
use super::frame::{BELOW_AXIS, CurveTexts, GRID, axis_lines, left_axis};
use super::page::{EDGE, Mark, MarkForm, TICK, light};
use super::scene::{Align, Edges, Scene, Shape};
use super::text::line_height;

/// The least value that is not nothing.
const LEAST: f64 = 1e-3;
/// Marks of each power of ten, of which the first is enough where there is no room for all.
const MARKS: [f64; 3] = [1.0, 2.0, 5.0];
/// Half the side of a square on a curve, and the least distance of two.
const POINT: i32 = 8;
const BETWEEN_MARKS: i32 = 120;

/// The content of the graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Distributions {
    pub texts: CurveTexts,
    pub curves: Vec<Distribution>,
}

/// The curve of one distribution.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    pub name: String,
    /// Shares from 0, below 1 and rising, with the value that so many do not exceed.
    pub points: Vec<(f64, f64)>,
    /// What is drawn beside it in a light tint of its colour; may be empty.
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

    fn places(&self, points: &[(f64, f64)]) -> Vec<(i32, i32)> {
        points.iter().map(|(share, value)| (self.x(*share), self.y(*value))).collect()
    }

    /// The values that have a mark.
    fn marks(&self) -> Vec<f64> {
        let (low, high) = self.ends;
        let (_, top, _, bottom) = self.plot;
        let nearest = f64::from(bottom - top) / (high - low) * MARKS[1].log10();
        let shown = if nearest < f64::from(line_height(TICK)) { &MARKS[..1] } else { &MARKS };
        let powers = low as i32..=high as i32;
        let all = powers.flat_map(|power| shown.iter().map(move |factor| factor * 10f64.powi(power)));
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

    pub(super) fn scene(&self) -> Result<Scene, String> {
        let names = self.curves.iter().map(|curve| curve.name.as_str());
        let (mut scene, plot) = self.texts.scene(names, 3 * EDGE)?;
        let scales = self.scales(plot);
        axes(&mut scene, &scales);
        let marked = || self.curves.iter().zip(Mark::all());
        for (curve, mark) in marked() {
            line(&mut scene, &scales.places(&curve.reference), light(mark.colour), 2);
        }
        for (curve, mark) in marked() {
            let places = scales.places(&curve.points);
            line(&mut scene, &places, mark.colour, 4);
            add_marks(&mut scene, &places, mark);
        }
        Ok(scene)
    }

    fn scales(&self, plot: Edges) -> DistributionScales {
        let points = || self.curves.iter().flat_map(|curve| curve.points.iter().chain(&curve.reference));
        let values = || points().filter(|(_, value)| *value >= LEAST).map(|(_, value)| value.log10());
        let low = values().fold(f64::MAX, f64::min).floor();
        let high = values().fold(f64::MIN, f64::max).ceil().max(low + 1.0);
        let nines = points().map(|(share, _)| -(1.0 - share).log10()).fold(1.0, f64::max).ceil();
        DistributionScales { plot, nines, ends: if low < f64::MAX { (low, high) } else { (0.0, 1.0) } }
    }
}

fn axes(scene: &mut Scene, scales: &DistributionScales) {
    let marks = scales.marks().into_iter().map(|mark| (scales.y(mark), label(mark)));
    left_axis(scene, scales.plot, marks);
    let (_, top, _, bottom) = scales.plot;
    for nines in 0..=scales.nines as i32 {
        let x = scales.x(1.0 - 10f64.powi(-nines));
        scene.shapes.push(Shape::Line { from: (x, top), to: (x, bottom + 8), colour: GRID, width: 1 });
        scene.text(&share(nines), (x, bottom + BELOW_AXIS), TICK, Align::Middle);
    }
    axis_lines(scene, scales.plot);
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

fn line(scene: &mut Scene, places: &[(i32, i32)], colour: RGBColor, width: i32) {
    let lines = places.windows(2).map(|pair| Shape::Line { from: pair[0], to: pair[1], colour, width });
    scene.shapes.extend(lines);
}

/// Adds squares to a curve that its colour does not name, and to one of a single point, which has no line.
fn add_marks(scene: &mut Scene, places: &[(i32, i32)], mark: Mark) {
    let mut next = i32::MIN;
    for (x, y) in places.iter().copied().filter(|_| mark.form == MarkForm::HollowSquare || places.len() == 1)
    {
        if x >= next {
            scene.shapes.extend(mark.shapes((x - POINT, y - POINT, x + POINT, y + POINT)));
            next = x + BETWEEN_MARKS;
        }
    }
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
            texts: CurveTexts {
                title: "A title".into(),
                y_label: "Microseconds".into(),
                x_label: "Share".into(),
                notes: "conditions".into(),
            },
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

    fn squares(scene: &Scene) -> usize {
        scene
            .shapes
            .iter()
            .filter(|shape| matches!(shape, Shape::Box { edges, .. } if edges.2 - edges.0 == 2 * POINT))
            .count()
    }

    #[test]
    fn a_single_point_is_drawn() {
        let mut drawing = drawn(&[("one", 1.0)]);
        assert_eq!(squares(&drawing.scene().unwrap()), 0);
        drawing.curves[0].points.truncate(1);
        assert_eq!(squares(&drawing.scene().unwrap()), 1);
    }

    #[test]
    fn curves_beyond_the_colours_have_squares() {
        assert_eq!(squares(&drawn(&[("one", 1.0); 8]).scene().unwrap()), 0);
        assert!(squares(&drawn(&[("one", 1.0); 9]).scene().unwrap()) > 5);
    }

    #[test]
    fn a_reference_is_no_line_of_the_grid() {
        for mark in Mark::all().take(8) {
            let RGBColor(red, green, blue) = light(mark.colour);
            assert!([red, green, blue].into_iter().min().unwrap() + 20 < GRID.0, "{mark:?}");
        }
    }

    #[test]
    fn no_curves_are_an_empty_graph() {
        assert!(drawn(&[]).svg().is_ok());
    }
}
