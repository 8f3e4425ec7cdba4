//! Everything a campaign is shown as, rebuilt from its folder alone: the same folder gives the same bytes.
//!
//! `evidence` reduces the runs to cells, `judged` compares the cells, and one file each writes a form:
//! `markdown`, `json`, `chart`.

mod chart;
mod doubts;
mod evidence;
mod json;
mod judged;
mod markdown;
mod number;
mod overview;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::archive::{Campaign, write_file};
use crate::error::LabError;
use crate::experiment::leaves;
use crate::stats::Verdict;
use chart::{Bar, Chart, Group};
use evidence::Evidence;
use judged::Judged;
use overview::Overview;
pub use overview::UnknownCounter;

/// A finished report. Its graph is drawn when it is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    readme: String,
    json: String,
    lines: Vec<String>,
    verdicts: Vec<Option<Verdict>>,
    warnings: Vec<String>,
    standing: Standing,
    chart: Chart,
    overview: Overview,
}

/// A campaign in one word, for exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Every cell was measured, and no variant is worse than what it was compared with.
    Sound,
    /// Some variant is worse.
    Worse,
    /// Some cell has no valid run at all, or some declared comparison had too few to be judged.
    Unmeasured,
}

/// Everything the forms are written from.
struct Facts {
    campaign: Campaign,
    evidence: Evidence,
    judged: Vec<Judged>,
    doubts: Vec<String>,
}

/// Reads the campaign in `folder` and makes its report.
pub fn report(folder: &Path) -> Result<Report, LabError> {
    let facts = Facts::of(folder)?;
    Ok(Report {
        readme: markdown::readme(&facts)?,
        json: json::json(&facts)?,
        lines: facts.judged.iter().map(|judged| judged.line(&facts.campaign.experiment)).collect(),
        verdicts: facts.judged.iter().map(Judged::verdict).collect(),
        standing: facts.standing(),
        chart: facts.chart(),
        overview: Overview::of(&facts),
        warnings: facts.doubts,
    })
}

impl Report {
    /// Writes the report's files into a results folder, replacing an earlier report.
    pub fn write(&self, folder: &Path) -> Result<(), LabError> {
        let svg = self.chart.svg().map_err(LabError::Chart)?;
        let png = self.chart.png().map_err(LabError::Chart)?;
        let files: [(&str, &[u8]); 4] = [
            ("README.md", self.readme.as_bytes()),
            ("graph.svg", svg.as_bytes()),
            ("graph.png", &png),
            ("report.json", self.json.as_bytes()),
        ];
        files.into_iter().try_for_each(|(name, bytes)| Ok(write_file(&folder.join(name), bytes)?))
    }

    /// One line a comparison, for the terminal.
    pub fn verdict_lines(&self) -> Vec<String> {
        self.lines.clone()
    }

    /// Every variant in every family as one table for the terminal, with these counters as the last columns.
    pub fn overview(&self, counters: &[String]) -> Result<String, UnknownCounter> {
        self.overview.table(counters)
    }

    /// The campaign in one word.
    pub fn standing(&self) -> Standing {
        self.standing
    }

    /// One verdict a comparison; `None` where there were too few valid runs to judge.
    pub fn verdicts(&self) -> &[Option<Verdict>] {
        &self.verdicts
    }

    /// Reasons to read the figures with care, each with advice.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The text of `README.md`.
    pub fn readme(&self) -> &str {
        &self.readme
    }

    /// The text of `report.json`.
    pub fn json(&self) -> &str {
        &self.json
    }
}

impl Facts {
    fn of(folder: &Path) -> Result<Self, LabError> {
        let campaign = Campaign::read(folder)?;
        let evidence = Evidence::of(&campaign)?;
        let judged = judged::judge_all(&campaign.experiment, &evidence);
        let doubts = doubts::doubts(&campaign, &evidence, &judged);
        Ok(Self { campaign, evidence, judged, doubts })
    }

    fn standing(&self) -> Standing {
        let worse = self.judged.iter().any(|judged| judged.verdict() == Some(Verdict::Worse));
        let unjudged = self.judged.iter().any(|judged| judged.verdict().is_none());
        if unjudged || self.evidence.cells().iter().any(|cell| cell.values.is_empty()) {
            Standing::Unmeasured
        } else if worse {
            Standing::Worse
        } else {
            Standing::Sound
        }
    }

    /// The title without the colon it may have been written with: the report sets its own.
    fn title(&self) -> &str {
        self.campaign.experiment.title.trim_end_matches([':', '.', ' '])
    }

    /// The report's list of conditions: what the bench declared, what the experiment adds, and the machine.
    fn conditions(&self) -> Vec<String> {
        let Campaign { experiment, provenance, .. } = &self.campaign;
        let declared = provenance.conditions.iter().chain(&experiment.conditions).cloned();
        declared.chain(provenance.host.conditions()).collect()
    }

    /// For each variant the settings it changes, by which the conditions do not hold for it.
    fn changes(&self) -> impl Iterator<Item = (&str, BTreeMap<String, String>)> {
        let variants = self.campaign.experiment.variants.iter();
        variants.map(|variant| (variant.label.as_str(), leaves(variant.set.clone())))
    }

    /// The names of these settings in one phrase; none where no variant changes any.
    fn changed_names(&self) -> Option<String> {
        let names: BTreeSet<String> = self.changes().flat_map(|(_, set)| set.into_keys()).collect();
        let names = Vec::from_iter(names).join(", ");
        (!names.is_empty()).then(|| format!("variants differ in {names}"))
    }

    fn chart(&self) -> Chart {
        let experiment = &self.campaign.experiment;
        let note = experiment.note.clone().into_iter();
        let groups = experiment.variants.iter().enumerate();
        let conditions: Vec<String> = self.conditions().into_iter().chain(self.changed_names()).collect();
        Chart {
            title: self.title().into(),
            y_label: axis_label(&experiment.analysis.metric),
            y_detail: format!("minimum, median, maximum of {}", self.runs_per_bar()),
            notes: note.chain([without_links(&conditions.join(", "))]).collect::<Vec<_>>().join(" — "),
            families: experiment.families.iter().map(|family| family.title.clone()).collect(),
            groups: groups.map(|(at, variant)| self.group(at, &variant.label)).collect(),
            imix_axis: experiment.analysis.imix_axis,
        }
    }

    /// How many runs a bar stands for: those that are valid, not those that were asked for.
    fn runs_per_bar(&self) -> String {
        let counts = || self.evidence.cells().iter().map(|cell| cell.values.len() as u32);
        let (fewest, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
        let most_runs = number::counted(most, "run");
        if fewest == most { most_runs } else { format!("{fewest} to {most_runs}") }
    }

    fn group(&self, variant: usize, label: &str) -> Group {
        let cells = self.evidence.of_variant(variant);
        let bar = |cell: &evidence::CellRuns| {
            cell.description().map(|runs| Bar { min: runs.min, median: runs.median, max: runs.max })
        };
        Group { label: label.into(), bars: cells.map(bar).collect() }
    }
}

/// "packets-per-second forwarded" as a heading: "Packets per second forwarded".
fn axis_label(metric: &str) -> String {
    let spaced = metric.replace('-', " ");
    let mut letters = spaced.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Markdown links reduced to their words: a picture has nothing to click on.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, words, after)) = next_link(rest) {
        plain.push_str(before);
        plain.push_str(words);
        rest = after;
    }
    plain + rest
}

/// What stands before the first `[words](address)`, its words, and what stands after it.
fn next_link(text: &str) -> Option<(&str, &str, &str)> {
    let (words_end, address) = text.split_once("](")?;
    let (before, words) = words_end.rsplit_once('[')?;
    let (_, after) = address.split_once(')')?;
    Some((before, words, after))
}

#[cfg(test)]
mod tests {
    use super::{axis_label, without_links};

    #[test]
    fn links_lose_their_address_and_nothing_else_is_touched() {
        assert_eq!(without_links("a, [the script](https://x.y/z), b"), "a, the script, b");
        assert_eq!(without_links("[a](b) [c](d)"), "a c");
        for text in ["no link", "half [a](b", "f(x)[0]", "](", ""] {
            assert_eq!(without_links(text), text);
        }
    }

    #[test]
    fn a_metric_becomes_a_heading() {
        assert_eq!(axis_label("packets-per-second forwarded"), "Packets per second forwarded");
        assert_eq!(axis_label(""), "");
    }
}
