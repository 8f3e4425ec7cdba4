//! The length of the turns: what was tried, what was chosen, and what it may cost.

use crate::calibration::{Agreement, ArmDifference, TriedLength};

use super::super::number::{interval, percent};
use super::super::results::Results;
use super::super::turns::{FamilyTurns, length};
use super::syntax::{escaped, table};

pub(super) fn turns(results: &Results) -> String {
    let families = 0..results.campaign.experiment.families.len();
    let of_family = |family| {
        let turns = FamilyTurns::of(&results.campaign, family)?;
        Some(family_text(results, family, &turns))
    };
    let text: Vec<String> = families.filter_map(of_family).collect();
    if text.is_empty() { String::new() } else { format!("## Turns\n\n{TURNS}\n\n{}", text.join("\n\n")) }
}

const TURNS: &str = "A turn begins with a lead-in that does not count: it restores the caches that the turns of the others \
                     changed. Unless the experiment sets the length of the rest, the slice, a calibration tries lengths, \
                     each twice the one before, and takes the first that is not refuted. A length is refuted if the rate of \
                     some arm is shown to differ by more than the limit, a quarter of the margin, from its rate at the end \
                     of turns eight times as long, and proven if the rates of all arms are shown to differ by less. Between \
                     the two, it may cost an arm whatever its interval contains. The differences are 99.9 % intervals of \
                     the rates in such turns from those at the end of the long ones.";

fn family_text(results: &Results, family: usize, turns: &FamilyTurns<'_>) -> String {
    let (slice, lead_in) = (length(turns.turns.slice_us), length(turns.turns.lead_in_us));
    let title = escaped(results.family(family));
    let lengths = format!("{title}: slices of {slice} after a lead-in of {lead_in}");
    match turns.calibration() {
        None => format!("{lengths}, set by the experiment."),
        Some(calibration) => {
            let limit = percent(calibration.limit);
            let tried = tried(results, turns, &calibration.tried);
            let shown = turns.shown().unwrap_or_default();
            format!("{lengths}; the limit is ±{limit}. {shown}{}\n\n{tried}", cost(results, turns))
        }
    }
}

/// What the chosen length may cost, if it is not proven to be fair.
fn cost(results: &Results, turns: &FamilyTurns<'_>) -> String {
    match turns.chosen().is_some_and(|chosen| chosen.agreement == Agreement::Proven) {
        true => String::new(),
        false => format!(" **But {}.**", escaped(&turns.cost(&results.campaign))),
    }
}

fn tried(results: &Results, turns: &FamilyTurns<'_>, tried: &[TriedLength]) -> String {
    let first = ["Length", "Lead-in", "Pairs", "Agreement"].map(str::to_owned);
    let names = turns.arms(&results.campaign).into_values().map(|name| escaped(&name));
    let heading: Vec<String> = first.into_iter().chain(names).collect();
    let heading: Vec<&str> = heading.iter().map(String::as_str).collect();
    let rows: Vec<Vec<String>> = tried.iter().map(row).collect();
    table(&heading, &rows)
}

fn row(tried: &TriedLength) -> Vec<String> {
    let agreement = match tried.agreement {
        Agreement::Proven => "proven",
        Agreement::Open => "open",
        Agreement::Refuted => "refuted",
    };
    let first = [length(tried.slice_us), length(tried.lead_in_us), tried.pairs.to_string(), agreement.into()];
    first.into_iter().chain(tried.arms.iter().map(difference)).collect()
}

fn difference(arm: &ArmDifference) -> String {
    if arm.high > 1.0 { "unknown".into() } else { interval(arm.low, arm.high) }
}
