//! What the published reports lack: verdicts, validity, counters, warnings, provenance.

use std::collections::BTreeSet;

use crate::experiment::Analysis;
use crate::host::{Build, Host, Provenance};
use crate::stats::Verdict;
use crate::validity::Validity;

use super::super::Facts;
use super::super::evidence::CellRuns;
use super::super::judged::{Judged, POWER};
use super::super::number::{bytes, counted, grouped, interval, probability, signed_percent};
use super::{escaped, fenced};

impl Facts {
    pub(super) fn verdicts(&self) -> String {
        if self.judged.is_empty() {
            return "## Verdicts\n\nOne variant has nothing to be compared with.".into();
        }
        let Analysis { margin, alpha, .. } = &self.campaign.experiment.analysis;
        let heading = [
            "Family",
            "Variant",
            "Against",
            "Difference",
            "Interval",
            "Test",
            "Adjusted p",
            "Verdict",
            "Smallest effect",
        ];
        let rows = self.judged.iter().map(|judged| self.verdict_row(judged)).collect::<Vec<_>>();
        format!(
            "## Verdicts\n\n{}\n\nThe unit is one run. The difference is the ratio of the geometric means of the \
             valid runs, less one. Where both variants have a valid run in each of the same blocks, the test is \
             Student's t on the logarithms of the ratios within the blocks (paired); elsewhere the blocks are no pairs, \
             and it is Welch's t on the logarithms of both sets. Intervals and p are corrected by Holm's procedure for \
             {}: the chance of any false alarm among them is at most {:.0} %. Equivalent means that the whole \
             interval lies within the margin of ±{:.2} %. The smallest effect is what as many runs with this spread \
             show with a probability of {:.0} %.",
            table(&heading, &rows),
            counted(self.judged.len() as u32, "comparison"),
            alpha * 100.0,
            margin * 100.0,
            POWER * 100.0,
        )
    }

    fn verdict_row(&self, judged: &Judged) -> Vec<String> {
        let label = |variant: usize| escaped(&self.campaign.experiment.variants[variant].label);
        let smallest =
            judged.smallest_effect.map_or_else(|| "–".into(), |effect| format!("{:.2} %", effect * 100.0));
        let names = [
            escaped(self.family(judged.family)),
            label(judged.comparison.variant),
            label(judged.comparison.against),
        ];
        let found = match &judged.outcome {
            Ok(judgement) => [
                signed_percent(judgement.effect.estimate),
                interval(judgement.effect.low, judgement.effect.high),
                judgement.design.to_string(),
                probability(judgement.adjusted_p),
                verdict(&judgement.verdict),
            ],
            Err(obstacle) => ["–", "–", "–", "–", &escaped(obstacle)].map(str::to_owned),
        };
        names.into_iter().chain(found).chain([smallest]).collect()
    }

    pub(super) fn validity(&self) -> String {
        let heading = ["Family", "Variant", "Runs", "Valid", "Repeats", "Invalid"];
        let rows: Vec<Vec<String>> = self.evidence.by_family().map(|cell| self.validity_row(cell)).collect();
        let reasons: BTreeSet<Validity> =
            self.evidence.cells().iter().flat_map(|cell| cell.invalid.keys().copied()).collect();
        let meaning: String = reasons
            .iter()
            .map(|reason| format!("\n  - {}: {}", reason.name(), reason.explanation()))
            .collect();
        let legend = if meaning.is_empty() { meaning } else { format!("\n{meaning}") };
        let Analysis { retries, .. } = &self.campaign.experiment.analysis;
        let (most, made) = (self.campaign.experiment.max_repeats(), self.campaign.records.repeats());
        format!(
            "## Validity\n\nOnly valid runs enter the figures above. An invalid run is repeated up to {retries} \
             times, and the whole campaign repeats at most {most}: {made} were.\n\n{}{legend}",
            table(&heading, &rows)
        )
    }

    fn validity_row(&self, cell: &CellRuns) -> Vec<String> {
        let reasons: Vec<String> =
            cell.invalid.iter().map(|(reason, runs)| format!("{runs} × {}", reason.name())).collect();
        let invalid = if reasons.is_empty() { "none".into() } else { reasons.join(", ") };
        let counts = [cell.made, cell.values.len(), cell.repeated].map(|count| count.to_string());
        self.names(cell).into_iter().chain(counts).chain([invalid]).collect()
    }

    /// Family and variant, as the first cells of a row.
    fn names(&self, cell: &CellRuns) -> [String; 2] {
        [escaped(self.family(cell.cell.family)), escaped(self.label(cell))]
    }

    pub(super) fn counters(&self) -> String {
        let cells = self.evidence.cells();
        let names: BTreeSet<&String> = cells.iter().flat_map(|cell| cell.counters.keys()).collect();
        if names.is_empty() {
            return String::new();
        }
        let heading: Vec<String> = ["Family".into(), "Variant".into()]
            .into_iter()
            .chain(names.iter().map(|name| escaped(name)))
            .collect();
        let heading: Vec<&str> = heading.iter().map(String::as_str).collect();
        let figure = |cell: &CellRuns, name: &str| {
            cell.counters.get(name).map_or("–".into(), |count| grouped(*count))
        };
        let row = |cell: &CellRuns| {
            self.names(cell).into_iter().chain(names.iter().map(|name| figure(cell, name))).collect()
        };
        let rows: Vec<Vec<String>> = self.evidence.by_family().map(row).collect();
        format!("## Counters\n\nMedians of the valid runs.\n\n{}", table(&heading, &rows))
    }

    pub(super) fn warnings(&self) -> String {
        let lines: String = self.doubts.iter().map(|doubt| format!("  - {}\n", escaped(doubt))).collect();
        let text = if lines.is_empty() { "None.\n".into() } else { lines };
        format!("## Warnings\n\n{text}")
    }

    pub(super) fn provenance(&self) -> String {
        let Provenance { started, command, build, host, .. } = &self.campaign.provenance;
        let runs = counted(self.campaign.records.runs.len() as u32, "run");
        let seed = self.campaign.experiment.seed;
        let first = [
            format!("{runs} since {started}, each with its samples, in [runs.jsonl](runs.jsonl)"),
            "the question with every setting: [campaign.toml](campaign.toml)".to_owned(),
            format!(
                "order and random choices from seed {seed}; every block has each cell once, in random order"
            ),
        ];
        let facts = first.into_iter().chain(build.facts()).chain(host.facts());
        let list: String = facts.map(|fact| format!("  - {fact}\n")).collect();
        let command: Vec<String> = command.iter().map(|word| shell_word(word)).collect();
        format!(
            "## Provenance\n\n{list}\nMeasured with:\n{}\nTo measure it again, here or on another machine, from \
             this folder:\n{}\nTo rebuild this page and its graph from the raw runs:\n{}",
            fenced(&command.join(" ")),
            fenced("fullview bench campaign.toml"),
            fenced("fullview report ."),
        )
    }
}

/// The verdict in one of the four words, and what is missing to another.
fn verdict(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Better => "**better**".into(),
        Verdict::Worse => "**worse**".into(),
        Verdict::Equivalent => "**equivalent**".into(),
        Verdict::Inconclusive { runs_needed: Some(runs) } => {
            format!("**inconclusive**: {} a variant needed", counted(*runs as u32, "more run"))
        }
        Verdict::Inconclusive { runs_needed: None } => {
            "**inconclusive**: too noisy for any sensible number of runs".into()
        }
    }
}

impl Build {
    fn facts(&self) -> Vec<String> {
        let known = |fact: &Option<String>| fact.clone().unwrap_or_else(|| "unknown".into());
        let kind = if self.debug { "debug" } else { "release" };
        let commit = known(&self.commit);
        vec![
            format!("fullview {}, commit {commit}, {kind} build", self.version),
            format!("compiler: {}", known(&self.rustc)),
        ]
    }
}

impl Host {
    /// The three facts that stand among the conditions.
    pub(in crate::report) fn conditions(&self) -> Vec<String> {
        let cores = self.cores.map(|cores| counted(cores as u32, "core"));
        let threads = self.threads.map(|threads| counted(threads as u32, "thread"));
        let counts: Vec<String> = cores.into_iter().chain(threads).collect();
        let counts = if counts.is_empty() { String::new() } else { format!(" ({})", counts.join(", ")) };
        let cpu = self.cpu.as_ref().map(|cpu| format!("{cpu}{counts}"));
        let virtual_machine = (self.virtual_machine == Some(true)).then(|| "in a virtual machine".to_owned());
        [cpu, virtual_machine, self.kernel.clone()].into_iter().flatten().collect()
    }

    /// The others.
    fn facts(&self) -> Vec<String> {
        let memory = self.memory_bytes.map(|count| format!("memory: {}", bytes(count)));
        let caches = (!self.caches.is_empty()).then(|| format!("caches: {}", self.caches.join(", ")));
        let named = |name: &str, fact: &Option<String>| fact.as_ref().map(|fact| format!("{name}: {fact}"));
        let load = self
            .load
            .map(|[one, five, fifteen]| format!("load before the first run: {one} {five} {fifteen}"));
        let policies = [
            named("operating system", &self.os),
            named("frequency governor", &self.governor),
            named("transparent huge pages", &self.huge_pages),
        ];
        [memory, caches].into_iter().chain(policies).chain([load]).flatten().collect()
    }
}

/// A Markdown table, its columns padded so that the source reads as well as the page.
fn table(heading: &[&str], rows: &[Vec<String>]) -> String {
    let heading: Vec<String> = heading.iter().map(|name| (*name).to_owned()).collect();
    let width = |column: usize| {
        let cells = rows.iter().chain([&heading]).filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0).max(3)
    };
    let widths: Vec<usize> = (0..heading.len()).map(width).collect();
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!(" {cell:width$} |"));
        format!("|{}", cells.collect::<String>())
    };
    [&heading, &rule].into_iter().chain(rows).map(line).collect::<Vec<_>>().join("\n")
}

/// A word of a command as a shell would need it.
fn shell_word(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,+@%".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
