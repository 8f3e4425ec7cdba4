//! The campaign as one table for the terminal: a row per variant, a column per family, then the chosen counters.

use std::collections::{BTreeMap, BTreeSet};

use super::cells::CellRuns;
use super::number::{grouped, ratio};
use super::results::Results;
use crate::validity::Validity;

/// The caller asked for a counter that no run of the campaign has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no run has a counter named {name:?}; the counters are: {}", if known.is_empty() { "none".into() } else { known.join(", ") })]
pub struct UnknownCounter {
    /// The name that the caller asked for.
    pub name: String,
    /// The names of all counters, sorted.
    pub known: Vec<String>,
}

/// The content of the table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Overview {
    /// What the figures are.
    heading: String,
    families: Vec<String>,
    rows: Vec<Row>,
    /// The reasons why cells have no figures, in the order of their numbers.
    notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
struct Row {
    label: String,
    cells: Vec<String>,
    /// Each counter has the value of the first family that has it.
    counters: BTreeMap<String, f64>,
}

impl Overview {
    pub(super) fn of(results: &Results) -> Self {
        let experiment = &results.campaign.experiment;
        let mut notes = Vec::new();
        let variants = experiment.variants.iter().enumerate();
        let rows = variants.map(|(at, variant)| row(results, at, &variant.label, &mut notes)).collect();
        let families = experiment.families.iter().map(|family| family.title.clone()).collect();
        Overview { heading: heading(results), families, rows, notes }
    }

    /// Returns the table with these counters as the last columns. Refuses a counter that no run has.
    pub(super) fn table(&self, counters: &[String]) -> Result<String, UnknownCounter> {
        let known: BTreeSet<&String> = self.rows.iter().flat_map(|row| row.counters.keys()).collect();
        match counters.iter().find(|name| !known.contains(name)) {
            Some(name) => {
                Err(UnknownCounter { name: name.clone(), known: known.into_iter().cloned().collect() })
            }
            None => Ok(self.known_table(counters)),
        }
    }

    fn known_table(&self, counters: &[String]) -> String {
        let heading = [String::new()].into_iter().chain(self.families.iter().chain(counters).cloned());
        let rows: Vec<Vec<String>> = [heading.collect()]
            .into_iter()
            .chain(self.rows.iter().map(|row| row.columns(counters)))
            .collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
        let mut text = format!("{}\n\n", self.heading);
        for row in &rows {
            text.push_str(&line(row, &widths));
        }
        for (number, note) in self.notes.iter().enumerate() {
            text.push_str(&format!("\n[{}] {note}", number + 1));
        }
        text.trim_end().to_owned() + "\n"
    }
}

fn heading(results: &Results) -> String {
    let metric = match results.campaign.experiment.only_metric() {
        Some(metric) => format!("million {metric}"),
        None => results.metrics(),
    };
    let figures = match (results.has_panels(), results.is_paced()) {
        (true, false) => "whole loop, median (minimum–maximum) of the blocks at the median machine speed",
        (true, true) => "whole loop, median (minimum–maximum) of the blocks",
        (false, _) => "median (minimum–maximum) of the valid runs",
    };
    format!("{metric}, {figures}")
}

/// Aligns the first column to the left, all others to the right.
fn line(row: &[String], widths: &[usize]) -> String {
    let mut text = format!("{:width$}", row[0], width = widths[0]);
    for (cell, width) in row.iter().zip(widths).skip(1) {
        text.push_str(&format!("  {cell:>width$}"));
    }
    text.trim_end().to_owned() + "\n"
}

impl Row {
    fn columns(&self, counters: &[String]) -> Vec<String> {
        let figure = |name: &String| self.counters.get(name).map_or("–".into(), |count| grouped(*count));
        [&self.label].into_iter().chain(&self.cells).cloned().chain(counters.iter().map(figure)).collect()
    }
}

fn row(results: &Results, variant: usize, label: &str, notes: &mut Vec<String>) -> Row {
    let mut row = Row { label: label.into(), cells: Vec::new(), counters: BTreeMap::new() };
    for cell in results.judged.cells.of_variant(variant) {
        row.cells.push(cell_text(results, cell, notes));
        for (name, count) in &cell.counters {
            row.counters.entry(name.clone()).or_insert(*count);
        }
    }
    row
}

/// Returns the figures of a cell, or why there are none, with the number of a note if the subject logged the reason.
fn cell_text(results: &Results, cell: &CellRuns, notes: &mut Vec<String>) -> String {
    if let Some(runs) = cell.description() {
        // Rates that count different things have no scale in common.
        let one_scale = results.campaign.experiment.only_metric().is_some();
        let figure = if one_scale { millions } else { grouped };
        return format!("{} ({}–{})", figure(runs.median), figure(runs.min), figure(runs.max));
    }
    let reasons: Vec<&str> = cell.invalid.keys().map(|reason| reason.name()).collect();
    if reasons.is_empty() {
        return cell.absence().into();
    }
    // Only a subject that is wrong or that refused its settings logs the reason.
    let logged =
        [Validity::Misrouted, Validity::Refused].iter().any(|reason| cell.invalid.contains_key(reason));
    let line = last_log_line(results, cell).filter(|_| logged);
    let number = line.map(|line| format!(" [{}]", numbered(notes, line)));
    reasons.join(", ") + &number.unwrap_or_default()
}

/// The last line that the runs of a cell logged.
fn last_log_line<'a>(results: &'a Results, cell: &CellRuns) -> Option<&'a String> {
    let experiment = &results.campaign.experiment;
    let variant = &experiment.variants[cell.cell.variant].name;
    let family = &experiment.families[cell.cell.family].name;
    results.campaign.events(variant, family).pop()
}

/// Returns the number of a note, counted from 1, after adding a new one to the list.
fn numbered(notes: &mut Vec<String>, note: &String) -> usize {
    let known = notes.iter().position(|known| known == note);
    known.unwrap_or_else(|| {
        notes.push(note.clone());
        notes.len() - 1
    }) + 1
}

/// Formats a value in millions with at least three digits.
fn millions(value: f64) -> String {
    ratio(value / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_notes_follow() {
        let row = |label: &str, cells: [&str; 2], bytes: Option<f64>| Row {
            label: label.into(),
            cells: cells.map(str::to_owned).into(),
            counters: bytes.map(|bytes| ("bytes".to_owned(), bytes)).into_iter().collect(),
        };
        let overview = Overview {
            heading: "million lookups-per-second".into(),
            families: vec!["uniform".into(), "flows".into()],
            rows: vec![
                row("a long label", ["12.0 (11.0–13.0)", "1500 (1400–1600)"], Some(33_654_272.0)),
                row("short", ["misrouted [1]", "0.50 (0.40–0.60)"], None),
            ],
            notes: vec!["3 of 10 answers wrong".into()],
        };
        let expected = [
            "million lookups-per-second",
            "",
            "                       uniform             flows       bytes",
            "a long label  12.0 (11.0–13.0)  1500 (1400–1600)  33,654,272",
            "short            misrouted [1]  0.50 (0.40–0.60)           –",
            "",
            "[1] 3 of 10 answers wrong",
            "",
        ];
        assert_eq!(overview.table(&["bytes".into()]), Ok(expected.join("\n")));
        let refused = overview.table(&["bites".into()]).unwrap_err();
        assert_eq!(refused.to_string(), "no run has a counter named \"bites\"; the counters are: bytes");
    }

    #[test]
    fn figures_keep_the_digits_that_matter() {
        assert_eq!([1.5e9, 99.94e6, 9.994e6, 5e5].map(millions), ["1500", "99.9", "9.99", "0.500"]);
        assert_eq!([149_278.0, 4_000.0, 0.0].map(millions), ["0.149", "0.00400", "0"]);
    }

    #[test]
    fn a_note_is_listed_once() {
        let mut notes = Vec::new();
        assert_eq!(["a", "b", "a"].map(|note| numbered(&mut notes, &note.to_owned())), [1, 2, 1]);
    }
}
