//! The layout of the graph: sizes and positions of all its parts.

use plotters::style::RGBColor;

use super::axis::{self, Axis, IMIX_BITS};
use super::bars::{Bar, Chart};
use super::labels::{Labels, Lines};
use super::scene::{Align, Edges, HEIGHT, Scene, Shape, Text, WIDTH};
use super::text::{Breaks, SMALLEST, line_height, register, width, wrap};

const INK: RGBColor = RGBColor(0x33, 0x33, 0x33);
const FAINT: RGBColor = RGBColor(0x6b, 0x6b, 0x6b);
const AXIS: RGBColor = RGBColor(0x80, 0x80, 0x80);
const GRID: RGBColor = RGBColor(0xe2, 0xe2, 0xe2);
/// Readers with any colour vision can tell these apart, also in grey.
const FAMILIES: [RGBColor; 6] = [
    RGBColor(0x2f, 0x8f, 0x5b),
    RGBColor(0x4a, 0x6f, 0xc4),
    RGBColor(0xe0, 0x8a, 0x2c),
    RGBColor(0x9a, 0x5f, 0xb0),
    RGBColor(0xc4, 0x4e, 0x52),
    RGBColor(0x8c, 0x8c, 0x8c),
];

const TITLE: u32 = 46;
const LEGEND: u32 = 30;
const AXIS_LABEL: u32 = 28;
const TICK: u32 = 27;
const NOTE: u32 = 25;
/// Sizes to try for the figures above the bars, largest first.
const FIGURES: [u32; 5] = [31, 28, 25, 22, 19];
/// Room for the figure above the highest bar.
const HEADROOM: f64 = 1.09;

const EDGE: i32 = 28;
const BETWEEN_LABELS: i32 = 16;
const AXIS_ROOM: i32 = 190;
const WIDEST_BAR: i32 = 230;
/// Fraction of a group's slot that its bars fill.
const BARS: (i32, i32) = (7, 10);
/// The least height of the plot; the picture grows if its texts leave less.
const LOWEST_PLOT: i32 = 480;
const SWATCH: i32 = 28;
const AFTER_SWATCH: i32 = 12;
const BETWEEN_NAMES: i32 = 48;

pub(super) fn layout(chart: &Chart) -> Result<Scene, String> {
    register()?;
    let texts: Vec<&str> = chart.groups.iter().map(|group| group.label.as_str()).collect();
    let groups = texts.len().max(1) as i32;
    let sides = AXIS_ROOM + right_margin(chart);
    let widest = [WIDTH, sides + groups * chart.narrowest_slot()?, chart.widest_name()? + 2 * EDGE];
    let whole = widest.into_iter().fold(0, i32::max);
    let labels = Labels::set(&texts, (whole - sides) / groups - BETWEEN_LABELS)?;
    let whole = whole.max(sides + groups * (labels.width() + BETWEEN_LABELS));
    let set = |text: &str, size| {
        Ok::<_, String>(Lines { lines: wrap(text, size, whole - 2 * EDGE, Breaks::Spaces)?, size })
    };
    let (title, notes) = (set(&chart.title, TITLE)?, set(&chart.notes, NOTE)?);
    let scene = Scene { width: whole, height: HEIGHT, shapes: Vec::new(), texts: Vec::new() };
    let mut page = Page { scene, chart, plot: (AXIS_ROOM, 0, whole - right_margin(chart), 0) };
    page.plot.1 = page.head(&title)?;
    let below = EDGE / 2 + labels.height() + 2 * EDGE / 3 + notes.height() + EDGE;
    page.scene.height = HEIGHT.max(page.plot.1 + chart.lowest_plot()? + below);
    page.plot.3 = page.scene.height - below;
    page.foot(&labels, &notes);
    let axis = Axis::reaching(chart.largest() * HEADROOM);
    page.grid(&axis)?;
    page.bars(&axis)?;
    page.ground();
    Ok(page.scene)
}

fn right_margin(chart: &Chart) -> i32 {
    if chart.imix_axis { AXIS_ROOM } else { 2 * EDGE }
}

impl Chart {
    /// Width of a group whose figures above the bars have the smallest size.
    fn narrowest_slot(&self) -> Result<i32, String> {
        let figures = self.bars().map(|bar| width(&axis::measured(bar.median), SMALLEST));
        let widest = figures.collect::<Result<Vec<_>, _>>()?.into_iter().fold(0, i32::max);
        // One more pixel per bar for the remainder of the division.
        Ok((widest + 1) * self.families.len() as i32 * BARS.1 / BARS.0 + 1)
    }

    /// Width of the widest entry of the legend.
    fn widest_name(&self) -> Result<i32, String> {
        let names = self.families.iter().map(|name| width(name, LEGEND));
        let widest = names.collect::<Result<Vec<_>, _>>()?.into_iter().fold(0, i32::max);
        Ok(SWATCH + AFTER_SWATCH + widest)
    }

    /// The least height of the plot, which has room for the upright texts beside it.
    fn lowest_plot(&self) -> Result<i32, String> {
        Ok(LOWEST_PLOT.max(width(&self.y_label, SMALLEST)?).max(width(&self.y_detail, SMALLEST)?))
    }
}

/// The picture during its layout.
struct Page<'a> {
    scene: Scene,
    chart: &'a Chart,
    /// The area between the axes.
    plot: Edges,
}

impl Page<'_> {
    fn text(&mut self, text: &str, x: i32, y: i32, size: u32, align: Align) {
        let text = Text { text: text.into(), x, y, size, colour: INK, align, upright: false };
        self.scene.texts.push(text);
    }

    fn line(&mut self, from: (i32, i32), to: (i32, i32), colour: RGBColor, width: i32) {
        self.scene.shapes.push(Shape::Line { from, to, colour, width });
    }

    /// Adds the lines of an axis label beside the middle of the plot, no longer than its height if possible.
    fn beside(&mut self, lines: &[&str], x: i32) -> Result<(), String> {
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

    fn upright(&mut self, text: &str, x: i32, y: i32, size: u32) {
        let align = Align::Middle;
        self.scene.texts.push(Text { text: text.into(), x, y, size, colour: INK, align, upright: true });
    }

    fn stack(&mut self, block: &Lines, x: i32, top: i32, colour: RGBColor) {
        for (row, line) in (0..).zip(&block.lines) {
            self.text(line, x, top + row * line_height(block.size), block.size, Align::Middle);
            if let Some(last) = self.scene.texts.last_mut() {
                last.colour = colour;
            }
        }
    }

    /// Adds title and legend; returns the top of the plot.
    fn head(&mut self, title: &Lines) -> Result<i32, String> {
        self.stack(title, self.scene.width / 2, EDGE, INK);
        // The label of the uppermost mark is half a line above the plot.
        let gap = line_height(TICK) / 2 + 4;
        let below = EDGE + title.height() + gap;
        if self.chart.families.len() < 2 {
            return Ok(below);
        }
        Ok(self.legend(below)? + gap)
    }

    /// Adds centred rows of names above the plot, where they overlap nothing; returns their lower edge.
    fn legend(&mut self, mut top: i32) -> Result<i32, String> {
        let coloured = self.chart.families.iter().zip(FAMILIES.into_iter().cycle());
        let mut rows: Vec<Vec<(&str, i32, RGBColor)>> = vec![Vec::new()];
        for (name, colour) in coloured {
            let wide = width(name, LEGEND)?;
            let last = rows.len() - 1;
            if !rows[last].is_empty()
                && row_width(&rows[last]) + BETWEEN_NAMES + SWATCH + AFTER_SWATCH + wide > self.whole()
            {
                rows.push(vec![(name, wide, colour)]);
            } else {
                rows[last].push((name, wide, colour));
            }
        }
        for row in rows {
            self.legend_row(&row, top);
            top += line_height(LEGEND);
        }
        Ok(top)
    }

    fn legend_row(&mut self, row: &[(&str, i32, RGBColor)], top: i32) {
        let mut x = (self.scene.width - row_width(row)) / 2;
        for (name, wide, colour) in row {
            let middle = top + line_height(LEGEND) / 2;
            let edges = (x, middle - SWATCH / 2, x + SWATCH, middle + SWATCH / 2);
            self.scene.shapes.push(Shape::Box { edges, colour: *colour });
            self.text(name, x + SWATCH + AFTER_SWATCH, top, LEGEND, Align::Left);
            x += SWATCH + AFTER_SWATCH + wide + BETWEEN_NAMES;
        }
    }

    fn whole(&self) -> i32 {
        self.scene.width - 2 * EDGE
    }

    fn slot(&self) -> i32 {
        let (left, _, right, _) = self.plot;
        (right - left) / (self.chart.groups.len().max(1) as i32)
    }

    fn middle(&self, group: usize) -> i32 {
        self.plot.0 + self.slot() * group as i32 + self.slot() / 2
    }

    fn foot(&mut self, labels: &Labels, notes: &Lines) {
        let below = self.plot.3 + EDGE / 2;
        match labels {
            Labels::Level(labels) => {
                for (group, label) in labels.iter().enumerate() {
                    self.stack(label, self.middle(group), below, INK);
                }
            }
            Labels::Upright { labels, length } => {
                for (group, label) in labels.iter().enumerate() {
                    self.upright_stack(label, self.middle(group), below + length / 2);
                }
            }
        }
        self.stack(notes, self.scene.width / 2, self.scene.height - EDGE - notes.height(), FAINT);
    }

    /// Adds lines that read from bottom to top, the first on the left, centred at a point.
    fn upright_stack(&mut self, block: &Lines, x: i32, y: i32) {
        let first = x - (block.height() - line_height(block.size)) / 2;
        for (row, line) in (0..).zip(&block.lines) {
            self.upright(line, first + row * line_height(block.size), y, block.size);
        }
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

    fn imix_axis(&mut self, axis: &Axis) -> Result<(), String> {
        let (_, top, right, bottom) = self.plot;
        for mark in axis.marks() {
            let y = height_of(self.plot, mark / axis.top);
            self.line((right, y), (right + 8, y), AXIS, 2);
            self.text(&bits_per_second(mark), right + 16, y - line_height(TICK) / 2, TICK, Align::Left);
        }
        self.line((right, top), (right, bottom), AXIS, 2);
        self.beside(
            &["Theoretical Ethernet throughput with simple IMIX"],
            self.scene.width - EDGE - AXIS_LABEL as i32 / 2,
        )
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
            for (family, bar) in bars.bars.iter().enumerate() {
                let place = BarPlace { left: first + wide * family as i32, wide, size };
                let colour = FAMILIES[family % FAMILIES.len()];
                match bar {
                    Some(bar) => self.bar(bar, axis, &place, colour),
                    None => self.missing(&place)?,
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

    fn bar(&mut self, bar: &Bar, axis: &Axis, place: &BarPlace, colour: RGBColor) {
        let y = |value: f64| height_of(self.plot, value / axis.top);
        let (low, top, high) = (y(bar.min), y(bar.median), y(bar.max));
        let (left, right) = (place.left + 3, place.left + place.wide - 3);
        let (middle, reach) = (place.middle(), (place.wide / 8).clamp(2, 14));
        self.scene.shapes.push(Shape::Box { edges: (left, top, right, self.plot.3), colour });
        self.line((middle, low), (middle, high), INK, 2);
        for end in [low, high] {
            self.line((middle - reach, end), (middle + reach, end), INK, 2);
        }
        if let Some(size) = place.size {
            self.text(&axis::measured(bar.median), middle, high - line_height(size) - 6, size, Align::Middle);
        }
    }

    /// Marks the place of a bar that is missing.
    fn missing(&mut self, place: &BarPlace) -> Result<(), String> {
        let text = "no valid run";
        if line_height(SMALLEST) <= place.wide {
            let middle = self.plot.3 - EDGE - width(text, SMALLEST)? / 2;
            self.upright(text, place.middle(), middle, SMALLEST);
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

/// Width of a row of the legend.
fn row_width(row: &[(&str, i32, RGBColor)]) -> i32 {
    let entries = row.iter().map(|(_, wide, _)| SWATCH + AFTER_SWATCH + wide + BETWEEN_NAMES);
    entries.sum::<i32>() - BETWEEN_NAMES
}

fn bits_per_second(rate: f64) -> String {
    let text = axis::mark(rate);
    let figure = text.trim_end_matches(char::is_alphabetic);
    if rate == 0.0 { text } else { format!("{figure} {}b/s", &text[figure.len()..]) }
}

fn height_of((_, top, _, bottom): Edges, share: f64) -> i32 {
    bottom - (f64::from(bottom - top) * share).round() as i32
}
