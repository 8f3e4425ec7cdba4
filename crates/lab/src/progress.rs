//! The progress of a campaign, as the lab reports it to the program.

use std::time::Duration;

use crate::record::RunRecord;

/// A run that is about to begin.
#[derive(Debug, Clone, Copy)]
pub struct RunStart<'a> {
    /// Block, from zero.
    pub block: u32,
    /// Number of blocks in the plan.
    pub blocks: u32,
    /// Number of earlier runs of the same block and cell.
    pub attempt: u32,
    /// Label of the variant.
    pub variant: &'a str,
    /// Title of the family.
    pub family: &'a str,
}

/// Receives the progress of a campaign; the program draws its progress bar from it.
pub trait Progress {
    /// Called before the first run with the number of runs to make and the time their windows take.
    fn started(&mut self, total_runs: usize, estimated: Duration);
    /// Called before each run.
    fn run_started(&mut self, run: &RunStart<'_>);
    /// Called after each run, when its record is on the disk. `remaining` includes only repeats that are already needed.
    fn run_finished(&mut self, record: &RunRecord, remaining: Duration);
}
