//! The layout of the graph: the size of the picture and the positions of its parts.

use plotters::style::RGBColor;

use super::bars::Chart;
use super::labels::{Labels, TextBlock};
use super::page::{EDGE, LOWEST_PLOT, Page, TICK};
use super::scene::{HEIGHT, INK, Scene, WIDTH};
use super::text::{Breaks, SMALLEST, line_height, register, width, wrap};
use super::{legend, plot};

const FAINT: RGBColor = RGBColor(0x6b, 0x6b, 0x6b);
const TITLE: u32 = 46;
const NOTE: u32 = 25;
const BETWEEN_LABELS: i32 = 16;
const AXIS_ROOM: i32 = 190;

pub(super) fn layout(chart: &Chart) -> Result<Scene, String> {
    register()?;
    let (whole, labels) = width_and_labels(chart)?;
    let set = |text: &str, size| {
        Ok::<_, String>(TextBlock { lines: wrap(text, size, whole - 2 * EDGE, Breaks::Spaces)?, size })
    };
    let (title, notes) = (set(&chart.title, TITLE)?, set(&chart.notes, NOTE)?);
    let scene = Scene::new(whole, &chart.title, &format!("{}: {}", chart.y_label, chart.notes));
    let mut page = Page { scene, chart, plot: (AXIS_ROOM, 0, whole - right_margin(chart), 0) };
    page.plot.1 = page.head(&title)?;
    let below = EDGE / 2 + labels.height() + 2 * EDGE / 3 + notes.height() + EDGE;
    page.scene.height = HEIGHT.max(page.plot.1 + lowest_plot(chart)? + below);
    page.plot.3 = page.scene.height - below;
    page.foot(&labels, &notes);
    page.add_plot()?;
    Ok(page.scene)
}

/// Returns the width of the picture, and the labels that fit it.
fn width_and_labels(chart: &Chart) -> Result<(i32, Labels), String> {
    let texts: Vec<&str> = chart.groups.iter().map(|group| group.label.as_str()).collect();
    let groups = texts.len().max(1) as i32;
    let sides = AXIS_ROOM + right_margin(chart);
    let widest =
        [WIDTH, sides + groups * plot::narrowest_slot(chart)?, legend::widest_entry(chart)? + 2 * EDGE];
    let whole = widest.into_iter().fold(0, i32::max);
    let labels = Labels::set(&texts, (whole - sides) / groups - BETWEEN_LABELS)?;
    Ok((whole.max(sides + groups * (labels.width() + BETWEEN_LABELS)), labels))
}

fn right_margin(chart: &Chart) -> i32 {
    if chart.imix_axis { AXIS_ROOM } else { 2 * EDGE }
}

/// Returns the least height of the plot, which has room for the upright texts beside it.
fn lowest_plot(chart: &Chart) -> Result<i32, String> {
    let right = if chart.imix_axis { chart.imix_label() } else { "" };
    let widths = [&chart.y_label, &chart.y_detail, right].map(|text| width(text, SMALLEST));
    widths.into_iter().try_fold(LOWEST_PLOT, |lowest, width| Ok(lowest.max(width?)))
}

impl Page<'_> {
    /// Adds title and legend; returns the top of the plot.
    fn head(&mut self, title: &TextBlock) -> Result<i32, String> {
        self.stack(title, self.scene.width / 2, EDGE, INK);
        // The label of the uppermost mark is half a line above the plot.
        let gap = line_height(TICK) / 2 + 4;
        let below = EDGE + title.height() + gap;
        if legend::is_empty(self.chart) {
            return Ok(below);
        }
        Ok(legend::add(self, below)? + gap)
    }

    fn foot(&mut self, labels: &Labels, notes: &TextBlock) {
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
}
