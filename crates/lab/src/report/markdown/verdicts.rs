//! The table of verdicts.

use crate::experiment::Analysis;
use crate::stats::{MOST_RUNS, Verdict};

use super::super::comparisons::{ComparisonResult, POWER};
use super::super::number::{counted, interval, probability, signed_percent};
use super::super::results::Results;
use super::syntax::{escaped, table};

pub(super) fn verdicts(results: &Results) -> String {
    if results.comparisons.is_empty() {
        return "## Verdicts\n\nNo variants are compared.".into();
    }
    let Analysis { margin, alpha, .. } = &results.campaign.experiment.analysis;
    let heading = [
        "Family",
        "Variant",
        "Against",
        "Difference",
        "Interval",
        "Test",
        "Adjusted p",
        "Verdict",
        "Smallest effect",
    ];
    let rows = results.comparisons.iter().map(|compared| verdict_row(results, compared)).collect::<Vec<_>>();
    format!(
        "## Verdicts\n\n{}\n\nThe unit of observation is one run. The difference is the ratio of the geometric \
         means of the valid runs, minus one. If both variants have one valid run in each of the same blocks, the \
         test is Student's t on the logarithms of the ratios within the blocks (paired); otherwise it is Welch's t \
         on the logarithms of both sets. Intervals and p are corrected by Holm's procedure for {}: the probability \
         of at least one false alarm among them is at most {:.0} %. Equivalent means that the whole interval is \
         within the margin of ±{:.2} %. The smallest effect is the difference that this number of runs with this \
         spread detects with a probability of {:.0} %.",
        table(&heading, &rows),
        counted(results.comparisons.len() as u32, "comparison"),
        alpha * 100.0,
        margin * 100.0,
        POWER * 100.0,
    )
}

fn verdict_row(results: &Results, compared: &ComparisonResult) -> Vec<String> {
    let label = |variant: usize| escaped(&results.campaign.experiment.variants[variant].label);
    let smallest =
        compared.smallest_effect.map_or_else(|| "–".into(), |effect| format!("{:.2} %", effect * 100.0));
    let names = [
        escaped(results.family(compared.family)),
        label(compared.comparison.variant),
        label(compared.comparison.against),
    ];
    let found = match &compared.outcome {
        Ok(judgement) => [
            signed_percent(judgement.effect.estimate),
            interval(judgement.effect.low, judgement.effect.high),
            judgement.design.to_string(),
            probability(judgement.adjusted_p),
            verdict(&judgement.verdict),
        ],
        Err(reason) => ["–", "–", "–", "–", &escaped(reason)].map(str::to_owned),
    };
    names.into_iter().chain(found).chain([smallest]).collect()
}

/// The word for the verdict, and how many runs an inconclusive one needs.
fn verdict(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Better => "**better**".into(),
        Verdict::Worse => "**worse**".into(),
        Verdict::Equivalent => "**equivalent**".into(),
        Verdict::Inconclusive { runs_needed: Some(runs) } => {
            format!("**inconclusive**: needs {} per variant", counted(*runs as u32, "more run"))
        }
        Verdict::Inconclusive { runs_needed: None } => {
            format!("**inconclusive**: needs more than {MOST_RUNS} runs per variant")
        }
    }
}
