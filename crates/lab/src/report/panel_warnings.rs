//! The warnings about a campaign of panels, each with advice.

use std::collections::BTreeMap;
use std::mem::{Discriminant, discriminant};

use crate::archive::MeasuredPanel;
use crate::calibration::Agreement;
use crate::campaign::Campaign;
use crate::observations::{Observations, control_slices};
use crate::stats::{
    ControlWarning, NOTABLE_ONE_SIDED, Warning, control_warnings, one_sided, warnings_of_runs,
};

use super::cells::CellRuns;
use super::judged::Judged;
use super::number::{counted, part};
use super::speed::MachineSpeed;
use super::turns::FamilyTurns;
use super::warnings::{advice_about_repeats, name, of_campaign};

/// A larger share of rounds that is left out has a warning.
const NOTABLE_LEFT_OUT: f64 = 0.05;

pub(super) fn warnings(
    campaign: &Campaign,
    panels: &[MeasuredPanel],
    observations: &Observations,
    judged: &Judged,
) -> Vec<String> {
    let mut found = of_campaign(campaign);
    found.extend(missing_panels(campaign));
    for family in 0..campaign.experiment.families.len() {
        let title = &campaign.experiment.families[family].title;
        let name = &campaign.experiment.families[family].name;
        let of_family = panels.iter().filter(|panel| panel.record.family == *name);
        let machine = of_machine(of_family, campaign.experiment.baseline())
            .into_iter()
            .chain(left_out(judged.speeds[family].as_ref()));
        let machine = machine.chain(of_turns(campaign, family));
        found.extend(machine.map(|warning| format!("{title}: {warning}")));
        found.extend(judged.cells.of_family(family).flat_map(|cell| of_cell(campaign, cell, observations)));
    }
    found
}

/// Returns a warning with the number of planned panels that have no valid result, and how to get them.
fn missing_panels(campaign: &Campaign) -> Option<String> {
    let planned = campaign.blocks() as usize;
    let families = campaign.experiment.families.len();
    let valid = |family| campaign.records_of(family).filter(|record| record.is_valid()).count();
    let lacking: Vec<usize> = (0..families).map(|family| planned.saturating_sub(valid(family))).collect();
    let (missing, all) = (lacking.iter().sum::<usize>(), planned * families);
    let short = lacking.iter().filter(|lacking| **lacking > 0).count() as u32;
    let short = if short == 1 { "1 family".into() } else { format!("{short} families") };
    (missing > 0).then(|| {
        format!(
            "{missing} of the {all} planned panels have no valid result, in {short}: see the validity table; {}",
            advice_about_repeats(campaign, "panels")
        )
    })
}

/// The warnings of the baseline's control: the worst of each kind, with the number of panels that have it.
fn of_machine<'p>(panels: impl Iterator<Item = &'p MeasuredPanel>, baseline: usize) -> Vec<String> {
    let mut kinds: BTreeMap<usize, (ControlWarning, u32)> = BTreeMap::new();
    let mut seen: Vec<Discriminant<ControlWarning>> = Vec::new();
    let mut valid = 0;
    for panel in panels.filter(|panel| panel.record.is_valid()) {
        valid += 1;
        let control = panel.record.members[baseline].control;
        for warning in control_warnings(&control_slices(&panel.slices, control)) {
            let kind = seen.iter().position(|kind| *kind == discriminant(&warning)).unwrap_or(seen.len());
            seen.extend((kind == seen.len()).then(|| discriminant(&warning)));
            let (worst, count) = kinds.entry(kind).or_insert((warning, 0));
            *count += 1;
            *worst = if severity(&warning) > severity(worst) { warning } else { *worst };
        }
    }
    kinds
        .into_values()
        .map(|(worst, count)| format!("in {count} of {valid} panels, at worst: {worst}"))
        .collect()
}

fn severity(warning: &ControlWarning) -> f64 {
    match warning {
        ControlWarning::Drift { relative } | ControlWarning::TwoSpeeds { relative, .. } => relative.abs(),
        ControlWarning::LostCore { share } => *share,
    }
}

fn left_out(speed: Option<&MachineSpeed>) -> Option<String> {
    let share = speed.map(MachineSpeed::left_out).filter(|share| *share > NOTABLE_LEFT_OUT)?;
    Some(format!(
        "{} of the rounds are left out for all variants, because the control was disturbed in them: stop other programs, \
         or use a quieter machine",
        part(share)
    ))
}

/// What the length of the turns may cost, where no length is proven to be fair.
fn of_turns(campaign: &Campaign, family: usize) -> Option<String> {
    let turns = FamilyTurns::of(campaign, family)?;
    turns.chosen().filter(|chosen| chosen.agreement != Agreement::Proven).map(|_| turns.cost(campaign))
}

/// The warnings about one variant: interference with it alone, and values that Student's t does not allow for.
fn of_cell(campaign: &Campaign, cell: &CellRuns, observations: &Observations) -> Vec<String> {
    let name = name(campaign, cell);
    let values = warnings_of_runs(&cell.values);
    let values = values.iter().filter_map(of_values);
    values.chain(disturbed_alone(cell, observations)).map(|warning| format!("{name}: {warning}")).collect()
}

/// The text of a warning about the values of blocks. Few of them are no reason for a warning: the interval says it.
fn of_values(warning: &Warning) -> Option<String> {
    match *warning {
        Warning::Outlier { run, relative } => Some(format!(
            "block {} of the valid ones lies {:+.1} % from the median: see what its panel logged",
            run + 1,
            100.0 * relative
        )),
        Warning::Bimodal { low, high } => Some(format!(
            "the blocks form two groups, around {low:.0} and {high:.0}: find out what differs between them, such as the \
             layout of memory"
        )),
        _ => None,
    }
}

/// A warning if only this variant was disturbed in a notable share of the rounds.
fn disturbed_alone(cell: &CellRuns, observations: &Observations) -> Option<String> {
    let panels = observations.family(cell.cell.family);
    let rounds = |rates: &[f64]| rates.len() as f64;
    let shares = panels.iter().map(|panel| {
        let member = &panel.member(cell.cell.variant).counted;
        (one_sided(member, &panel.machine().counted) * rounds(member), rounds(member))
    });
    let (disturbed, all) = shares.fold((0.0, 0.0), |(sum, all), (share, rounds)| (sum + share, all + rounds));
    let share = disturbed / f64::max(all, 1.0);
    (share > NOTABLE_ONE_SIDED).then(|| {
        format!(
            "in {} of {} only this variant was disturbed, not the control beside it: its difference may be partly that",
            part(share),
            counted(all as u32, "round")
        )
    })
}
