//! The runs of a campaign by cell. The statistics use only valid runs; invalid runs are counted by reason.

use std::collections::BTreeMap;

use crate::archive::{MeasuredPanel, RUNS};
use crate::campaign::Campaign;
use crate::error::LabError;
use crate::observations::{Observations, PanelObservation};
use crate::plan::Cell;
use crate::record::{MemberRecord, PanelRecord};
use crate::run_record::RunRecord;
use crate::stats::{Description, median};
use crate::validity::Validity;

use super::speed::median_speed;

/// Cells with fewer valid runs are not judged, because their spread is unknown. ministat has the same limit.
pub(super) const FEWEST_RUNS: usize = 3;

/// The runs of one cell. In a campaign of panels, a run is what one panel shows of the variant.
#[derive(Debug, Clone)]
pub(super) struct CellRuns {
    pub(super) cell: Cell,
    /// Values of the valid runs in the order they were made; those of panels at the median machine speed, unless a schedule
    /// offered the load.
    pub(super) values: Vec<f64>,
    /// The same as they were measured.
    pub(super) raw: Vec<f64>,
    /// Values of the valid runs by block.
    pub(super) by_block: BTreeMap<u32, f64>,
    /// The rates that the variant has in its own share of the time, at the median machine speed; infinite where nothing
    /// remains of its time. Empty if no share can be subtracted.
    pub(super) shares: Vec<f64>,
    /// The part of what was offered that was lost, in each valid run that counts it.
    pub(super) losses: Vec<f64>,
    /// Number of all runs, valid or not.
    pub(super) made: usize,
    /// Number of runs that were not the first of their block.
    pub(super) repeated: usize,
    /// Number of valid panels in which the variant counted nothing, so that it has no value there.
    pub(super) without_rate: usize,
    /// Number of invalid runs by reason; a run may have several reasons. In a campaign of panels, those in which the
    /// variant took no turns.
    pub(super) invalid: BTreeMap<Validity, usize>,
    /// Median of each counter over the valid runs.
    pub(super) counters: BTreeMap<String, f64>,
}

/// All cells of a campaign, variant by variant.
#[derive(Debug)]
pub(super) struct Cells {
    cells: Vec<CellRuns>,
    families: usize,
}

impl CellRuns {
    fn of_runs(cell: Cell, runs: &[&RunRecord]) -> Self {
        let valid: Vec<&RunRecord> = runs.iter().copied().filter(|run| run.is_valid()).collect();
        let reasons = runs.iter().filter(|run| !run.is_valid()).flat_map(|run| run.validity.iter());
        Self {
            cell,
            values: valid.iter().map(|run| run.value).collect(),
            raw: valid.iter().map(|run| run.value).collect(),
            by_block: valid.iter().map(|run| (run.block, run.value)).collect(),
            shares: Vec::new(),
            losses: Vec::new(),
            made: runs.len(),
            repeated: runs.iter().filter(|run| run.attempt > 0).count(),
            without_rate: 0,
            invalid: counted(reasons),
            counters: medians(valid.iter().map(|run| &run.counters)),
        }
    }

    fn of_panels(cell: Cell, records: &[&PanelRecord], family: &FamilyPanels<'_>) -> Self {
        let rated: Vec<RatedPanel> = family
            .panels
            .iter()
            .filter_map(|panel| RatedPanel::of(panel, cell.variant, family.speed?))
            .collect();
        let took_turns = family.panels.iter().filter(|panel| panel.has(cell.variant)).count();
        let member = |record: &&'_ PanelRecord| record.members.get(cell.variant).cloned();
        let valid = records.iter().filter(|record| record.is_valid());
        let members: Vec<MemberRecord> = valid.filter_map(member).collect();
        let counters = || members.iter().map(|member| &member.findings.counters);
        Self {
            cell,
            values: rated.iter().map(|panel| panel.adjusted).collect(),
            raw: rated.iter().map(|panel| panel.raw).collect(),
            by_block: rated.iter().map(|panel| (panel.block, panel.adjusted)).collect(),
            shares: rated.iter().filter_map(|panel| panel.share).collect(),
            losses: counters().filter_map(loss).collect(),
            made: records.len(),
            repeated: records.iter().filter(|record| record.attempt > 0).count(),
            without_rate: took_turns.saturating_sub(rated.len()),
            invalid: counted(records.iter().filter_map(member).filter_map(|member| member.set_aside)),
            counters: medians(counters()),
        }
    }

    pub(super) fn description(&self) -> Option<Description> {
        Description::of(&self.values)
    }

    pub(super) fn enough(&self) -> bool {
        self.values.len() >= FEWEST_RUNS
    }

    /// The median of the values as they were measured.
    pub(super) fn raw_median(&self) -> Option<f64> {
        median(&self.raw)
    }

    /// The median rate in the variant's own share of the time; infinite if the share is too small to be told.
    pub(super) fn share(&self) -> Option<f64> {
        median(&self.shares)
    }

    /// The median part of what was offered that was lost.
    pub(super) fn loss(&self) -> Option<f64> {
        median(&self.losses)
    }

    /// Why there is no value.
    pub(super) fn absence(&self) -> &'static str {
        match self {
            Self { made: 0, .. } => "not run",
            Self { without_rate: 1.., .. } => "rate of zero",
            _ => "no valid run",
        }
    }

    /// Whether the variant took no turns in any panel.
    pub(super) fn is_set_aside(&self) -> bool {
        self.made > 0 && self.values.is_empty() && !self.invalid.is_empty()
    }
}

/// The valid panels of a family, and the median machine speed among them.
struct FamilyPanels<'a> {
    panels: &'a [PanelObservation],
    speed: Option<f64>,
}

/// What one valid panel shows of one variant.
struct RatedPanel {
    block: u32,
    adjusted: f64,
    raw: f64,
    share: Option<f64>,
}

impl RatedPanel {
    fn of(panel: &PanelObservation, variant: usize, speed: f64) -> Option<Self> {
        let share = || panel.share_over_machine(variant).map_or(f64::INFINITY, |share| share.exp() * speed);
        let (raw, at_speed) = (panel.member(variant).rate()?, panel.over_machine(variant)?.exp() * speed);
        Some(Self {
            block: panel.block,
            adjusted: if panel.is_paced() { raw } else { at_speed },
            raw,
            share: panel.subtracts().then(share),
        })
    }
}

/// The part of what was offered that was lost.
fn loss(counters: &BTreeMap<String, f64>) -> Option<f64> {
    let (offered, lost) = (counters.get("offered")?, counters.get("lost")?);
    (*offered > 0.0).then(|| lost / offered)
}

fn counted(reasons: impl Iterator<Item = Validity>) -> BTreeMap<Validity, usize> {
    let mut counts = BTreeMap::new();
    reasons.for_each(|reason| *counts.entry(reason).or_insert(0) += 1);
    counts
}

/// Returns the median of each counter over the runs that have it.
fn medians<'c>(runs: impl Iterator<Item = &'c BTreeMap<String, f64>>) -> BTreeMap<String, f64> {
    let mut gathered: BTreeMap<&String, Vec<f64>> = BTreeMap::new();
    for (name, count) in runs.flatten() {
        gathered.entry(name).or_default().push(*count);
    }
    gathered.into_iter().filter_map(|(name, counts)| Some((name.clone(), median(&counts)?))).collect()
}

impl Cells {
    /// The cells of whole runs (schema 1).
    pub(super) fn of_runs(campaign: &Campaign, runs: &[RunRecord]) -> Result<Self, LabError> {
        let mut sorted: BTreeMap<Cell, Vec<&RunRecord>> = BTreeMap::new();
        for run in runs {
            sorted.entry(cell_of(campaign, run)?).or_default().push(run);
        }
        let runs = |cell| CellRuns::of_runs(cell, sorted.get(&cell).map_or(&[][..], Vec::as_slice));
        Ok(Self {
            cells: all_cells(campaign).map(runs).collect(),
            families: campaign.experiment.families.len(),
        })
    }

    /// The cells of panels.
    pub(super) fn of_panels(
        campaign: &Campaign,
        panels: &[MeasuredPanel],
        observations: &Observations,
    ) -> Self {
        let families = &campaign.experiment.families;
        let cell = |cell: Cell| {
            let name = &families[cell.family].name;
            let records = panels.iter().map(|panel| &panel.record);
            let records: Vec<&PanelRecord> = records.filter(|record| record.family == *name).collect();
            let panels = observations.family(cell.family);
            let family = FamilyPanels { panels, speed: median_speed(panels) };
            CellRuns::of_panels(cell, &records, &family)
        };
        Self { cells: all_cells(campaign).map(cell).collect(), families: families.len() }
    }

    pub(super) fn cell(&self, variant: usize, family: usize) -> &CellRuns {
        &self.cells[variant * self.families + family]
    }

    pub(super) fn all(&self) -> &[CellRuns] {
        &self.cells
    }

    /// All cells, family by family, which is the order of the report.
    pub(super) fn by_family(&self) -> impl Iterator<Item = &CellRuns> {
        (0..self.families).flat_map(|family| self.of_family(family))
    }

    pub(super) fn of_variant(&self, variant: usize) -> impl Iterator<Item = &CellRuns> {
        self.cells.iter().filter(move |cell| cell.cell.variant == variant)
    }

    pub(super) fn of_family(&self, family: usize) -> impl Iterator<Item = &CellRuns> {
        self.cells.iter().filter(move |cell| cell.cell.family == family)
    }
}

fn all_cells(campaign: &Campaign) -> impl Iterator<Item = Cell> {
    let families = campaign.experiment.families.len();
    let variants = 0..campaign.experiment.variants.len();
    variants.flat_map(move |variant| (0..families).map(move |family| Cell { variant, family }))
}

fn cell_of(campaign: &Campaign, run: &RunRecord) -> Result<Cell, LabError> {
    let variant = campaign.experiment.variant_index(&run.variant);
    let family = campaign.experiment.families.iter().position(|family| family.name == run.family);
    match (variant, family) {
        (Some(variant), Some(family)) => Ok(Cell { variant, family }),
        _ => Err(LabError::UnknownRun {
            path: campaign.folder.join(RUNS),
            block: run.block,
            variant: run.variant.clone(),
            family: run.family.clone(),
        }),
    }
}
