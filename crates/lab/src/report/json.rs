//! `report.json`: the report for programs.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::calibration::Calibration;
use crate::error::{ArchiveError, LabError};
use crate::experiment::{Published, Runs};
use crate::record::Turns;
use crate::stats::{CopyJudgement, Design, Effect, Judgement, Look, Verdict};
use crate::validity::Validity;

use super::answer;
use super::cells::CellRuns;
use super::comparisons::ComparisonResult;
use super::copies::CopyResult;
use super::results::Results;
use super::speed::{MachineSpeed, PanelSpeed};
use super::turns::FamilyTurns;

/// Version of the fields of the document.
const SCHEMA: u32 = 2;
const NAME: &str = "report.json";

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    /// Why no figure can be trusted, or null.
    untrusted: Option<String>,
    /// Why it is not known whether the figures can be trusted, or null.
    trust_unknown: Option<String>,
    /// Whose output was wrong.
    misrouted: Vec<String>,
    answer: Vec<String>,
    title: &'a str,
    /// What all rates count; null where families count different things.
    metric: Option<&'a str>,
    seed: u64,
    runs: Runs,
    first_look: u32,
    margin: f64,
    alpha: f64,
    seconds_per_block: f64,
    cells: Vec<CellEntry<'a>>,
    comparisons: Vec<ComparisonEntry<'a>>,
    copies: Vec<CopyEntry<'a>>,
    machine: Vec<MachineEntry<'a>>,
    turns: Vec<TurnsEntry<'a>>,
    published: Option<&'a Published>,
    warnings: &'a [String],
}

#[derive(Serialize)]
struct CellEntry<'a> {
    variant: &'a str,
    family: &'a str,
    /// What its rates count.
    metric: &'a str,
    made: usize,
    repeated: usize,
    invalid: &'a BTreeMap<Validity, usize>,
    /// Rates of the whole loop at the median machine speed.
    values: &'a [f64],
    /// The same as they were measured.
    raw: &'a [f64],
    /// Rates in the subject's own share of the time at the median machine speed; null where nothing remains.
    shares: Vec<Option<f64>>,
    min: Option<f64>,
    median: Option<f64>,
    max: Option<f64>,
    mean: Option<f64>,
    stddev: Option<f64>,
    median_raw: Option<f64>,
    median_share: Option<f64>,
    /// The part of the offered load that was lost.
    loss: Option<f64>,
    counters: &'a BTreeMap<String, f64>,
}

#[derive(Serialize)]
struct ComparisonEntry<'a> {
    family: &'a str,
    variant: &'a str,
    against: &'a str,
    test: Option<Design>,
    look: Option<Look>,
    /// Error rate of each interval.
    level: Option<f64>,
    whole: Option<Effect>,
    share: Option<Effect>,
    adjusted_p: Option<f64>,
    verdict: Option<Verdict>,
    /// Whether more blocks can change nothing.
    settled: Option<bool>,
    advice: Option<AdviceEntry>,
    not_judged: Option<&'a str>,
    /// The logarithms of the ratios, block by block; null where a block has none, or no share.
    ratios: Vec<Option<f64>>,
    share_ratios: Option<Vec<Option<f64>>>,
}

#[derive(Serialize)]
struct AdviceEntry {
    /// More blocks; null if no campaign has enough.
    blocks: Option<u32>,
    seconds: Option<f64>,
    /// The difference that they tell apart.
    difference: f64,
}

#[derive(Serialize)]
struct CopyEntry<'a> {
    family: &'a str,
    level: f64,
    /// Half the width of the 95 % interval.
    noise_floor: f64,
    #[serde(flatten)]
    judgement: &'a CopyJudgement,
}

#[derive(Serialize)]
struct MachineEntry<'a> {
    family: &'a str,
    /// What the baseline's control counts per second, the median over the panels.
    median: f64,
    /// The share of the rounds that is left out.
    left_out: f64,
    panels: &'a [PanelSpeed],
}

#[derive(Serialize)]
struct TurnsEntry<'a> {
    family: &'a str,
    turns: Turns,
    /// The names of the arms by their numbers.
    arms: BTreeMap<usize, String>,
    calibration: Option<&'a Calibration>,
}

pub(super) fn json(results: &Results) -> Result<String, LabError> {
    let malformed =
        |error: serde_json::Error| ArchiveError::Malformed { path: NAME.into(), message: error.to_string() };
    let text = serde_json::to_string_pretty(&document(results)).map_err(malformed)?;
    Ok(text + "\n")
}

fn document(results: &Results) -> Document<'_> {
    let experiment = &results.campaign.experiment;
    let judged = &results.judged;
    Document {
        schema: SCHEMA,
        untrusted: answer::untrusted(results),
        trust_unknown: answer::trust_unknown(results),
        misrouted: results.misrouted(),
        answer: answer::sentences(results),
        title: &experiment.title,
        metric: experiment.only_metric(),
        seed: experiment.seed,
        runs: experiment.runs,
        first_look: experiment.first_look(),
        margin: experiment.analysis.margin,
        alpha: experiment.analysis.alpha,
        seconds_per_block: results.campaign.seconds_per_block(),
        cells: judged.cells.by_family().map(|cell| cell_entry(results, cell)).collect(),
        comparisons: judged.comparisons.iter().map(|compared| comparison_entry(results, compared)).collect(),
        copies: judged.copies.iter().map(|copy| copy_entry(results, copy)).collect(),
        machine: machine_entries(results),
        turns: (0..experiment.families.len()).filter_map(|family| turns_entry(results, family)).collect(),
        published: experiment.published.as_ref(),
        warnings: &results.warnings,
    }
}

fn cell_entry<'a>(results: &'a Results, runs: &'a CellRuns) -> CellEntry<'a> {
    let described = runs.description();
    let described = described.as_ref();
    CellEntry {
        variant: &results.campaign.experiment.variants[runs.cell.variant].name,
        family: family(results, runs.cell.family),
        metric: results.campaign.experiment.metric(runs.cell.family),
        made: runs.made,
        repeated: runs.repeated,
        invalid: &runs.invalid,
        values: &runs.values,
        raw: &runs.raw,
        shares: runs.shares.iter().map(|share| finite(*share)).collect(),
        min: described.map(|cell| cell.min),
        median: described.map(|cell| cell.median),
        max: described.map(|cell| cell.max),
        mean: described.map(|cell| cell.mean),
        stddev: described.filter(|cell| cell.n > 1).map(|cell| cell.stddev),
        median_raw: runs.raw_median(),
        median_share: runs.share().and_then(finite),
        loss: runs.loss(),
        counters: &runs.counters,
    }
}

fn comparison_entry<'a>(results: &'a Results, compared: &'a ComparisonResult) -> ComparisonEntry<'a> {
    let variants = &results.campaign.experiment.variants;
    let judgement: Option<&Judgement> = compared.outcome.as_ref().ok();
    let finite_ones = |ratios: &Vec<f64>| ratios.iter().map(|ratio| finite(*ratio)).collect();
    ComparisonEntry {
        family: family(results, compared.family),
        variant: &variants[compared.comparison.variant].name,
        against: &variants[compared.comparison.against].name,
        test: judgement.map(|judgement| judgement.design),
        look: judgement.map(|judgement| judgement.look),
        level: judgement.map(|judgement| judgement.level),
        whole: judgement.map(|judgement| judgement.whole),
        share: judgement.and_then(|judgement| judgement.share),
        adjusted_p: judgement.map(|judgement| judgement.adjusted_p),
        verdict: judgement.map(|judgement| judgement.verdict),
        settled: judgement.map(|judgement| judgement.settled),
        advice: advice_entry(results, compared),
        not_judged: compared.outcome.as_ref().err().map(String::as_str),
        ratios: finite_ones(&compared.observed.whole),
        share_ratios: compared.observed.share.as_ref().map(finite_ones),
    }
}

fn advice_entry(results: &Results, compared: &ComparisonResult) -> Option<AdviceEntry> {
    let advice = compared.advice?;
    let seconds = |blocks: u32| f64::from(blocks) * results.campaign.seconds_per_block();
    Some(AdviceEntry {
        blocks: advice.blocks,
        seconds: advice.blocks.map(seconds),
        difference: advice.difference,
    })
}

fn copy_entry<'a>(results: &'a Results, copy: &'a CopyResult) -> CopyEntry<'a> {
    CopyEntry {
        family: family(results, copy.family),
        level: copy.level,
        noise_floor: copy.noise_floor(),
        judgement: &copy.judgement,
    }
}

fn machine_entries(results: &Results) -> Vec<MachineEntry<'_>> {
    let speeds = results.judged.speeds.iter().enumerate();
    speeds.filter_map(|(at, speed)| Some(machine_entry(family(results, at), speed.as_ref()?))).collect()
}

fn machine_entry<'a>(family: &'a str, speed: &'a MachineSpeed) -> MachineEntry<'a> {
    MachineEntry { family, median: speed.median, left_out: speed.left_out(), panels: &speed.panels }
}

fn turns_entry(results: &Results, at: usize) -> Option<TurnsEntry<'_>> {
    let turns = FamilyTurns::of(&results.campaign, at)?;
    Some(TurnsEntry {
        family: family(results, at),
        turns: turns.turns,
        arms: turns.arms(&results.campaign),
        calibration: turns.calibration(),
    })
}

fn family(results: &Results, family: usize) -> &str {
    &results.campaign.experiment.families[family].name
}

/// JSON has no infinite number.
fn finite(value: f64) -> Option<f64> {
    Some(value).filter(|value| value.is_finite())
}
