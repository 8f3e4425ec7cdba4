//! The plot: its axes and its bars.

use plotters::style::RGBColor;

use super::axis::{self, Axis, IMIX_BITS};
use super::bars::{Bar, Chart};
use super::page::{AXIS_LABEL, EDGE, Mark, Page, TICK, pale};
use super::scene::{Align, Edges, INK, Shape};
use super::text::{SMALLEST, line_height, width};

const AXIS: RGBColor = RGBColor(0x80, 0x80, 0x80);
const GRID: RGBColor = RGBColor(0xe2, 0xe2, 0xe2);
/// Sizes to try for the figures above the bars, largest first.
const FIGURES: [u32; 5] = [31, 28, 25, 22, SMALLEST];
/// Room for the figure above the highest bar.
const HEADROOM: f64 = 1.09;
const WIDEST_BAR: i32 = 230;
/// Number and height of the stripes at the end of an extension that does not fit.
const STRIPES: i32 = 3;
const STRIPE: i32 = 8;
/// Fraction of a group's slot that its bars fill.
const BARS: (i32, i32) = (7, 10);

/// Returns the width of a group whose figures above the bars have the smallest size.
pub(super) fn narrowest_slot(chart: &Chart) -> Result<i32, String> {
    let figures = chart.bars().map(|bar| width(&axis::measured(bar.median), SMALLEST));
    let widest = figures.collect::<Result<Vec<_>, _>>()?.into_iter().fold(0, i32::max);
    // One more pixel per bar for the remainder of the division.
    Ok((widest + 1) * chart.families.len() as i32 * BARS.1 / BARS.0 + 1)
}

impl Page<'_> {
    /// Adds axes and bars to the area of the plot.
    pub(super) fn add_plot(&mut self) -> Result<(), String> {
        let axis = Axis::reaching(self.chart.highest().max(self.chart.largest() * HEADROOM));
        self.grid(&axis)?;
        self.bars(&axis)?;
        self.ground();
        Ok(())
    }

    fn grid(&mut self, axis: &Axis) -> Result<(), String> {
        let (left, top, right, bottom) = self.plot;
        for mark in axis.marks() {
            let y = height_of(self.plot, mark / axis.top);
            self.line((left, y), (right, y), GRID, 1);
            self.text(&axis::mark(mark), left - 14, y - line_height(TICK) / 2, TICK, Align::Right);
        }
        self.line((left, top), (left, bottom), AXIS, 2);
        let label = [self.chart.y_label.as_str(), self.chart.y_detail.as_str()];
        self.beside(&label, EDGE + AXIS_LABEL as i32 / 2)?;
        if self.chart.imix_axis { self.imix_axis(&Axis::ending(axis.top * IMIX_BITS)) } else { Ok(()) }
    }

    /// Adds the right axis. Only the bars are throughputs, so that it ends above the highest of them.
    fn imix_axis(&mut self, axis: &Axis) -> Result<(), String> {
        let (_, top, right, bottom) = self.plot;
        let most = self.chart.largest() * IMIX_BITS * HEADROOM;
        let has_extensions = self.chart.extension.is_some();
        let end = if has_extensions { height_of(self.plot, (most / axis.top).min(1.0)) } else { top };
        for mark in axis.marks().into_iter().filter(|mark| *mark <= most || !has_extensions) {
            let y = height_of(self.plot, mark / axis.top);
            self.line((right, y), (right + 8, y), AXIS, 2);
            self.text(&bits_per_second(mark), right + 16, y - line_height(TICK) / 2, TICK, Align::Left);
        }
        self.line((right, end), (right, bottom), AXIS, 2);
        self.beside(&[self.chart.imix_label()], self.scene.width - EDGE - AXIS_LABEL as i32 / 2)
    }

    /// Adds the line under the bars; it is drawn after them.
    fn ground(&mut self) {
        let (left, _, right, bottom) = self.plot;
        self.line((left, bottom), (right, bottom), AXIS, 2);
    }

    fn bars(&mut self, axis: &Axis) -> Result<(), String> {
        let families = self.chart.families.len().max(1) as i32;
        let wide = (self.slot() * BARS.0 / BARS.1 / families).clamp(4, WIDEST_BAR);
        let size = self.figure_size(wide)?;
        for (group, bars) in self.chart.groups.iter().enumerate() {
            let first = self.middle(group) - wide * families / 2;
            for ((family, bar), mark) in (0..).zip(&bars.bars).zip(Mark::all()) {
                let place = BarPlace { left: first + wide * family, wide, size };
                match bar {
                    Ok(bar) => self.bar(bar, axis, &place, mark),
                    Err(reason) => self.missing(&place, reason)?,
                }
            }
        }
        Ok(())
    }

    /// The largest size in which every median fits above its bar; `None` if no size fits.
    fn figure_size(&self, wide: i32) -> Result<Option<u32>, String> {
        let figures: Vec<String> = self.chart.bars().map(|bar| axis::measured(bar.median)).collect();
        for size in FIGURES {
            let widths = figures.iter().map(|figure| width(figure, size)).collect::<Result<Vec<_>, _>>()?;
            if widths.into_iter().all(|width| width <= wide) {
                return Ok(Some(size));
            }
        }
        Ok(None)
    }

    fn bar(&mut self, bar: &Bar, axis: &Axis, place: &BarPlace, mark: Mark) {
        let y = |value: f64| height_of(self.plot, value / axis.top);
        let (low, top, high) = (y(bar.min), y(bar.median), y(bar.max));
        let (left, right) = (place.left + 3, place.left + place.wide - 3);
        let (middle, reach) = (place.middle(), (place.wide / 8).clamp(2, 14));
        if let Some(extension) = bar.extension {
            let end = y(extension.min(axis.top)).min(top);
            self.extension((left, end, right, top), extension > axis.top, pale(mark.colour));
        }
        self.scene.shapes.extend(mark.shapes((left, top, right, self.plot.3)));
        self.line((middle, low), (middle, high), INK, 2);
        for end in [low, high] {
            self.line((middle - reach, end), (middle + reach, end), INK, 2);
        }
        if let Some(size) = place.size {
            self.text(&axis::measured(bar.median), middle, high - line_height(size) - 6, size, Align::Middle);
        }
    }

    /// Adds the extension of a bar. One that does not fit ends in stripes.
    fn extension(&mut self, edges: Edges, is_cut: bool, colour: RGBColor) {
        let (left, top, right, bottom) = edges;
        let stripes = if is_cut { STRIPES.min((bottom - top) / (2 * STRIPE)) } else { 0 };
        let whole = top + 2 * STRIPE * stripes;
        let of_stripe = |stripe| (left, top + 2 * STRIPE * stripe, right, top + 2 * STRIPE * stripe + STRIPE);
        let boxes = (0..stripes).map(of_stripe).chain([(left, whole, right, bottom)]);
        self.scene.shapes.extend(boxes.map(|edges| Shape::Box { edges, colour }));
    }

    /// Marks the place of a bar that is missing.
    fn missing(&mut self, place: &BarPlace, reason: &str) -> Result<(), String> {
        if line_height(SMALLEST) <= place.wide {
            let middle = self.plot.3 - EDGE - width(reason, SMALLEST)? / 2;
            self.upright(reason, place.middle(), middle, SMALLEST);
        } else {
            let (middle, bottom, reach) = (place.middle(), self.plot.3 - 10, place.wide / 3);
            self.line((middle - reach, bottom - 2 * reach), (middle + reach, bottom), INK, 1);
            self.line((middle + reach, bottom - 2 * reach), (middle - reach, bottom), INK, 1);
        }
        Ok(())
    }
}

/// The position and width of one bar.
struct BarPlace {
    left: i32,
    wide: i32,
    /// Size of the figure above the bar, if there is room for it.
    size: Option<u32>,
}

impl BarPlace {
    fn middle(&self) -> i32 {
        self.left + self.wide / 2
    }
}

fn bits_per_second(rate: f64) -> String {
    let text = axis::mark(rate);
    let figure = text.trim_end_matches(char::is_alphabetic);
    if rate == 0.0 { text } else { format!("{figure} {}b/s", &text[figure.len()..]) }
}

fn height_of((_, top, _, bottom): Edges, share: f64) -> i32 {
    bottom - (f64::from(bottom - top) * share).round() as i32
}
