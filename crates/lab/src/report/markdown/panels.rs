//! The validity of panels.

use std::collections::{BTreeMap, BTreeSet};

use crate::experiment::Analysis;
use crate::record::PanelRecord;
use crate::validity::Validity;

use super::super::cells::CellRuns;
use super::super::number::part;
use super::super::results::Results;
use super::syntax::{escaped, table};

pub(super) fn validity(results: &Results) -> String {
    let families = results.campaign.experiment.families.len();
    let heading = ["Family", "Panels", "Valid", "Repeats", "Rounds", "Left out", "Invalid"];
    let rows: Vec<Vec<String>> = (0..families).map(|family| row(results, family)).collect();
    let campaign = &results.campaign;
    let Analysis { retries, .. } = &campaign.experiment.analysis;
    let (most, made) = (campaign.max_repeats(), campaign.repeats());
    format!(
        "## Validity\n\nThe figures above are those of the valid panels. A panel with an invalid member is repeated as a \
         whole, up to {retries} times, with at most {most} repeats in the whole campaign; this campaign made {made}. \
         Rounds are left out for all variants where the control was disturbed.\n\n{}{}{}",
        table(&heading, &rows),
        set_aside(results),
        legend(results),
    )
}

fn row(results: &Results, family: usize) -> Vec<String> {
    let records: Vec<&PanelRecord> = results.campaign.records_of(family).collect();
    let count =
        |wanted: fn(&PanelRecord) -> bool| records.iter().filter(|record| wanted(record)).count().to_string();
    let mut invalid: BTreeMap<Validity, usize> = BTreeMap::new();
    for reason in records.iter().filter(|record| !record.is_valid()).flat_map(|record| record.validity.iter())
    {
        *invalid.entry(reason).or_insert(0) += 1;
    }
    let invalid: Vec<String> =
        invalid.into_iter().map(|(reason, panels)| format!("{panels} × {}", reason.name())).collect();
    let speed = results.judged.speeds[family].as_ref();
    vec![
        escaped(results.family(family)),
        records.len().to_string(),
        count(PanelRecord::is_valid),
        count(|record| record.attempt > 0),
        speed.map_or("–".into(), |speed| speed.rounds().to_string()),
        speed.map_or("–".into(), |speed| part(speed.left_out())),
        if invalid.is_empty() { "none".into() } else { invalid.join(", ") },
    ]
}

/// The variants that took no turns, and how often.
fn set_aside(results: &Results) -> String {
    let absent = results.judged.cells.by_family().filter(|cell| !cell.invalid.is_empty());
    let line = |cell: &CellRuns| {
        let reasons: Vec<String> =
            cell.invalid.iter().map(|(reason, panels)| format!("{} in {panels}", reason.name())).collect();
        let names = [results.family(cell.cell.family), results.label(cell)].map(escaped).join(", ");
        format!("\n  - {names}: took no turns ({} of {} panels)", reasons.join(", "), cell.made)
    };
    let lines: String = absent.map(line).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

/// The meaning of the reasons that occur.
fn legend(results: &Results) -> String {
    let of_panels = results.campaign.records().filter(|record| !record.is_valid());
    let of_members = results.judged.cells.all().iter().flat_map(|cell| cell.invalid.keys().copied());
    let reasons: BTreeSet<Validity> =
        of_panels.flat_map(|record| record.validity.iter()).chain(of_members).collect();
    let lines: String =
        reasons.iter().map(|reason| format!("\n  - {}: {}", reason.name(), reason.explanation())).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}
