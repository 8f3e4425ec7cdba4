//! Variants whose output was wrong. Such a panel does not count and is made again, so what counts would not show a fault that comes
//! and goes.

use crate::campaign::{Campaign, Measurements};
use crate::record::{MemberRecord, PanelRecord};
use crate::run_record::RunRecord;
use crate::validity::Validity;

/// Whether the output of each panel, or of each run, of a variant in a family was wrong.
fn outputs<'c>(campaign: &'c Campaign, family: &'c str, variant: &'c str) -> Vec<bool> {
    match &campaign.measured {
        Measurements::Runs(runs) => {
            let of_cell = runs.iter().filter(|run| run.family == family && run.variant == variant);
            of_cell.map(is_wrong_run).collect()
        }
        Measurements::Panels(panels) => {
            let records = panels.iter().map(|panel| &panel.record);
            let of_family = records.filter(|record| record.family == family);
            of_family.map(|record| is_wrong_in(record, variant)).collect()
        }
    }
}

fn is_wrong_run(run: &RunRecord) -> bool {
    run.validity.iter().any(|reason| reason == Validity::Misrouted)
}

/// The copy of the baseline is the baseline.
fn is_wrong_in(record: &PanelRecord, variant: &str) -> bool {
    let is_wrong = |member: &MemberRecord| {
        member.set_aside == Some(Validity::Misrouted)
            || member.findings.reasons.contains(&Validity::Misrouted)
    };
    record.members.iter().any(|member| member.variant == variant && is_wrong(member))
}

/// A sentence for each variant and family whose output was wrong at any time.
pub(crate) fn sentences(campaign: &Campaign) -> Vec<String> {
    let experiment = &campaign.experiment;
    let of_family = |family| experiment.variants.iter().map(move |variant| (family, variant));
    let said = experiment.families.iter().flat_map(of_family).filter_map(|(family, variant)| {
        let outputs = outputs(campaign, &family.name, &variant.name);
        let wrong = outputs.iter().filter(|is_wrong| **is_wrong).count();
        (wrong > 0).then(|| {
            format!(
                "The output of {} was wrong in {wrong} of {} times that it was measured ({}): no rate of it counts before that is mended.",
                variant.spoken(),
                outputs.len(),
                family.title
            )
        })
    });
    said.collect()
}
