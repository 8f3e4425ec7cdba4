//! `report.json`: the report for programs.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::{ArchiveError, LabError};
use crate::stats::{Design, Effect, Verdict};
use crate::validity::Validity;

use super::cells::CellRuns;
use super::comparisons::ComparisonResult;
use super::results::Results;

/// Version of the fields of the document.
const SCHEMA: u32 = 1;
const NAME: &str = "report.json";

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    title: &'a str,
    metric: &'a str,
    seed: u64,
    runs: u32,
    margin: f64,
    alpha: f64,
    cells: Vec<CellEntry<'a>>,
    comparisons: Vec<ComparisonEntry<'a>>,
    warnings: &'a [String],
}

#[derive(Serialize)]
struct CellEntry<'a> {
    variant: &'a str,
    family: &'a str,
    made: usize,
    repeated: usize,
    invalid: &'a BTreeMap<Validity, usize>,
    values: &'a [f64],
    min: Option<f64>,
    median: Option<f64>,
    max: Option<f64>,
    mean: Option<f64>,
    stddev: Option<f64>,
    counters: &'a BTreeMap<String, f64>,
}

#[derive(Serialize)]
struct ComparisonEntry<'a> {
    family: &'a str,
    variant: &'a str,
    against: &'a str,
    test: Option<Design>,
    effect: Option<&'a Effect>,
    adjusted_p: Option<f64>,
    verdict: Option<&'a Verdict>,
    not_judged: Option<&'a str>,
    smallest_effect: Option<f64>,
}

pub(super) fn json(results: &Results) -> Result<String, LabError> {
    let malformed =
        |error: serde_json::Error| ArchiveError::Malformed { path: NAME.into(), message: error.to_string() };
    let text = serde_json::to_string_pretty(&document(results)).map_err(malformed)?;
    Ok(text + "\n")
}

fn document(results: &Results) -> Document<'_> {
    let experiment = &results.campaign.experiment;
    Document {
        schema: SCHEMA,
        title: &experiment.title,
        metric: &experiment.analysis.metric,
        seed: experiment.seed,
        runs: experiment.runs,
        margin: experiment.analysis.margin,
        alpha: experiment.analysis.alpha,
        cells: results.cells.by_family().map(|cell| cell_entry(results, cell)).collect(),
        comparisons: results.comparisons.iter().map(|compared| comparison_entry(results, compared)).collect(),
        warnings: &results.warnings,
    }
}

fn cell_entry<'a>(results: &'a Results, runs: &'a CellRuns) -> CellEntry<'a> {
    let described = runs.description();
    let described = described.as_ref();
    CellEntry {
        variant: &results.campaign.experiment.variants[runs.cell.variant].name,
        family: &results.campaign.experiment.families[runs.cell.family].name,
        made: runs.made,
        repeated: runs.repeated,
        invalid: &runs.invalid,
        values: &runs.values,
        min: described.map(|cell| cell.min),
        median: described.map(|cell| cell.median),
        max: described.map(|cell| cell.max),
        mean: described.map(|cell| cell.mean),
        stddev: described.filter(|cell| cell.n > 1).map(|cell| cell.stddev),
        counters: &runs.counters,
    }
}

fn comparison_entry<'a>(results: &'a Results, compared: &'a ComparisonResult) -> ComparisonEntry<'a> {
    let experiment = &results.campaign.experiment;
    let judgement = compared.outcome.as_ref().ok();
    ComparisonEntry {
        family: &experiment.families[compared.family].name,
        variant: &experiment.variants[compared.comparison.variant].name,
        against: &experiment.variants[compared.comparison.against].name,
        test: judgement.map(|judgement| judgement.design),
        effect: judgement.map(|judgement| &judgement.effect),
        adjusted_p: judgement.map(|judgement| judgement.adjusted_p),
        verdict: judgement.map(|judgement| &judgement.verdict),
        not_judged: compared.outcome.as_ref().err().map(String::as_str),
        smallest_effect: compared.smallest_effect,
    }
}
