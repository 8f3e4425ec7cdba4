//! What a campaign has decided so far: the judgement of every comparison, and of the copies of the baseline.

use crate::experiment::{Comparison, Experiment};
use crate::observations::{Observations, PanelObservation};
use crate::stats::{CopyJudgement, Judgement, Looks, Observed, Rules, judge, judge_copy};

/// The judgements of a campaign.
#[derive(Debug)]
pub(crate) struct Decision {
    /// Every comparison in every family.
    pub(crate) comparisons: Vec<JudgedComparison>,
    /// The copy of the baseline in every family; `None` before the first look.
    pub(crate) copies: Vec<Option<CopyJudgement>>,
}

/// One comparison in one family.
#[derive(Debug)]
pub(crate) struct JudgedComparison {
    pub(crate) family: usize,
    pub(crate) comparison: Comparison,
    /// The observations, panel by panel.
    pub(crate) observed: Observed,
    /// `None` if there are too few valid panels, or if a variant takes no turns.
    pub(crate) judgement: Option<Judgement>,
    /// Whether no more panels can help, because one of the variants takes no turns, or because a block has no ratio.
    pub(crate) hopeless: bool,
}

/// The looks of a campaign whose first look is at this number of blocks.
pub(crate) fn looks(first: u32) -> Looks {
    Looks::starting_at(first)
}

impl Decision {
    /// Judges the observations at the last look that they allow.
    pub(crate) fn of<S>(experiment: &Experiment<S>, first_look: u32, observations: &Observations) -> Self {
        let rules = Rules {
            margin: experiment.analysis.margin,
            alpha: experiment.analysis.alpha,
            looks: looks(first_look),
        };
        let declared = declared(experiment);
        let observed: Vec<Observed> = declared
            .iter()
            .map(|(family, pair)| observed(observations.family(*family), pair.variant, pair.against))
            .collect();
        let judgements = judge(&observed, &rules);
        let comparisons = declared.into_iter().zip(observed).zip(judgements);
        let judged = comparisons.map(|(((family, comparison), observed), judgement)| JudgedComparison {
            family,
            comparison,
            hopeless: !observations.family(family).is_empty() && is_hopeless(&observed),
            observed,
            judgement,
        });
        Self { comparisons: judged.collect(), copies: copies(experiment, &rules.looks, observations) }
    }

    /// Whether more panels cannot change anything: every comparison is decided, as far as it can be.
    pub(crate) fn is_complete(&self) -> bool {
        let settled = |judgement: &Judgement| judgement.settled;
        self.comparisons.iter().all(|one| one.hopeless || one.judgement.as_ref().is_some_and(settled))
    }
}

/// Lists every comparison in every family, each with the position of its family.
fn declared<S>(experiment: &Experiment<S>) -> Vec<(usize, Comparison)> {
    let comparisons = experiment.comparisons();
    let families = 0..experiment.families.len();
    families.flat_map(|family| comparisons.iter().map(move |comparison| (family, *comparison))).collect()
}

/// The observations of two members in the panels in which both took turns. A panel of these that has no ratio, because
/// nothing came out of a member for too long, has a NaN: left out, it would be by its own value.
pub(crate) fn observed(panels: &[PanelObservation], member: usize, against: usize) -> Observed {
    let measured: Vec<&PanelObservation> =
        panels.iter().filter(|panel| panel.has(member) && panel.has(against)).collect();
    let subtracts = measured.iter().any(|panel| panel.subtracts());
    let of = |figure: fn(&PanelObservation, usize, usize) -> Option<f64>| {
        measured.iter().map(|panel| figure(panel, member, against).unwrap_or(f64::NAN)).collect()
    };
    Observed {
        whole: of(PanelObservation::ratio),
        share: subtracts.then(|| of(PanelObservation::share_ratio)),
    }
}

fn is_hopeless(Observed { whole, share }: &Observed) -> bool {
    let lacks_one = |ratios: &Vec<f64>| ratios.iter().any(|ratio| ratio.is_nan());
    whole.is_empty() || lacks_one(whole) || share.as_ref().is_some_and(lacks_one)
}

fn copies<S>(
    experiment: &Experiment<S>,
    looks: &Looks,
    observations: &Observations,
) -> Vec<Option<CopyJudgement>> {
    let (baseline, copy) = (experiment.baseline(), experiment.variants.len());
    let families = 0..experiment.families.len();
    let ratios: Vec<Vec<f64>> =
        families.map(|family| observed(observations.family(family), copy, baseline).whole).collect();
    judge_copy(&ratios, looks)
}
