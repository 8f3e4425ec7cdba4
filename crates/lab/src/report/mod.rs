//! The report of a campaign, made from its folder alone: the same folder gives the same bytes.
//!
//! `cells` sorts what was measured into cells, `comparisons` compares the cells, `copies` judges the copy of the baseline,
//! `speed` and `turns` describe the machine and the panels, `warnings` and `panel_warnings` check them, and `results` is
//! all of them. Each form of the report has a module: `answer`, `markdown`, `json`, `graph`, `graph_over`, `ratios`,
//! `overview`.

mod answer;
mod cells;
mod chart;
mod comparisons;
mod copies;
mod graph;
mod graph_over;
mod json;
mod judged;
mod machine;
mod markdown;
mod number;
mod overview;
mod panel_warnings;
mod phrase;
mod picture;
mod ratios;
mod results;
mod speed;
mod status;
mod turns;
mod warnings;

use std::path::Path;

use crate::archive::write_file;
use crate::error::LabError;
use crate::stats::Verdict;
pub use chart::{Bar, Chart, CurveTexts, Distribution, Distributions, Group};
use chart::{Curves, Forest};
use markdown::Scale;
pub use markdown::{code, escaped, fenced, table};
use overview::Overview;
pub use overview::UnknownCounter;
use results::Results;
pub use status::ReportStatus;

/// A finished report. Its graphs are drawn when the report is written.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    readme: String,
    json: String,
    raw: String,
    untrusted: Option<String>,
    trust_unknown: Option<String>,
    misrouted: Vec<String>,
    sentences: Vec<String>,
    verdicts: Vec<Option<Verdict>>,
    warnings: Vec<String>,
    status: ReportStatus,
    chart: Chart,
    curves: Option<Curves>,
    ratios: Option<Forest>,
    series: Vec<ReportSeries>,
    overview: Overview,
}

/// Reads the campaign in `folder` and makes its report.
pub fn report(folder: &Path) -> Result<Report, LabError> {
    let results = Results::read(folder)?;
    Ok(Report {
        readme: markdown::readme(&results)?,
        json: json::json(&results)?,
        raw: markdown::ministat_blocks(&results, Scale::Raw)?,
        untrusted: answer::untrusted(&results),
        trust_unknown: answer::trust_unknown(&results),
        misrouted: results.misrouted(),
        sentences: answer::sentences(&results),
        verdicts: results.verdicts().collect(),
        status: ReportStatus::of(&results),
        chart: graph::chart(&results),
        curves: graph_over::curves(&results),
        ratios: ratios::forest(&results),
        series: series(&results),
        overview: Overview::of(&results),
        warnings: results.warnings,
    })
}

/// The rates of one variant in one family, in the order of the blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportSeries {
    /// Name of the variant.
    pub variant: String,
    /// Name of the family.
    pub family: String,
    /// At the median machine speed, as the report has them.
    pub values: Vec<f64>,
    /// As they were measured.
    pub raw: Vec<f64>,
}

fn series(results: &Results) -> Vec<ReportSeries> {
    let experiment = &results.campaign.experiment;
    let of_cell = |cell: &cells::CellRuns| ReportSeries {
        variant: experiment.variants[cell.cell.variant].name.clone(),
        family: experiment.families[cell.cell.family].name.clone(),
        values: cell.values.clone(),
        raw: cell.raw.clone(),
    };
    results.judged.cells.all().iter().map(of_cell).collect()
}

impl Report {
    /// The rates of every variant in every family.
    pub fn series(&self) -> &[ReportSeries] {
        &self.series
    }

    /// Writes the files of the report to a results folder and replaces those of an earlier report.
    pub fn write(&self, folder: &Path) -> Result<(), LabError> {
        let svg = self.chart.svg().map_err(LabError::Chart)?;
        let png = self.chart.png().map_err(LabError::Chart)?;
        let files: [(&str, &[u8]); 4] = [
            ("README.md", self.readme.as_bytes()),
            ("graph.svg", svg.as_bytes()),
            ("graph.png", &png),
            ("report.json", self.json.as_bytes()),
        ];
        files.into_iter().try_for_each(|(name, bytes)| write_file(&folder.join(name), bytes))?;
        let curves = self.curves.as_ref().map(|curves| Ok((curves.svg()?, curves.png()?)));
        let ratios = self.ratios.as_ref().map(|ratios| Ok((ratios.svg()?, ratios.png()?)));
        picture::replace(folder, "curves", curves)?;
        picture::replace(folder, "ratios", ratios)
    }

    /// Returns the answer for the last lines of the terminal: a sentence for each comparison, the best variant of each
    /// family first. If the campaign cannot be trusted, if that is not known, or if an output was wrong, the first lines say so.
    pub fn verdict_lines(&self) -> Vec<String> {
        let trust = self.untrusted.iter().chain(&self.trust_unknown);
        trust.chain(&self.misrouted).chain(&self.sentences).cloned().collect()
    }

    /// Says that the machine or the set-up cannot be trusted, if the copy of the baseline shows it.
    pub fn untrusted(&self) -> Option<&str> {
        self.untrusted.as_deref()
    }

    /// Says that it is not known whether the machine or the set-up can be trusted, if comparisons are judged and the copy of
    /// the baseline is not.
    pub fn trust_unknown(&self) -> Option<&str> {
        self.trust_unknown.as_deref()
    }

    /// The ministat blocks with the rates as they were measured, not at the median machine speed.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// Returns a table for the terminal with every variant in every family. Its last columns are these counters.
    pub fn overview(&self, counters: &[String]) -> Result<String, UnknownCounter> {
        self.overview.table(counters)
    }

    /// The status of the campaign, for the exit code.
    pub fn status(&self) -> ReportStatus {
        self.status
    }

    /// One verdict for each comparison; `None` if it had too few valid runs.
    pub fn verdicts(&self) -> &[Option<Verdict>] {
        &self.verdicts
    }

    /// The warnings about the figures, each with advice.
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
