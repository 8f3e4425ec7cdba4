//! The table of verdicts.

use crate::experiment::Analysis;
use crate::stats::{Effect, Judgement};

use super::super::comparisons::ComparisonResult;
use super::super::number::{counted, interval, part, percent, probability, signed_percent};
use super::super::results::Results;
use super::syntax::{escaped, table};

pub(super) fn verdicts(results: &Results) -> String {
    if results.judged.comparisons.is_empty() {
        return "## Verdicts\n\nNo variants are compared.".into();
    }
    let panels = results.has_panels();
    let whole = if panels { "Whole loop" } else { "Difference" };
    let names = ["Family", "Variant", "Against"];
    let judged: &[&str] = match panels {
        true => &["Blocks", whole, "Interval", "Own share", "Interval"],
        false => &[whole, "Interval", "Test"],
    };
    let last = ["Adjusted p", "Smallest difference", "Verdict"];
    let heading: Vec<&str> = names.iter().chain(judged).chain(&last).copied().collect();
    let comparisons = &results.judged.comparisons;
    let rows: Vec<Vec<String>> = comparisons.iter().map(|compared| row(results, compared)).collect();
    format!("## Verdicts\n\n{}\n\n{}", table(&heading, &rows), meaning(results))
}

fn meaning(results: &Results) -> String {
    let Analysis { margin, alpha, .. } = &results.campaign.experiment.analysis;
    let unit = if results.has_panels() { "block" } else { "run" };
    format!(
        "The unit of observation is one {unit}{}. {} The probability of at least one false verdict among them is at most {}. \
         The margin is ±{}. The smallest difference is the one that this \
         number of {unit}s with this spread tells apart from the margin with a probability of {}.",
        if results.has_panels() { ", and those of the last look are judged" } else { "" },
        together(results),
        percent(*alpha),
        percent(*margin),
        percent(POWER),
    )
}

/// How far the intervals hold. Those of the shares are a second set, as wide as if it were the only one, because a verdict
/// needs both.
fn together(results: &Results) -> String {
    let comparisons = counted(results.judged.comparisons.len() as u32, "comparison");
    let level = percent(1.0 - results.campaign.experiment.analysis.alpha);
    if !results.has_shares() {
        return format!("Intervals and p hold together for {comparisons} with a probability of {level}.");
    }
    format!(
        "The intervals of the whole loop hold together for {comparisons} with a probability of {level}, and so do those of \
         the own share; verdicts and p need both."
    )
}

fn row(results: &Results, compared: &ComparisonResult) -> Vec<String> {
    let label = |variant: usize| escaped(&results.campaign.experiment.variants[variant].label);
    let names = [
        escaped(results.family(compared.family)),
        label(compared.comparison.variant),
        label(compared.comparison.against),
    ];
    let found = match &compared.outcome {
        Ok(judgement) => judged(results, judgement, compared),
        Err(reason) => {
            let dashes = if results.has_panels() { 7 } else { 5 };
            vec!["–".into(); dashes].into_iter().chain([escaped(reason)]).collect()
        }
    };
    names.into_iter().chain(found).collect()
}

fn judged(results: &Results, judgement: &Judgement, compared: &ComparisonResult) -> Vec<String> {
    let shown = |effect: &Effect| [signed_percent(effect.estimate), interval(effect.low, effect.high)];
    let untold = if compared.observed.share.is_some() { "untold" } else { "–" };
    let share = judgement.share.as_ref().map_or(["–".into(), untold.into()], shown);
    let panels = results.has_panels();
    let second = if panels { share.to_vec() } else { vec![judgement.design.to_string()] };
    let blocks = panels.then(|| judgement.look.blocks.to_string());
    let smallest = part(judgement.smallest_difference(results.margin(), POWER));
    let last = [probability(judgement.adjusted_p), smallest, format!("**{}**", judgement.verdict)];
    blocks.into_iter().chain(shown(&judgement.whole)).chain(second).chain(last).collect()
}

/// The probability with which the smallest difference is found.
const POWER: f64 = 0.8;
