//! The warnings about a campaign of whole runs (schema 1), and those that every campaign may have; each with advice.

use crate::campaign::Campaign;
use crate::stats::{warnings_of_runs, warnings_of_spreads};

use super::cells::{CellRuns, Cells};
use super::comparisons::ComparisonResult;
use super::judged::Judged;
use super::number::counted;

pub(super) fn warnings(campaign: &Campaign, judged: &Judged) -> Vec<String> {
    let cells = &judged.cells;
    let mut found = of_campaign(campaign);
    found.extend(missing_runs(campaign, cells));
    for cell in cells.by_family().filter(|cell| cell.made > 0) {
        let name = name(campaign, cell);
        found.extend(warnings_of_runs(&cell.values).iter().map(|warning| format!("{name}: {warning}")));
    }
    for compared in judged.comparisons.iter().filter(|compared| compared.outcome.is_ok()) {
        found.extend(of_spreads(campaign, cells, compared));
    }
    found
}

/// The warnings about two cells whose values vary very differently.
fn of_spreads(campaign: &Campaign, cells: &Cells, compared: &ComparisonResult) -> Vec<String> {
    let ComparisonResult { comparison, family, .. } = compared;
    let cell = |variant| cells.cell(variant, *family);
    let (baseline, variant) = (cell(comparison.against), cell(comparison.variant));
    let names = format!("{} against {}", name(campaign, variant), label(campaign, baseline));
    let spreads = warnings_of_spreads(&baseline.values, &variant.values);
    spreads.into_iter().map(|warning| format!("{names}: {warning}")).collect()
}

/// The warnings about the build and the journal.
pub(super) fn of_campaign(campaign: &Campaign) -> Vec<String> {
    let debug = campaign.provenance.build.debug;
    let debug =
        debug.then(|| "measured with a debug build: its rates are not those of a release build".into());
    let torn = campaign.torn_line.map(|line| {
        format!(
            "line {line} of the journal is incomplete: what it described was lost when the program stopped"
        )
    });
    debug.into_iter().chain(torn).collect()
}

/// Returns a warning with the number of planned runs that have no valid result, and how to get them.
fn missing_runs(campaign: &Campaign, cells: &Cells) -> Option<String> {
    let planned = campaign.blocks() as usize;
    let lacking = |cell: &CellRuns| planned.saturating_sub(cell.values.len());
    let short = cells.all().iter().filter(|cell| lacking(cell) > 0).count();
    let missing: usize = cells.all().iter().map(lacking).sum();
    let all = planned * cells.all().len();
    let count = format!(
        "{missing} of the {all} planned runs have no valid result, in {}: see the validity table",
        counted(short as u32, "cell")
    );
    (short > 0).then(|| format!("{count}; {}", advice_about_repeats(campaign, "runs")))
}

/// What to do about invalid runs or panels.
pub(super) fn advice_about_repeats(campaign: &Campaign, what: &str) -> String {
    let most = campaign.max_repeats();
    match campaign.repeats() >= most {
        true => format!(
            "the campaign made all {most} repeats of invalid {what} that it is allowed: find out what disturbs the \
             machine, or raise analysis.max_repeats"
        ),
        false => "to add blocks, use --resume with a higher --runs".into(),
    }
}

pub(super) fn name(campaign: &Campaign, cell: &CellRuns) -> String {
    let family = &campaign.experiment.families[cell.cell.family].title;
    format!("{family}, {}", label(campaign, cell))
}

fn label<'a>(campaign: &'a Campaign, cell: &CellRuns) -> &'a str {
    &campaign.experiment.variants[cell.cell.variant].label
}
