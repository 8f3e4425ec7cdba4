//! `README.md`: the form of the published forwarding reports, and then what those lack.

mod sections;

use std::collections::{BTreeMap, BTreeSet};

use crate::error::LabError;
use crate::ministat::{MOST_SETS, Set, Style, render};

use super::Facts;
use super::evidence::{CellRuns, FEWEST_RUNS};
use super::number::counted;

/// As the published reports have it.
const LOG_TITLE: &str = "System displaying this message during route table loading:";

pub(super) fn readme(facts: &Facts) -> Result<String, LabError> {
    let mut families = String::new();
    for family in 0..facts.campaign.experiment.families.len() {
        families.push_str(&facts.ministat(family)?);
    }
    let sections = [
        facts.opening(),
        facts.log(),
        format!("![{}](graph.png)\n", escaped(facts.title())),
        families,
        facts.verdicts(),
        facts.validity(),
        facts.counters(),
        facts.warnings(),
        facts.provenance(),
    ];
    let present: Vec<&str> =
        sections.iter().map(|text| text.trim_end()).filter(|text| !text.is_empty()).collect();
    Ok(present.join("\n\n") + "\n")
}

impl Facts {
    fn label(&self, cell: &CellRuns) -> &str {
        &self.campaign.experiment.variants[cell.cell.variant].label
    }

    fn family(&self, family: usize) -> &str {
        &self.campaign.experiment.families[family].title
    }

    fn opening(&self) -> String {
        let items: String = self.conditions().iter().map(|line| format!("  - {line}\n")).collect();
        let note = self.campaign.experiment.note.as_ref().map(|note| format!("\nNote: {note}\n"));
        format!("{}:\n{items}{}{}", self.title(), self.variants(), note.unwrap_or_default())
    }

    /// What each variant sets otherwise than the conditions say.
    fn variants(&self) -> String {
        let line = |(label, set): (&str, BTreeMap<String, String>)| {
            let set: Vec<String> =
                set.into_iter().map(|(key, value)| escaped(&format!("{key} = {value}"))).collect();
            let set = if set.is_empty() { "as above".into() } else { set.join(", ") };
            format!("    - {}: {set}\n", escaped(label))
        };
        let lines: String = self.changes().map(line).collect();
        let heading = "  - these, but for what a variant sets itself:\n";
        self.changed_names().map(|_| format!("{heading}{lines}")).unwrap_or_default()
    }

    /// What the subjects logged, each line once a variant, in the order of the experiment's variants and families. Lines
    /// that differ only in their times are one.
    fn log(&self) -> String {
        let (variants, families) = (&self.campaign.experiment.variants, &self.campaign.experiment.families);
        let cells = variants.iter().flat_map(|variant| families.iter().map(move |family| (variant, family)));
        let lines = cells.flat_map(|(variant, family)| {
            let logged = self.logged(&variant.name, &family.name);
            logged.map(move |event| (&variant.name, event))
        });
        let mut seen = BTreeSet::new();
        let once = lines.filter(|(variant, event)| seen.insert((*variant, without_time(event))));
        let text: String = once.map(|(variant, event)| format!("{variant}: {event}\n")).collect();
        if text.is_empty() { text } else { format!("{LOG_TITLE}\n{}", fenced(&text)) }
    }

    fn logged<'s>(&'s self, variant: &'s str, family: &'s str) -> impl Iterator<Item = &'s String> {
        let runs = self.campaign.records.runs.iter();
        runs.filter(move |run| run.variant == variant && run.family == family).flat_map(|run| &run.events)
    }

    fn ministat(&self, family: usize) -> Result<String, LabError> {
        let (enough, short): (Vec<&CellRuns>, Vec<&CellRuns>) =
            self.baseline_first(family).into_iter().partition(|cell| cell.enough());
        let sets: Vec<Set> = enough.into_iter().map(|cell| self.ministat_set(cell)).collect();
        let mut text = format!("{}:\n", self.family(family));
        for block in blocks(&sets) {
            let drawn = render(&block, &Style { separate_bars: true, ..Style::default() });
            let refused = |error: crate::ministat::MinistatError| LabError::Ministat {
                family: self.family(family).into(),
                message: error.to_string(),
            };
            text.push_str(&fenced(&drawn.map_err(refused)?));
        }
        text.extend(short.into_iter().map(|cell| self.missing(cell)));
        Ok(text + "\n")
    }

    /// ministat compares with the set it meets first.
    fn baseline_first(&self, family: usize) -> Vec<&CellRuns> {
        let baseline = self.campaign.experiment.baseline();
        let mut cells: Vec<&CellRuns> = self.evidence.of_family(family).collect();
        cells.sort_by_key(|cell| cell.cell.variant != baseline);
        cells
    }

    fn ministat_set(&self, cell: &CellRuns) -> Set {
        let family = &self.campaign.experiment.families[cell.cell.family].name;
        let metric = &self.campaign.experiment.analysis.metric;
        Set { label: format!("{}: {family} {metric}", self.label(cell)), values: cell.values.clone() }
    }

    fn missing(&self, cell: &CellRuns) -> String {
        let (label, runs) = (escaped(self.label(cell)), counted(cell.values.len() as u32, "valid run"));
        format!("\n{label} is not in this block: it has {runs}, and {FEWEST_RUNS} are the least.\n")
    }
}

/// As many blocks as ministat's seven symbols need, each beginning with the first set.
fn blocks(sets: &[Set]) -> Vec<Vec<Set>> {
    match sets.split_first() {
        None => Vec::new(),
        Some((first, [])) => vec![vec![first.clone()]],
        Some((first, others)) => {
            let chunks = others.chunks(MOST_SETS - 1);
            chunks.map(|chunk| [std::slice::from_ref(first), chunk].concat()).collect()
        }
    }
}

/// Verbatim text between fences longer than any run of backticks in it.
fn fenced(text: &str) -> String {
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}

/// Plain text that Markdown must not read as markup.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        if "\\`*_[]<>|#&".contains(letter) {
            safe.push('\\');
        }
        safe.push(letter);
    }
    safe
}

/// A log line behind its time in brackets, if it has one.
fn without_time(line: &str) -> &str {
    let timed = line.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    timed.filter(|(time, _)| time.parse::<f64>().is_ok()).map_or(line, |(_, text)| text)
}

#[cfg(test)]
mod tests {
    use super::without_time;

    #[test]
    fn only_a_time_in_front_is_left_out() {
        assert_eq!(without_time("[0.120000] [fib_algo] inet.0"), "[fib_algo] inet.0");
        for line in ["[fib_algo] inet.0", "[] x", "[1.5]", "plain"] {
            assert_eq!(without_time(line), line);
        }
    }
}
