//! The results of a campaign, from which every form of the report is made.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::cells::{CellRuns, Cells};
use super::comparisons::ComparisonResult;
use super::judged::Judged;
use super::phrase::Phrase;
use super::{machine, panel_warnings, warnings};
use crate::campaign::{Campaign, Measurements};
use crate::error::LabError;
use crate::experiment::leaves;
use crate::misrouted;
use crate::observations::Observations;
use crate::stats::Verdict;

/// A campaign with its cells, its comparisons and the warnings about them.
pub(super) struct Results {
    pub(super) campaign: Campaign,
    pub(super) judged: Judged,
    pub(super) warnings: Vec<String>,
}

impl Results {
    pub(super) fn read(folder: &Path) -> Result<Self, LabError> {
        let campaign = Campaign::read(folder)?;
        let (judged, warnings) = match &campaign.measured {
            Measurements::Runs(runs) => {
                let judged = Judged::of_runs(&campaign, Cells::of_runs(&campaign, runs)?);
                let warnings = warnings::warnings(&campaign, &judged);
                (judged, warnings)
            }
            Measurements::Panels(panels) => {
                let observations = Observations::of(&campaign.experiment, panels, &campaign.folder)?;
                let cells = Cells::of_panels(&campaign, panels, &observations);
                let judged = Judged::of_panels(&campaign, &observations, cells);
                let warnings = panel_warnings::warnings(&campaign, panels, &observations, &judged);
                (judged, warnings)
            }
        };
        Ok(Self { campaign, judged, warnings })
    }

    /// A sentence for each variant and family whose output was wrong at any time.
    pub(super) fn misrouted(&self) -> Vec<String> {
        misrouted::sentences(&self.campaign)
    }

    pub(super) fn verdicts(&self) -> impl Iterator<Item = Option<Verdict>> {
        self.judged.comparisons.iter().map(ComparisonResult::verdict)
    }

    pub(super) fn label(&self, cell: &CellRuns) -> &str {
        &self.campaign.experiment.variants[cell.cell.variant].label
    }

    /// What a sentence calls a variant.
    pub(super) fn spoken(&self, variant: usize) -> &str {
        self.campaign.experiment.variants[variant].spoken()
    }

    pub(super) fn family(&self, family: usize) -> &str {
        &self.campaign.experiment.families[family].title
    }

    /// How the metric of a family is said in a sentence.
    pub(super) fn phrase(&self, family: usize) -> Phrase<'_> {
        Phrase::of(self.campaign.experiment.metric(family))
    }

    /// What rates count: one metric, or that of each family.
    pub(super) fn metrics(&self) -> String {
        let experiment = &self.campaign.experiment;
        let each =
            || (0..experiment.families.len()).map(|at| self.metric_of(at)).collect::<Vec<_>>().join(", ");
        experiment.only_metric().map_or_else(each, str::to_owned)
    }

    fn metric_of(&self, family: usize) -> String {
        format!("{} in {}", self.campaign.experiment.metric(family), self.family(family))
    }

    pub(super) fn margin(&self) -> f64 {
        self.campaign.experiment.analysis.margin
    }

    /// Whether a comparison has a share of the loop, so that there are two sets of intervals.
    pub(super) fn has_shares(&self) -> bool {
        self.judged.comparisons.iter().any(|compared| compared.observed.share.is_some())
    }

    /// Whether the campaign was measured in panels.
    pub(super) fn has_panels(&self) -> bool {
        matches!(self.campaign.measured, Measurements::Panels(_))
    }

    /// Whether a schedule offered the load, so that rates are shown as they were measured.
    pub(super) fn is_paced(&self) -> bool {
        self.campaign.records().any(|record| record.paced)
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
