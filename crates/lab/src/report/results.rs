//! The results of a campaign, from which every form of the report is made.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::cells::{CellRuns, Cells};
use super::comparisons::{ComparisonResult, compare};
use super::{machine, warnings};
use crate::campaign::Campaign;
use crate::error::LabError;
use crate::experiment::leaves;
use crate::stats::Verdict;

/// A campaign with its cells, its comparisons and the warnings about them.
pub(super) struct Results {
    pub(super) campaign: Campaign,
    pub(super) cells: Cells,
    pub(super) comparisons: Vec<ComparisonResult>,
    pub(super) warnings: Vec<String>,
}

impl Results {
    pub(super) fn read(folder: &Path) -> Result<Self, LabError> {
        let campaign = Campaign::read(folder)?;
        let cells = Cells::of(&campaign)?;
        let comparisons = compare(&campaign.experiment, &cells);
        let warnings = warnings::warnings(&campaign, &cells, &comparisons);
        Ok(Self { campaign, cells, comparisons, warnings })
    }

    pub(super) fn verdicts(&self) -> impl Iterator<Item = Option<Verdict>> {
        self.comparisons.iter().map(ComparisonResult::verdict)
    }

    pub(super) fn label(&self, cell: &CellRuns) -> &str {
        &self.campaign.experiment.variants[cell.cell.variant].label
    }

    pub(super) fn family(&self, family: usize) -> &str {
        &self.campaign.experiment.families[family].title
    }

    /// The title of the experiment without a colon at its end, because the report adds its own.
    pub(super) fn title(&self) -> &str {
        self.campaign.experiment.title.trim_end_matches([':', '.', ' '])
    }

    /// The list of conditions: those of the bench, those of the experiment, and the machine.
    pub(super) fn conditions(&self) -> Vec<String> {
        let Campaign { experiment, provenance, .. } = &self.campaign;
        let declared = provenance.conditions.iter().chain(&experiment.conditions).cloned();
        declared.chain(machine::conditions(&provenance.host)).collect()
    }

    /// The label of each variant with the settings that it changes.
    pub(super) fn changes(&self) -> impl Iterator<Item = (&str, BTreeMap<String, String>)> {
        let variants = self.campaign.experiment.variants.iter();
        variants.map(|variant| (variant.label.as_str(), leaves(variant.set.clone())))
    }

    /// The names of the settings that variants change, in one phrase; `None` if no variant changes any.
    pub(super) fn changed_names(&self) -> Option<String> {
        let names: BTreeSet<String> = self.changes().flat_map(|(_, set)| set.into_keys()).collect();
        let names = Vec::from_iter(names).join(", ");
        (!names.is_empty()).then(|| format!("variants differ in {names}"))
    }
}
