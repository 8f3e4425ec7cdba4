//! The runs of a campaign by cell. The statistics use only valid runs; invalid runs are counted by reason.

use std::collections::BTreeMap;

use crate::archive::RUNS;
use crate::campaign::Campaign;
use crate::error::LabError;
use crate::plan::Cell;
use crate::record::RunRecord;
use crate::stats::{Description, median};
use crate::validity::Validity;

/// Cells with fewer valid runs are not judged, because their spread is unknown. ministat has the same limit.
pub(super) const FEWEST_RUNS: usize = 3;

/// The runs of one cell.
#[derive(Debug, Clone)]
pub(super) struct CellRuns {
    pub(super) cell: Cell,
    /// Values of the valid runs in the order they were made.
    pub(super) values: Vec<f64>,
    /// Values of the valid runs by block.
    pub(super) by_block: BTreeMap<u32, f64>,
    /// Samples of each valid run.
    pub(super) series: Vec<Vec<f64>>,
    /// Number of all runs, valid or not.
    pub(super) made: usize,
    /// Number of runs that were not the first of their block.
    pub(super) repeated: usize,
    /// Number of invalid runs by reason; a run may have several reasons.
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
    fn of(cell: Cell, runs: &[&RunRecord]) -> Self {
        let valid: Vec<&RunRecord> = runs.iter().copied().filter(|run| run.is_valid()).collect();
        let reasons = runs.iter().filter(|run| !run.is_valid()).flat_map(|run| run.validity.iter());
        let mut invalid = BTreeMap::new();
        for reason in reasons {
            *invalid.entry(reason).or_insert(0) += 1;
        }
        Self {
            cell,
            values: valid.iter().map(|run| run.value).collect(),
            by_block: valid.iter().map(|run| (run.block, run.value)).collect(),
            series: valid.iter().map(|run| run.samples.clone()).collect(),
            made: runs.len(),
            repeated: runs.iter().filter(|run| run.attempt > 0).count(),
            invalid,
            counters: counters(&valid),
        }
    }

    pub(super) fn description(&self) -> Option<Description> {
        Description::of(&self.values)
    }

    pub(super) fn enough(&self) -> bool {
        self.values.len() >= FEWEST_RUNS
    }
}

/// Returns the median of each counter over the runs that have it.
fn counters(runs: &[&RunRecord]) -> BTreeMap<String, f64> {
    let mut gathered: BTreeMap<&String, Vec<f64>> = BTreeMap::new();
    for (name, count) in runs.iter().flat_map(|run| &run.counters) {
        gathered.entry(name).or_default().push(*count);
    }
    gathered.into_iter().filter_map(|(name, counts)| Some((name.clone(), median(&counts)?))).collect()
}

impl Cells {
    pub(super) fn of(campaign: &Campaign) -> Result<Self, LabError> {
        let mut sorted: BTreeMap<Cell, Vec<&RunRecord>> = BTreeMap::new();
        for run in &campaign.records.runs {
            sorted.entry(cell_of(campaign, run)?).or_default().push(run);
        }
        let families = campaign.experiment.families.len();
        let variants = 0..campaign.experiment.variants.len();
        let all = variants.flat_map(|variant| (0..families).map(move |family| Cell { variant, family }));
        let runs = |cell| CellRuns::of(cell, sorted.get(&cell).map_or(&[][..], Vec::as_slice));
        Ok(Self { cells: all.map(runs).collect(), families })
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
