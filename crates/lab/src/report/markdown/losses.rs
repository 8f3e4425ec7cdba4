//! What was lost of an offered load.

use super::super::cells::CellRuns;
use super::super::number::{grouped, part};
use super::super::results::Results;
use super::syntax::{escaped, table};

/// The section of the losses; empty if nothing was lost.
pub(super) fn losses(results: &Results) -> String {
    let cells = || results.judged.cells.by_family();
    if !cells().any(|cell| cell.loss().is_some_and(|loss| loss > 0.0)) {
        return String::new();
    }
    let heading = ["Family", "Variant", "Offered", "Received", "Lost", "Part"];
    let rows: Vec<Vec<String>> = cells().map(|cell| row(results, cell)).collect();
    format!(
        "## Loss\n\n{}\n\nThe counts are medians over the valid panels. A variant that cannot keep up with the offered load \
         is judged by what it received of it.",
        table(&heading, &rows)
    )
}

fn row(results: &Results, cell: &CellRuns) -> Vec<String> {
    let names = [results.family(cell.cell.family), results.label(cell)].map(escaped);
    let count = |name| cell.counters.get(name).map_or("–".into(), |count| grouped(*count));
    let counts = ["offered", "received", "lost"].map(count);
    names.into_iter().chain(counts).chain([cell.loss().map_or("–".into(), part)]).collect()
}
