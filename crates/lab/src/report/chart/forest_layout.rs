//! The layout of a forest plot: the size of the picture and the positions of its parts.

use super::forest::{Forest, ForestGroup, ForestRow};
use super::forest_columns::{AGAINST, ForestColumns, HEADING, LABEL};
use super::forest_plot;
use super::forest_rows::{PlacedRow, draw};
use super::frame::{BELOW_AXIS, GRID, NOTE, TITLE, stack, stack_around};
use super::labels::TextBlock;
use super::legend::{add_names, widest};
use super::page::{AXIS_LABEL, EDGE, TICK};
use super::ratio_axis::RatioAxis;
use super::ratio_scale::RatioScale;
use super::scene::{Align, Scene, Shape, WIDTH};
use super::text::{Breaks, line_height, register, wrap};
use super::verdict_mark;

/// The least height of a row, and what its texts leave free of it.
const LOWEST_ROW: i32 = 52;
const FREE: i32 = 14;
const ABOVE_HEADING: i32 = 22;

/// Draws everything on a picture that is as large as its texts and rows need.
pub(super) fn scene(forest: &Forest) -> Result<Scene, String> {
    register()?;
    let (names, columns) = (verdict_mark::names(forest), ForestColumns::of(forest)?);
    let across = WIDTH.max(columns.least_width()).max(widest(&names)? + 2 * EDGE);
    let set_lines = |text, size| set(text, size, across - 2 * EDGE, Breaks::Spaces);
    let mut scene = Scene::new(across, &forest.title, &format!("{}: {}", forest.x_label, forest.notes));
    let below_title = stack(&mut scene, &set_lines(&forest.title, TITLE)?, EDGE) + EDGE / 2;
    let top = add_names(&mut scene, &names, below_title)? + EDGE / 2;
    let bottom = add_rows(&mut scene, forest, &columns, top)?;
    let (left, right) = (columns.plot_left(), across - columns.right_room());
    let label = set(&forest.x_label, AXIS_LABEL, right - left, Breaks::Spaces)?;
    let below_figures = bottom + BELOW_AXIS + line_height(TICK) + 4;
    let below_label = stack_around(&mut scene, &label, i32::midpoint(left, right), below_figures) + EDGE / 2;
    scene.height = stack(&mut scene, &set_lines(&forest.notes, NOTE)?, below_label) + EDGE;
    Ok(scene)
}

/// Adds the plot and what is beside it; returns the lower edge of the plot.
fn add_rows(scene: &mut Scene, forest: &Forest, columns: &ForestColumns, top: i32) -> Result<i32, String> {
    let mut below = top;
    let mut placed = Vec::new();
    for group in &forest.groups {
        if forest.has_headings() {
            below = add_heading(scene, group, columns, below)?;
        }
        for row in &group.rows {
            placed.push(place(row, columns, below)?);
            below = placed.last().map_or(below, |row| row.span.1);
        }
    }
    let axis = RatioAxis::of(forest.margin, &Vec::from_iter(forest.intervals()));
    let plot = (columns.plot_left(), top, scene.width - columns.right_room(), below);
    let scale = RatioScale { plot, axis };
    rules(scene, &placed);
    forest_plot::add(scene, &scale, forest.margin)?;
    let figures = columns.figures(scene.width);
    placed.iter().for_each(|row| draw(scene, &scale, row, figures));
    Ok(below)
}

/// Adds the title of a group; returns its lower edge.
fn add_heading(
    scene: &mut Scene,
    group: &ForestGroup,
    columns: &ForestColumns,
    top: i32,
) -> Result<i32, String> {
    let block = set(&group.title, HEADING, columns.labels, Breaks::Spaces)?;
    for (row, line) in (0..).zip(&block.lines) {
        scene.text(line, (EDGE, top + ABOVE_HEADING + row * line_height(HEADING)), HEADING, Align::Left);
    }
    Ok(top + ABOVE_HEADING + block.height())
}

fn place<'f>(row: &'f ForestRow, columns: &ForestColumns, top: i32) -> Result<PlacedRow<'f>, String> {
    let set = |text: &str, size| set(text, size, columns.labels, Breaks::Punctuation);
    let labels = [set(&row.label, LABEL)?, set(row.against.as_deref().unwrap_or_default(), AGAINST)?];
    let height = labels.iter().map(TextBlock::height).sum::<i32>() + FREE;
    Ok(PlacedRow { row, labels, span: (top, top + height.max(LOWEST_ROW)) })
}

/// Adds a line between rows, so that labels, intervals and figures are read together.
fn rules(scene: &mut Scene, rows: &[PlacedRow<'_>]) {
    let right = scene.width - EDGE;
    let rules = rows.iter().map(|row| row.span.1).map(|y| Shape::Line {
        from: (EDGE, y),
        to: (right, y),
        colour: GRID,
        width: 1,
    });
    scene.shapes.extend(rules);
}

fn set(text: &str, size: u32, room: i32, breaks: Breaks) -> Result<TextBlock, String> {
    Ok(TextBlock { lines: wrap(text, size, room, breaks)?, size })
}
