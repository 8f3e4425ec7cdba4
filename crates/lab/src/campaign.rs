//! A campaign read from its results folder.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::archive::{CAMPAIGN, HOST, MeasuredPanel, PANELS, RUNS, read_json, read_panels};
use crate::error::{ArchiveError, LabError};
use crate::experiment::{Experiment, Runs};
use crate::host::Provenance;
use crate::journal;
use crate::record::PanelRecord;
use crate::run_record::RunRecord;
use crate::schedule::repeats;

/// The content of a results folder, read without locking it. Reports are made from this alone.
#[derive(Debug)]
pub(crate) struct Campaign {
    pub(crate) folder: PathBuf,
    pub(crate) experiment: Experiment<toml::Table>,
    pub(crate) provenance: Provenance,
    pub(crate) measured: Measurements,
    /// Number of the last line of the journal, if it is incomplete.
    pub(crate) torn_line: Option<usize>,
}

/// What was measured.
#[derive(Debug)]
pub(crate) enum Measurements {
    /// Whole runs, one after the other: schema 1.
    Runs(Vec<RunRecord>),
    /// Panels: schema 2.
    Panels(Vec<MeasuredPanel>),
}

impl Campaign {
    /// The log lines of a cell, in the order in which they were made.
    pub(crate) fn events<'s>(&'s self, variant: &str, family: &str) -> Vec<&'s String> {
        match &self.measured {
            Measurements::Runs(runs) => {
                let of_cell = runs.iter().filter(|run| run.variant == variant && run.family == family);
                of_cell.flat_map(|run| &run.events).collect()
            }
            Measurements::Panels(panels) => {
                let records = panels.iter().map(|panel| &panel.record);
                let members =
                    records.filter(|record| record.family == family).flat_map(|record| &record.members);
                let of_cell = members.filter(|member| member.variant == variant);
                of_cell.flat_map(|member| &member.findings.events).collect()
            }
        }
    }

    /// The number of runs or panels that were made.
    pub(crate) fn made(&self) -> usize {
        match &self.measured {
            Measurements::Runs(runs) => runs.len(),
            Measurements::Panels(panels) => panels.len(),
        }
    }

    /// The number of them that were made because an earlier one was invalid.
    pub(crate) fn repeats(&self) -> usize {
        match &self.measured {
            Measurements::Runs(runs) => {
                let ended = || runs.iter().filter(|run| !run.is_interrupted());
                let cells: BTreeSet<_> = ended().map(|run| (run.block, &run.variant, &run.family)).collect();
                ended().count() - cells.len()
            }
            Measurements::Panels(panels) => repeats(panels),
        }
    }

    /// The records of the panels; empty for whole runs.
    pub(crate) fn records(&self) -> impl Iterator<Item = &PanelRecord> {
        let panels = match &self.measured {
            Measurements::Runs(_) => &[][..],
            Measurements::Panels(panels) => panels,
        };
        panels.iter().map(|panel| &panel.record)
    }

    /// The records of the panels of one family.
    pub(crate) fn records_of(&self, family: usize) -> impl Iterator<Item = &PanelRecord> {
        let name = &self.experiment.families[family].name;
        self.records().filter(move |record| record.family == *name)
    }

    /// The mean time of a block of panels, repeats included.
    pub(crate) fn seconds_per_block(&self) -> f64 {
        let blocks = self.records().map(|record| record.block + 1).max().unwrap_or(1);
        self.records().map(|record| record.seconds).sum::<f64>() / f64::from(blocks)
    }

    /// The largest number of repeats that the campaign may make.
    pub(crate) fn max_repeats(&self) -> usize {
        let allowed = self.experiment.max_repeats(self.blocks());
        match &self.measured {
            // A campaign of whole runs had as many cells as variants in each family.
            Measurements::Runs(_) if self.experiment.analysis.max_repeats.is_none() => {
                let cells = self.experiment.variants.len() * self.experiment.families.len();
                (self.blocks() as usize * cells).div_ceil(2)
            }
            _ => allowed,
        }
    }

    /// The number of blocks that were planned or, if the campaign ran until it was decided, begun.
    pub(crate) fn blocks(&self) -> u32 {
        let begun = match &self.measured {
            Measurements::Runs(runs) => runs.iter().map(|run| run.block + 1).max(),
            Measurements::Panels(panels) => panels.iter().map(|panel| panel.record.block + 1).max(),
        };
        match self.experiment.runs {
            Runs::Blocks(blocks) => blocks,
            Runs::UntilDecided => begun.unwrap_or(0),
        }
    }

    pub(crate) fn read(folder: &Path) -> Result<Self, LabError> {
        let path = folder.join(CAMPAIGN);
        let text = fs::read_to_string(&path).map_err(|source| ArchiveError::read(&path, source))?;
        let experiment = Experiment::parse_archived(&path.display().to_string(), &text)?;
        let provenance = read_json(&folder.join(HOST))?;
        let (measured, torn_line) = measured(folder)?;
        Ok(Self { folder: folder.into(), experiment, provenance, measured, torn_line })
    }
}

fn measured(folder: &Path) -> Result<(Measurements, Option<usize>), ArchiveError> {
    let old = folder.join(RUNS);
    if old.exists() && !folder.join(PANELS).exists() {
        let lines = journal::read(&old)?;
        return Ok((Measurements::Runs(lines.records), lines.torn_line));
    }
    let lines = journal::read(&folder.join(PANELS))?;
    let torn_line = lines.torn_line;
    Ok((Measurements::Panels(read_panels(folder, lines)?), torn_line))
}
