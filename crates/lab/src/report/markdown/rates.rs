//! The rates: of the whole loop, and beside it what the subject's own share of it may be.

use super::super::cells::CellRuns;
use super::super::number::{grouped, ratio};
use super::super::results::Results;
use super::super::speed::MachineSpeed;
use super::syntax::{escaped, table};
use crate::stats::Description;

/// The section of the rates; empty for campaigns of whole runs, whose values the ministat blocks have.
pub(super) fn rates(results: &Results) -> String {
    if !results.has_panels() {
        return String::new();
    }
    let subtracts = results.judged.cells.all().iter().any(|cell| !cell.shares.is_empty());
    let heading = ["Family", "Variant", "Whole loop", "Minimum–maximum", "Factor", "Raw median", "Own share"];
    let columns = if subtracts { heading.len() } else { heading.len() - 1 };
    let rows = results.judged.cells.by_family().map(|cell| row(results, cell));
    let rows: Vec<Vec<String>> = rows.map(|row| row.into_iter().take(columns).collect()).collect();
    let share = if subtracts { SHARE } else { "" };
    format!(
        "## Rates\n\n{}\n\nRates are {}, the medians over the valid blocks. The rate of the whole loop \
         includes all that the bed does for the subject; it is shown {}. {}{share}",
        table(&heading[..columns], &rows),
        escaped(&results.metrics()),
        if results.is_paced() { AS_MEASURED } else { AT_MEDIAN_SPEED },
        speeds(results),
    )
}

const AT_MEDIAN_SPEED: &str = "at the median speed that the machine had during the campaign: the exponential of the midmean, \
                               over a block's rounds, of the logarithm of the rate over the control's in the same round, \
                               times the median over the blocks of the control's rate";

const AS_MEASURED: &str = "as it was measured, because a schedule offered the load";

const SHARE: &str = " The rate in the subject's own share of the time lies between that of the whole loop and the one that \
                     remains when the time of the control is subtracted: the subtraction holds as far as the bed costs \
                     the same with and without the subject.";

fn row(results: &Results, cell: &CellRuns) -> Vec<String> {
    let names = [escaped(results.family(cell.cell.family)), escaped(results.label(cell))];
    let figures = cell.description().zip(cell.raw_median()).map(|(rates, raw)| figures(cell, &rates, raw));
    let figures = figures.unwrap_or_else(|| ["–"; 5].map(str::to_owned));
    names.into_iter().chain(figures).collect()
}

fn figures(cell: &CellRuns, rates: &Description, raw: f64) -> [String; 5] {
    let share = cell.share().map_or("–".into(), |share| match share.is_finite() {
        true => format!("{} to {}", grouped(rates.median), grouped(share)),
        false => format!("{} or more", grouped(rates.median)),
    });
    let range = format!("{}–{}", grouped(rates.min), grouped(rates.max));
    [grouped(rates.median), range, ratio(rates.median / raw), grouped(raw), share]
}

/// A sentence about the machine in each family.
fn speeds(results: &Results) -> String {
    let speeds = results.judged.speeds.iter().enumerate();
    let said = speeds.filter_map(|(family, speed)| Some(speed_of(results.family(family), speed.as_ref()?)));
    said.collect::<Vec<_>>().join(" ")
}

fn speed_of(family: &str, speed: &MachineSpeed) -> String {
    let (least, most) = speed.factors();
    format!(
        "In {} the control counted {} a second in the median block, {} to {} times what it counted in each.",
        escaped(family),
        grouped(speed.median),
        ratio(least),
        ratio(most)
    )
}
