//! What is computed from the measurements of a campaign: its cells, its comparisons, and the machine.

use super::cells::Cells;
use super::comparisons::{ComparisonResult, compare_panels, compare_runs};
use super::copies::{CopyResult, copies, unjudged_copies};
use super::speed::MachineSpeed;
use crate::campaign::Campaign;
use crate::decision::Decision;
use crate::observations::Observations;

/// What was computed from the measurements.
pub(super) struct Judged {
    pub(super) cells: Cells,
    pub(super) comparisons: Vec<ComparisonResult>,
    /// The copy of the baseline in each family that was judged; empty for campaigns without panels.
    pub(super) copies: Vec<CopyResult>,
    /// The families in which a comparison was judged, and the copy of the baseline was not.
    pub(super) unjudged_copies: Vec<usize>,
    /// The machine in each family; empty for campaigns without panels.
    pub(super) speeds: Vec<Option<MachineSpeed>>,
}

impl Judged {
    pub(super) fn of_runs(campaign: &Campaign, cells: Cells) -> Self {
        let comparisons = compare_runs(&campaign.experiment, &cells);
        Self { cells, comparisons, copies: Vec::new(), unjudged_copies: Vec::new(), speeds: Vec::new() }
    }

    pub(super) fn of_panels(campaign: &Campaign, observations: &Observations, cells: Cells) -> Self {
        let experiment = &campaign.experiment;
        let decision = Decision::of(experiment, experiment.first_look(), observations);
        Self {
            copies: copies(&decision.copies),
            unjudged_copies: unjudged_copies(&decision),
            comparisons: compare_panels(experiment, decision, &cells),
            speeds: MachineSpeed::of_families(observations, experiment.families.len()),
            cells,
        }
    }
}
