//! Reasons to read the figures with care, each with advice.

use crate::archive::Campaign;
use crate::stats::{doubts_of_runs, doubts_of_series, doubts_of_spreads};

use super::evidence::CellRuns;
use super::evidence::Evidence;
use super::judged::Judged;
use super::number::counted;

/// A drift within a valid run worth a word, relative to its mean; larger ones make the run invalid.
const NOTABLE_DRIFT: f64 = 0.01;

pub(super) fn doubts(campaign: &Campaign, evidence: &Evidence, judged: &[Judged]) -> Vec<String> {
    let mut found = of_campaign(campaign, evidence);
    for cell in evidence.by_family().filter(|cell| cell.made > 0) {
        let name = name(campaign, cell);
        found.extend(of_cell(cell).into_iter().map(|doubt| format!("{name}: {doubt}")));
    }
    for Judged { comparison, family, .. } in judged.iter().filter(|judged| judged.outcome.is_ok()) {
        let (baseline, variant) =
            (evidence.cell(comparison.against, *family), evidence.cell(comparison.variant, *family));
        let names = format!("{} against {}", name(campaign, variant), label(campaign, baseline));
        let spreads = doubts_of_spreads(&baseline.values, &variant.values);
        found.extend(spreads.into_iter().map(|doubt| format!("{names}: {doubt}")));
    }
    found
}

fn of_campaign(campaign: &Campaign, evidence: &Evidence) -> Vec<String> {
    let mut found = Vec::new();
    if campaign.provenance.build.debug {
        found.push("measured with a debug build: its rates say nothing about a release build".into());
    }
    if let Some(line) = campaign.records.torn_line {
        found.push(format!(
            "line {line} of runs.jsonl is torn: the run it belonged to was lost when the program stopped"
        ));
    }
    found.extend(missing_runs(campaign, evidence));
    found
}

/// How many valid runs the plan has and the evidence lacks, and why nobody tried for them any longer.
fn missing_runs(campaign: &Campaign, evidence: &Evidence) -> Option<String> {
    let planned = campaign.experiment.runs as usize;
    let lacking = |cell: &CellRuns| planned.saturating_sub(cell.values.len());
    let short = evidence.cells().iter().filter(|cell| lacking(cell) > 0).count();
    let missing: usize = evidence.cells().iter().map(lacking).sum();
    let all = campaign.experiment.planned_runs();
    let said = format!(
        "{missing} of the {all} planned runs have no valid result, in {}: see the validity table",
        counted(short as u32, "cell")
    );
    let most = campaign.experiment.max_repeats();
    let advice = match campaign.records.repeats() >= most {
        true => format!(
            "the campaign made all {most} repeats of invalid runs it may: find what disturbs the machine, or raise \
             analysis.max_repeats"
        ),
        false => "--resume with a higher --runs adds blocks".into(),
    };
    (short > 0).then(|| format!("{said}; {advice}"))
}

fn of_cell(cell: &CellRuns) -> Vec<String> {
    let runs = doubts_of_runs(&cell.values).into_iter().map(|doubt| doubt.to_string());
    let drifting = cell.series.iter().filter(|run| !doubts_of_series(run, NOTABLE_DRIFT).is_empty()).count();
    let drift = (drifting > 0).then(|| {
        let runs = counted(drifting as u32, "valid run");
        format!("the rate drifts by more than 1 % within {runs}: lengthen the warm-up, check for throttling")
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
