//! The results of the declared comparisons, which are judged together as one family of tests.

use crate::experiment::{Comparison, Experiment};
use crate::stats::{Contrast, Design, Judgement, Verdict, judge};

use super::cells::{CellRuns, Cells, FEWEST_RUNS};
use super::number::{counted, interval, signed_percent};

/// Probability with which the runs made detect the smallest effect that the report names.
pub(super) const POWER: f64 = 0.8;

/// The result of one comparison in one family of measurements.
#[derive(Debug)]
pub(super) struct ComparisonResult {
    pub(super) comparison: Comparison,
    pub(super) family: usize,
    /// The judgement, or the reason why there is none.
    pub(super) outcome: Result<Judgement, String>,
    /// Smallest relative difference that these runs, with their spread, detect.
    pub(super) smallest_effect: Option<f64>,
}

/// Judges every comparison in every family. The error rate of all of them together is the alpha of the experiment.
pub(super) fn compare<S>(experiment: &Experiment<S>, cells: &Cells) -> Vec<ComparisonResult> {
    let declared = declared(experiment);
    let runs: Vec<JudgedRuns> = declared
        .iter()
        .map(|(family, pair)| {
            JudgedRuns::of(cells.cell(pair.against, *family), cells.cell(pair.variant, *family))
        })
        .collect();
    let contrasts: Vec<Contrast<'_>> = runs.iter().map(JudgedRuns::contrast).collect();
    let judgements = judge(&contrasts, experiment.analysis.margin, experiment.analysis.alpha);
    // The first step of Holm's procedure has the strictest level: a test that passes it passes at any step.
    let strictest = experiment.analysis.alpha / declared.len().max(1) as f64;
    let judged = declared.iter().zip(judgements).zip(contrasts).map(|((declared, judgement), contrast)| {
        let (family, comparison) = *declared;
        let baseline = cells.cell(comparison.against, family);
        let variant = cells.cell(comparison.variant, family);
        let smallest = contrast.smallest_effect(strictest, POWER);
        ComparisonResult {
            comparison,
            family,
            outcome: judgement.ok_or_else(|| not_judged(experiment, baseline, variant)),
            smallest_effect: smallest.filter(|effect| effect.is_finite()),
        }
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

/// The reason why a comparison has no judgement.
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

    /// Returns a line for the terminal: family, pair, verdict, estimate, interval and test.
    pub(super) fn line<S>(&self, experiment: &Experiment<S>) -> String {
        let family = &experiment.families[self.family].title;
        let variant = &experiment.variants[self.comparison.variant].label;
        let against = &experiment.variants[self.comparison.against].label;
        let found = match &self.outcome {
            Ok(Judgement { effect, verdict, design, .. }) => {
                let (estimate, range) = (signed_percent(effect.estimate), interval(effect.low, effect.high));
                format!("{verdict}, {estimate} ({range}; {design})")
            }
            Err(reason) => reason.clone(),
        };
        format!("{family}: {variant} against {against}: {found}")
    }
}
