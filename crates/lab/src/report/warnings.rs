//! The warnings of the report, each with advice.

use crate::campaign::Campaign;
use crate::stats::{warnings_of_runs, warnings_of_series, warnings_of_spreads};

use super::cells::{CellRuns, Cells};
use super::comparisons::ComparisonResult;
use super::number::counted;

/// A valid run that drifts by more than this fraction of its mean has a warning. A larger drift makes a run invalid.
const NOTABLE_DRIFT: f64 = 0.01;

pub(super) fn warnings(campaign: &Campaign, cells: &Cells, comparisons: &[ComparisonResult]) -> Vec<String> {
    let mut found = of_campaign(campaign, cells);
    for cell in cells.by_family().filter(|cell| cell.made > 0) {
        let name = name(campaign, cell);
        found.extend(of_cell(cell).into_iter().map(|warning| format!("{name}: {warning}")));
    }
    for ComparisonResult { comparison, family, .. } in
        comparisons.iter().filter(|compared| compared.outcome.is_ok())
    {
        let (baseline, variant) =
            (cells.cell(comparison.against, *family), cells.cell(comparison.variant, *family));
        let names = format!("{} against {}", name(campaign, variant), label(campaign, baseline));
        let spreads = warnings_of_spreads(&baseline.values, &variant.values);
        found.extend(spreads.into_iter().map(|warning| format!("{names}: {warning}")));
    }
    found
}

fn of_campaign(campaign: &Campaign, cells: &Cells) -> Vec<String> {
    let mut found = Vec::new();
    if campaign.provenance.build.debug {
        found.push("measured with a debug build: its rates are not those of a release build".into());
    }
    if let Some(line) = campaign.records.torn_line {
        found.push(format!(
            "line {line} of runs.jsonl is incomplete: its run was lost when the program stopped"
        ));
    }
    found.extend(missing_runs(campaign, cells));
    found
}

/// Returns a warning with the number of planned runs that have no valid result, and how to get them.
fn missing_runs(campaign: &Campaign, cells: &Cells) -> Option<String> {
    let planned = campaign.experiment.runs as usize;
    let lacking = |cell: &CellRuns| planned.saturating_sub(cell.values.len());
    let short = cells.all().iter().filter(|cell| lacking(cell) > 0).count();
    let missing: usize = cells.all().iter().map(lacking).sum();
    let all = campaign.experiment.planned_runs();
    let count = format!(
        "{missing} of the {all} planned runs have no valid result, in {}: see the validity table",
        counted(short as u32, "cell")
    );
    let most = campaign.experiment.max_repeats();
    let advice = match campaign.records.repeats() >= most {
        true => format!(
            "the campaign made all {most} repeats of invalid runs that it is allowed: find out what disturbs the \
             machine, or raise analysis.max_repeats"
        ),
        false => "to add blocks, use --resume with a higher --runs".into(),
    };
    (short > 0).then(|| format!("{count}; {advice}"))
}

fn of_cell(cell: &CellRuns) -> Vec<String> {
    let runs = warnings_of_runs(&cell.values).into_iter().map(|warning| warning.to_string());
    let drifting =
        cell.series.iter().filter(|run| !warnings_of_series(run, NOTABLE_DRIFT).is_empty()).count();
    let drift = (drifting > 0).then(|| {
        let runs = counted(drifting as u32, "valid run");
        format!(
            "the rate drifts by more than 1 % within {runs}: lengthen the warm-up, check for CPU throttling"
        )
    });
    runs.chain(drift).collect()
}

fn name(campaign: &Campaign, cell: &CellRuns) -> String {
    let family = &campaign.experiment.families[cell.cell.family].title;
    format!("{family}, {}", label(campaign, cell))
}

fn label<'a>(campaign: &'a Campaign, cell: &CellRuns) -> &'a str {
    &campaign.experiment.variants[cell.cell.variant].label
}
