//! `report.json`: the same facts for programs.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::{ArchiveError, LabError};
use crate::stats::{Design, Effect, Verdict};
use crate::validity::Validity;

use super::Facts;
use super::evidence::CellRuns;
use super::judged::Judged;

/// Version of the fields below.
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
    cells: Vec<Cell<'a>>,
    comparisons: Vec<Comparison<'a>>,
    warnings: &'a [String],
}

#[derive(Serialize)]
struct Cell<'a> {
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
struct Comparison<'a> {
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

pub(super) fn json(facts: &Facts) -> Result<String, LabError> {
    let experiment = &facts.campaign.experiment;
    let document = Document {
        schema: SCHEMA,
        title: &experiment.title,
        metric: &experiment.analysis.metric,
        seed: experiment.seed,
        runs: experiment.runs,
        margin: experiment.analysis.margin,
        alpha: experiment.analysis.alpha,
        cells: facts.evidence.by_family().map(|cell| facts.json_cell(cell)).collect(),
        comparisons: facts.judged.iter().map(|judged| facts.json_comparison(judged)).collect(),
        warnings: &facts.doubts,
    };
    let malformed =
        |error: serde_json::Error| ArchiveError::Malformed { path: NAME.into(), message: error.to_string() };
    let text = serde_json::to_string_pretty(&document).map_err(malformed)?;
    Ok(text + "\n")
}

impl Facts {
    fn json_cell<'a>(&'a self, runs: &'a CellRuns) -> Cell<'a> {
        let described = runs.description();
        let described = described.as_ref();
        Cell {
            variant: &self.campaign.experiment.variants[runs.cell.variant].name,
            family: &self.campaign.experiment.families[runs.cell.family].name,
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

    fn json_comparison<'a>(&'a self, judged: &'a Judged) -> Comparison<'a> {
        let experiment = &self.campaign.experiment;
        let judgement = judged.outcome.as_ref().ok();
        Comparison {
            family: &experiment.families[judged.family].name,
            variant: &experiment.variants[judged.comparison.variant].name,
            against: &experiment.variants[judged.comparison.against].name,
            test: judgement.map(|judgement| judgement.design),
            effect: judgement.map(|judgement| &judgement.effect),
            adjusted_p: judgement.map(|judgement| judgement.adjusted_p),
            verdict: judgement.map(|judgement| &judgement.verdict),
            not_judged: judged.outcome.as_ref().err().map(String::as_str),
            smallest_effect: judged.smallest_effect,
        }
    }
}
