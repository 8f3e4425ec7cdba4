//! The graph of the ratios: every comparison that was judged, with the intervals that decided it.

use super::chart::{Forest, ForestGroup, ForestRow, RatioInterval};
use super::comparisons::ComparisonResult;
use super::graph::{axis_label, notes};
use super::number::{counted, percent, times};
use super::results::Results;
use crate::stats::{Effect, Judgement};

/// The graph, if anything was judged.
pub(super) fn forest(results: &Results) -> Option<Forest> {
    let families = 0..results.campaign.experiment.families.len();
    let baseline = only_baseline(results);
    let groups = families.map(|family| group(results, family, baseline.is_none()));
    let groups: Vec<ForestGroup> = groups.filter(|group| !group.rows.is_empty()).collect();
    let margin = results.margin();
    (!groups.is_empty()).then(|| Forest {
        title: results.title().into(),
        x_label: x_label(results, baseline),
        notes: format!("{} — {}", meaning(results), notes(results)),
        margin,
        margin_label: format!("within the margin of ±{}", percent(margin)),
        share_label: "pale: in the variant's own share of the loop".into(),
        groups,
    })
}

fn group(results: &Results, family: usize, names_baselines: bool) -> ForestGroup {
    let of_family = results.judged.comparisons.iter().filter(|compared| compared.family == family);
    ForestGroup {
        title: results.family(family).into(),
        rows: of_family.filter_map(|compared| row(results, compared, names_baselines)).collect(),
    }
}

/// A comparison that was not judged has no row, and one whose ratio is too large for a figure has none either.
fn row(results: &Results, compared: &ComparisonResult, names_baselines: bool) -> Option<ForestRow> {
    let judgement = compared.outcome.as_ref().ok()?;
    let label = |variant: usize| results.campaign.experiment.variants[variant].label.clone();
    let comparison = compared.comparison;
    Some(ForestRow {
        label: label(comparison.variant),
        against: names_baselines.then(|| format!("against {}", label(comparison.against))),
        figures: figures(judgement),
        whole: interval(&judgement.whole)?,
        share: judgement.share.as_ref().and_then(interval),
        verdict: judgement.verdict,
    })
}

/// "1.188 ×" and "(1.183–1.192)".
fn figures(judgement: &Judgement) -> [String; 2] {
    let Effect { estimate, low, high, .. } = judgement.whole;
    let [estimate, low, high] = [estimate, low, high].map(|difference| times(1.0 + difference));
    [format!("{estimate} ×"), format!("({low}–{high})")]
}

fn interval(effect: &Effect) -> Option<RatioInterval> {
    let [estimate, low, high] = [effect.estimate, effect.low, effect.high].map(|difference| 1.0 + difference);
    let is_ratio = estimate.is_finite() && estimate > 0.0;
    is_ratio.then_some(RatioInterval { estimate, low, high })
}

/// The label of the variant with which all others are compared, if there is only one.
fn only_baseline(results: &Results) -> Option<&str> {
    let mut baselines = results.judged.comparisons.iter().map(|compared| compared.comparison.against);
    let first = baselines.next()?;
    baselines.all(|other| other == first).then(|| results.campaign.experiment.variants[first].label.as_str())
}

fn x_label(results: &Results, baseline: Option<&str>) -> String {
    let metric = results.campaign.experiment.only_metric().map_or_else(|| "Rates".into(), axis_label);
    let baseline = baseline.unwrap_or("the variant compared with");
    format!("{metric}: multiple of {baseline}")
}

/// How far the intervals hold, and what a verdict holds for.
fn meaning(results: &Results) -> String {
    let comparisons = counted(results.judged.comparisons.len() as u32, "comparison");
    let level = percent(1.0 - results.campaign.experiment.analysis.alpha);
    if results.has_shares() {
        return format!(
            "The intervals of the whole loop hold together for {comparisons} with a probability of {level}, and so do those \
             of the share; a verdict holds for both"
        );
    }
    format!("The intervals hold together for {comparisons} with a probability of {level}")
}
