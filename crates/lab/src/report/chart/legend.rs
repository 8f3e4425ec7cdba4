//! The legend above the plot: a square and a name for each family, and for the extensions of the bars.

use super::bars::Chart;
use super::page::{EDGE, Mark, PALE, Page};
use super::scene::{Align, Scene};
use super::text::{line_height, width};

const SIZE: u32 = 30;
const SWATCH: i32 = 28;
const AFTER_SWATCH: i32 = 12;
const BETWEEN_NAMES: i32 = 48;

/// The names and their squares: those of the families if there are several, and that of the extensions if there are any.
fn entries(chart: &Chart) -> Vec<(&str, Mark)> {
    let several = chart.families.len() > 1;
    let families = chart.families.iter().filter(|_| several).map(String::as_str);
    let extension = chart.extension.as_deref().map(|name| (name, Mark::solid(PALE)));
    families.zip(Mark::all()).chain(extension).collect()
}

/// Whether the legend has nothing to say.
pub(super) fn is_empty(chart: &Chart) -> bool {
    entries(chart).is_empty()
}

/// Returns the width of the widest entry.
pub(super) fn widest_entry(chart: &Chart) -> Result<i32, String> {
    widest(&entries(chart))
}

/// Returns the width of the widest of these names with its square.
pub(super) fn widest(names: &[(&str, Mark)]) -> Result<i32, String> {
    let names = names.iter().map(|(name, _)| width(name, SIZE));
    let widest = names.collect::<Result<Vec<_>, _>>()?.into_iter().fold(0, i32::max);
    Ok(SWATCH + AFTER_SWATCH + widest)
}

/// The names of one row, each with its width and square.
type LegendRow<'c> = Vec<(&'c str, i32, Mark)>;

/// Adds the legend of a chart; returns its lower edge.
pub(super) fn add(page: &mut Page<'_>, top: i32) -> Result<i32, String> {
    add_names(&mut page.scene, &entries(page.chart), top)
}

/// Adds centred rows of names above the plot, where they overlap nothing; returns their lower edge.
pub(super) fn add_names(scene: &mut Scene, names: &[(&str, Mark)], mut top: i32) -> Result<i32, String> {
    for row in rows(names, scene.width - 2 * EDGE)? {
        add_row(scene, &row, top);
        top += line_height(SIZE);
    }
    Ok(top)
}

/// Distributes the names over rows that are no wider than `room`, if possible.
fn rows<'c>(names: &[(&'c str, Mark)], room: i32) -> Result<Vec<LegendRow<'c>>, String> {
    let mut rows: Vec<LegendRow<'_>> = vec![Vec::new()];
    for (name, mark) in names.iter().copied() {
        let wide = width(name, SIZE)?;
        let last = rows.len() - 1;
        let longer = row_width(&rows[last]) + BETWEEN_NAMES + SWATCH + AFTER_SWATCH + wide;
        if !rows[last].is_empty() && longer > room {
            rows.push(vec![(name, wide, mark)]);
        } else {
            rows[last].push((name, wide, mark));
        }
    }
    Ok(rows)
}

fn add_row(scene: &mut Scene, row: &[(&str, i32, Mark)], top: i32) {
    let mut x = (scene.width - row_width(row)) / 2;
    for (name, wide, mark) in row {
        let middle = top + line_height(SIZE) / 2;
        let edges = (x, middle - SWATCH / 2, x + SWATCH, middle + SWATCH / 2);
        scene.shapes.extend(mark.shapes(edges));
        scene.text(name, (x + SWATCH + AFTER_SWATCH, top), SIZE, Align::Left);
        x += SWATCH + AFTER_SWATCH + wide + BETWEEN_NAMES;
    }
}

/// Width of a row of the legend.
fn row_width(row: &[(&str, i32, Mark)]) -> i32 {
    let entries = row.iter().map(|(_, wide, _)| SWATCH + AFTER_SWATCH + wide + BETWEEN_NAMES);
    entries.sum::<i32>() - BETWEEN_NAMES
}
