//! The tables with a row for each cell: validity and counters.

use std::collections::BTreeSet;

use crate::experiment::Analysis;
use crate::validity::Validity;

use super::super::cells::CellRuns;
use super::super::number::grouped;
use super::super::results::Results;
use super::syntax::{escaped, table};

pub(super) fn validity(results: &Results) -> String {
    let heading = ["Family", "Variant", "Runs", "Valid", "Repeats", "Invalid"];
    let rows: Vec<Vec<String>> =
        results.judged.cells.by_family().map(|cell| validity_row(results, cell)).collect();
    let reasons: BTreeSet<Validity> =
        results.judged.cells.all().iter().flat_map(|cell| cell.invalid.keys().copied()).collect();
    let meaning: String =
        reasons.iter().map(|reason| format!("\n  - {}: {}", reason.name(), reason.explanation())).collect();
    let legend = if meaning.is_empty() { meaning } else { format!("\n{meaning}") };
    let Analysis { retries, .. } = &results.campaign.experiment.analysis;
    let campaign = &results.campaign;
    let (most, made) = (campaign.max_repeats(), campaign.repeats());
    format!(
        "## Validity\n\nThe figures above are those of the valid runs. An invalid run is repeated up to \
         {retries} times, with at most {most} repeats in the whole campaign; this campaign made {made}.\n\n{}{legend}",
        table(&heading, &rows)
    )
}

fn validity_row(results: &Results, cell: &CellRuns) -> Vec<String> {
    let reasons: Vec<String> =
        cell.invalid.iter().map(|(reason, runs)| format!("{runs} × {}", reason.name())).collect();
    let invalid = if reasons.is_empty() { "none".into() } else { reasons.join(", ") };
    let counts = [cell.made, cell.values.len(), cell.repeated].map(|count| count.to_string());
    cell_names(results, cell).into_iter().chain(counts).chain([invalid]).collect()
}

/// Family and variant, which are the first columns of a row.
fn cell_names(results: &Results, cell: &CellRuns) -> [String; 2] {
    [escaped(results.family(cell.cell.family)), escaped(results.label(cell))]
}

pub(super) fn counters(results: &Results) -> String {
    let cells = results.judged.cells.all();
    let names: BTreeSet<&String> = cells.iter().flat_map(|cell| cell.counters.keys()).collect();
    if names.is_empty() {
        return String::new();
    }
    let heading: Vec<String> = ["Family".into(), "Variant".into()]
        .into_iter()
        .chain(names.iter().map(|name| escaped(name)))
        .collect();
    let heading: Vec<&str> = heading.iter().map(String::as_str).collect();
    let figure =
        |cell: &CellRuns, name: &str| cell.counters.get(name).map_or("–".into(), |count| grouped(*count));
    let row = |cell: &CellRuns| {
        cell_names(results, cell).into_iter().chain(names.iter().map(|name| figure(cell, name))).collect()
    };
    let rows: Vec<Vec<String>> = results.judged.cells.by_family().map(row).collect();
    let what = if results.has_panels() { "panels" } else { "runs" };
    format!("## Counters\n\nEach figure is the median over the valid {what}.\n\n{}", table(&heading, &rows))
}
