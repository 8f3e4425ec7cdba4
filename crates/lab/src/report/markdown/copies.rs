//! The hidden copy of the baseline.

use super::super::copies::CopyResult;
use super::super::judged::Judged;
use super::super::number::{interval, percent, signed_percent};
use super::super::results::Results;
use super::syntax::{escaped, table};
use crate::stats::COPY_ALPHA;

/// The section of the copies; empty for campaigns without them and before the first look.
pub(super) fn copies(results: &Results) -> String {
    let Judged { copies, unjudged_copies, .. } = &results.judged;
    if copies.is_empty() && unjudged_copies.is_empty() {
        return String::new();
    }
    let heading = ["Family", "Blocks", "Difference", "Interval", "Noise floor", "Trusted"];
    let unjudged = unjudged_copies.iter().map(|family| unjudged_row(results, *family));
    let rows: Vec<Vec<String>> = copies.iter().map(|copy| row(results, copy)).chain(unjudged).collect();
    let baseline = results.spoken(results.campaign.experiment.baseline());
    format!(
        "## The same variant twice\n\n{}\n\nA hidden copy of {} takes turns like the variants. Its difference should be \
         zero: if an interval excludes zero, the machine or the set-up cannot be trusted. All families and looks together \
         do so by chance in at most {} of campaigns. The noise floor is half the width of the 95 % interval: smaller \
         differences drown in it.",
        table(&heading, &rows),
        escaped(baseline),
        percent(COPY_ALPHA),
    )
}

fn row(results: &Results, copy: &CopyResult) -> Vec<String> {
    let effect = &copy.judgement.effect;
    vec![
        escaped(results.family(copy.family)),
        copy.judgement.look.blocks.to_string(),
        signed_percent(effect.estimate),
        interval(effect.low, effect.high),
        format!("±{:.2} %", 100.0 * copy.noise_floor()),
        if copy.judgement.differs { "**no**" } else { "yes" }.into(),
    ]
}

fn unjudged_row(results: &Results, family: usize) -> Vec<String> {
    let none = || "–".to_owned();
    vec![escaped(results.family(family)), none(), none(), none(), none(), "**not known**".into()]
}
