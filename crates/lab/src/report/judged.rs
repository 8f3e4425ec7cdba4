//! The declared comparisons, judged together as one family.

use crate::experiment::{Comparison, Experiment};
use crate::stats::{Judgement, Verdict, judge, smallest_effect};

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
    let pairs: Vec<(&[f64], &[f64])> = declared
        .iter()
        .map(|(family, pair)| {
            (judgeable(evidence.cell(pair.against, *family)), judgeable(evidence.cell(pair.variant, *family)))
        })
        .collect();
    let judgements = judge(&pairs, experiment.analysis.margin, experiment.analysis.alpha);
    // The first step of Holm's procedure is the strictest: what passes it passes all.
    let strictest = experiment.analysis.alpha / declared.len().max(1) as f64;
    let judged = declared.iter().zip(judgements).map(|((family, comparison), judgement)| {
        let baseline = evidence.cell(comparison.against, *family);
        let variant = evidence.cell(comparison.variant, *family);
        Judged {
            comparison: *comparison,
            family: *family,
            outcome: judgement.ok_or_else(|| obstacle(experiment, baseline, variant)),
            smallest_effect: smallest(baseline, variant, strictest),
        }
    });
    judged.collect()
}

/// The runs that may be judged: none, when there are too few. The comparison still counts as one of the family.
fn judgeable(cell: &CellRuns) -> &[f64] {
    if cell.enough() { &cell.values } else { &[] }
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

fn smallest(baseline: &CellRuns, variant: &CellRuns, alpha: f64) -> Option<f64> {
    if !(baseline.enough() && variant.enough()) {
        return None;
    }
    let (one, other) = (baseline.description()?, variant.description()?);
    let spread = |mean: f64, stddev: f64| stddev / mean;
    let (one_cv, other_cv) = (spread(one.mean, one.stddev), spread(other.mean, other.stddev));
    let pooled = ((one_cv.powi(2) + other_cv.powi(2)) / 2.0).sqrt();
    smallest_effect(one.n.min(other.n), pooled, alpha, POWER).filter(|effect| effect.is_finite())
}

impl Judged {
    pub(super) fn verdict(&self) -> Option<Verdict> {
        self.outcome.as_ref().ok().map(|judgement| judgement.verdict)
    }

    /// For the terminal: family, pair, verdict, estimate and interval.
    pub(super) fn line<S>(&self, experiment: &Experiment<S>) -> String {
        let family = &experiment.families[self.family].title;
        let variant = &experiment.variants[self.comparison.variant].label;
        let against = &experiment.variants[self.comparison.against].label;
        let found = match &self.outcome {
            Ok(Judgement { effect, verdict, .. }) => {
                let (estimate, range) = (signed_percent(effect.estimate), interval(effect.low, effect.high));
                format!("{verdict}, {estimate} ({range})")
            }
            Err(obstacle) => obstacle.clone(),
        };
        format!("{family}: {variant} against {against}: {found}")
    }
}
