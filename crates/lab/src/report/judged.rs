//! The declared comparisons, judged together as one family.

use crate::experiment::{Comparison, Experiment};
use crate::stats::{Contrast, Design, Judgement, Verdict, judge};

use super::evidence::{CellRuns, Evidence, FEWEST_RUNS};
use super::number::{counted, interval, signed_percent};

/// With this probability the runs that were made would have shown the smallest effect the report names.
pub(super) const POWER: f64 = 0.8;

/// One comparison in one family of measurements.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) comparison: Comparison,
    pub(super) family: usize,
    /// The judgement, or in plain words why there is none.
    pub(super) outcome: Result<Judgement, String>,
    /// Smallest relative difference these runs would have shown, from the spread they have.
    pub(super) smallest_effect: Option<f64>,
}

/// Judges every comparison in every family; all of them together keep the experiment's alpha.
pub(super) fn judge_all<S>(experiment: &Experiment<S>, evidence: &Evidence) -> Vec<Judged> {
    let comparisons = experiment.comparisons();
    let families = 0..experiment.families.len();
    let declared: Vec<(usize, Comparison)> =
        families.flat_map(|family| comparisons.iter().map(move |comparison| (family, *comparison))).collect();
    let runs: Vec<Runs> = declared
        .iter()
        .map(|(family, pair)| {
            Runs::of(evidence.cell(pair.against, *family), evidence.cell(pair.variant, *family))
        })
        .collect();
    let contrasts: Vec<Contrast<'_>> = runs.iter().map(Runs::contrast).collect();
    let judgements = judge(&contrasts, experiment.analysis.margin, experiment.analysis.alpha);
    // The first step of Holm's procedure is the strictest: what passes it passes all.
    let strictest = experiment.analysis.alpha / declared.len().max(1) as f64;
    let judged = declared.iter().zip(judgements).zip(contrasts).map(|((declared, judgement), contrast)| {
        let (family, comparison) = *declared;
        let baseline = evidence.cell(comparison.against, family);
        let variant = evidence.cell(comparison.variant, family);
        let smallest = contrast.smallest_effect(strictest, POWER);
        Judged {
            comparison,
            family,
            outcome: judgement.ok_or_else(|| obstacle(experiment, baseline, variant)),
            smallest_effect: smallest.filter(|effect| effect.is_finite()),
        }
    });
    judged.collect()
}

/// The runs of a comparison that may be judged: none of a cell that has too few. The comparison still counts as one of
/// the family.
struct Runs {
    baseline: Vec<f64>,
    variant: Vec<f64>,
    design: Design,
}

impl Runs {
    /// Pairs, where both cells have one valid run in each of the same blocks; else two sets.
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

fn obstacle<S>(experiment: &Experiment<S>, baseline: &CellRuns, variant: &CellRuns) -> String {
    let short = [variant, baseline].into_iter().find(|cell| !cell.enough());
    match short {
        Some(cell) => {
            let label = &experiment.variants[cell.cell.variant].label;
            let runs = counted(cell.values.len() as u32, "valid run");
            format!("not judged: {label} has {runs}, and {FEWEST_RUNS} are the least")
        }
        None => "not judged: a run of value zero has no ratio to another".into(),
    }
}

impl Judged {
    pub(super) fn verdict(&self) -> Option<Verdict> {
        self.outcome.as_ref().ok().map(|judgement| judgement.verdict)
    }

    /// For the terminal: family, pair, verdict, estimate, interval and test.
    pub(super) fn line<S>(&self, experiment: &Experiment<S>) -> String {
        let family = &experiment.families[self.family].title;
        let variant = &experiment.variants[self.comparison.variant].label;
        let against = &experiment.variants[self.comparison.against].label;
        let found = match &self.outcome {
            Ok(Judgement { effect, verdict, design, .. }) => {
                let (estimate, range) = (signed_percent(effect.estimate), interval(effect.low, effect.high));
                format!("{verdict}, {estimate} ({range}; {design})")
            }
            Err(obstacle) => obstacle.clone(),
        };
        format!("{family}: {variant} against {against}: {found}")
    }
}
