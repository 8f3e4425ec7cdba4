//! The results of the declared comparisons, which are judged together as one family of tests.

use crate::decision::{Decision, JudgedComparison, looks};
use crate::experiment::{Comparison, Experiment};
use crate::stats::{Advice, Contrast, Design, Judgement, Observed, Rules, Verdict, advise, judge_runs};

use super::cells::{CellRuns, Cells, FEWEST_RUNS};
use super::number::counted;

/// The result of one comparison in one family of measurements.
#[derive(Debug)]
pub(super) struct ComparisonResult {
    pub(super) comparison: Comparison,
    pub(super) family: usize,
    /// The log ratios of the blocks; empty for campaigns without panels.
    pub(super) observed: Observed,
    /// The judgement, or the reason why there is none.
    pub(super) outcome: Result<Judgement, String>,
    /// What more blocks would do, if more blocks can do anything.
    pub(super) advice: Option<Advice>,
}

/// Takes over the judgements of panels.
pub(super) fn compare_panels<S>(
    experiment: &Experiment<S>,
    decision: Decision,
    cells: &Cells,
) -> Vec<ComparisonResult> {
    let rules = Rules {
        margin: experiment.analysis.margin,
        alpha: experiment.analysis.alpha,
        looks: looks(experiment.first_look()),
    };
    let observed: Vec<Observed> = decision.comparisons.iter().map(|judged| judged.observed.clone()).collect();
    let advice = advise(&observed, &rules);
    let result = |(judged, advice): (JudgedComparison, Option<Advice>)| {
        let reason = || unjudged(experiment, &judged, cells);
        let outcome = judged.judgement.ok_or_else(reason);
        let open = outcome.as_ref().is_ok_and(|judgement| !judgement.settled);
        ComparisonResult {
            comparison: judged.comparison,
            family: judged.family,
            advice: advice.filter(|_| open),
            outcome,
            observed: judged.observed,
        }
    };
    decision.comparisons.into_iter().zip(advice).map(result).collect()
}

/// The reason why a comparison of panels has no judgement.
fn unjudged<S>(experiment: &Experiment<S>, judged: &JudgedComparison, cells: &Cells) -> String {
    let Comparison { variant, against } = judged.comparison;
    let label = |cell: &CellRuns| &experiment.variants[cell.cell.variant].label;
    let both = || [variant, against].into_iter().map(|variant| cells.cell(variant, judged.family));
    if let Some(absent) = both().find(|cell| cell.is_set_aside()) {
        let reasons: Vec<&str> = absent.invalid.keys().map(|reason| reason.name()).collect();
        return format!("not judged: {} took no turns ({})", label(absent), reasons.join(", "));
    }
    let ratios = &judged.observed.whole;
    let without = ratios.iter().filter(|ratio| ratio.is_nan()).count();
    if without > 0 {
        let least = both().min_by_key(|cell| cell.values.len()).map_or("a variant", |cell| label(cell));
        let all = ratios.len();
        let blocks = if without == all { String::new() } else { format!(" in {without} of {all} blocks") };
        return format!("not judged: {least} has a rate of zero{blocks}, so there is no ratio");
    }
    let made = ratios.len();
    format!(
        "not judged: {made} of the {} valid blocks that the first look needs",
        experiment.first_look().max(2)
    )
}

/// Judges every comparison of whole runs (schema 1) in every family.
pub(super) fn compare_runs<S>(experiment: &Experiment<S>, cells: &Cells) -> Vec<ComparisonResult> {
    let declared = declared(experiment);
    let runs: Vec<JudgedRuns> = declared
        .iter()
        .map(|(family, pair)| {
            JudgedRuns::of(cells.cell(pair.against, *family), cells.cell(pair.variant, *family))
        })
        .collect();
    let contrasts: Vec<Contrast<'_>> = runs.iter().map(JudgedRuns::contrast).collect();
    let judgements = judge_runs(&contrasts, experiment.analysis.margin, experiment.analysis.alpha);
    let judged = declared.iter().zip(judgements).map(|(declared, judgement)| {
        let (family, comparison) = *declared;
        let baseline = cells.cell(comparison.against, family);
        let variant = cells.cell(comparison.variant, family);
        let outcome = judgement.ok_or_else(|| not_judged(experiment, baseline, variant));
        ComparisonResult { comparison, family, observed: Observed::default(), outcome, advice: None }
    });
    judged.collect()
}

/// Lists every comparison in every family, each with the position of its family.
fn declared<S>(experiment: &Experiment<S>) -> Vec<(usize, Comparison)> {
    let comparisons = experiment.comparisons();
    let families = 0..experiment.families.len();
    families.flat_map(|family| comparisons.iter().map(move |comparison| (family, *comparison))).collect()
}

/// The values that a comparison judges. A cell with too few runs has none here, but its comparison still counts as a
/// member of the family.
struct JudgedRuns {
    baseline: Vec<f64>,
    variant: Vec<f64>,
    design: Design,
}

impl JudgedRuns {
    /// The runs are paired if both cells have one valid run in each of the same blocks.
    fn of(baseline: &CellRuns, variant: &CellRuns) -> Self {
        let complete = baseline.by_block.keys().eq(variant.by_block.keys());
        let once = [baseline, variant].iter().all(|cell| cell.by_block.len() == cell.values.len());
        let design = if complete && once { Design::Paired } else { Design::Independent };
        let judgeable = |cell: &CellRuns| match design {
            _ if !cell.enough() => Vec::new(),
            Design::Paired => cell.by_block.values().copied().collect(),
            Design::Independent => cell.values.clone(),
        };
        Self { baseline: judgeable(baseline), variant: judgeable(variant), design }
    }

    fn contrast(&self) -> Contrast<'_> {
        Contrast { baseline: &self.baseline, variant: &self.variant, design: self.design }
    }
}

/// The reason why a comparison of whole runs has no judgement.
fn not_judged<S>(experiment: &Experiment<S>, baseline: &CellRuns, variant: &CellRuns) -> String {
    let short = [variant, baseline].into_iter().find(|cell| !cell.enough());
    match short {
        Some(cell) => {
            let label = &experiment.variants[cell.cell.variant].label;
            let runs = counted(cell.values.len() as u32, "valid run");
            format!("not judged: {label} has {runs}, and at least {FEWEST_RUNS} are needed")
        }
        None => "not judged: a run has the value zero, so there is no ratio".into(),
    }
}

impl ComparisonResult {
    pub(super) fn verdict(&self) -> Option<Verdict> {
        self.outcome.as_ref().ok().map(|judgement| judgement.verdict)
    }

    /// The estimated difference of the whole loop, if it is judged.
    pub(super) fn estimate(&self) -> Option<f64> {
        self.outcome.as_ref().ok().map(|judgement| judgement.whole.estimate)
    }
}
