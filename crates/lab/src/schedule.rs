//! The next run of a campaign: a pure function of the plan and of the runs already made.
//!
//! A campaign therefore continues in the same way after a stop, a crash and an invalid run.

use crate::experiment::Experiment;
use crate::journal::Records;
use crate::plan::{PlannedRun, plan};
use crate::progress::RunStart;
use crate::record::RunRecord;

/// The runs of a campaign in their order.
pub(crate) struct Schedule<'a> {
    blocks: Vec<Vec<PlannedRun>>,
    variants: Vec<Name<'a>>,
    families: Vec<Name<'a>>,
    retries: usize,
    max_repeats: usize,
}

/// The name of a variant or family in the records, and its label in the report.
struct Name<'a> {
    name: &'a str,
    label: &'a str,
}

impl<'a> Schedule<'a> {
    pub(crate) fn of<S>(experiment: &'a Experiment<S>) -> Self {
        let variants = experiment.variants.iter().map(|each| Name { name: &each.name, label: &each.label });
        let families = experiment.families.iter().map(|each| Name { name: &each.name, label: &each.title });
        let (variants, families): (Vec<_>, Vec<_>) = (variants.collect(), families.collect());
        let runs = plan(variants.len(), families.len(), experiment.runs, experiment.seed);
        let blocks = runs.chunk_by(|one, next| one.block == next.block).map(<[PlannedRun]>::to_vec).collect();
        let (retries, max_repeats) = (experiment.analysis.retries as usize, experiment.max_repeats());
        Self { blocks, variants, families, retries, max_repeats }
    }

    /// Returns the next run and its attempt: first every run of a block in order, then the invalid ones, round by round.
    pub(crate) fn next(&self, records: &Records) -> Option<(PlannedRun, u32)> {
        let retries = self.retries(records);
        self.blocks.iter().find_map(|block| self.next_of(block, records, retries))
    }

    /// Repeats allowed for one run: none if the campaign has made all its repeats.
    fn retries(&self, records: &Records) -> usize {
        if records.repeats() < self.max_repeats { self.retries } else { 0 }
    }

    fn next_of(&self, block: &[PlannedRun], records: &Records, retries: usize) -> Option<(PlannedRun, u32)> {
        let open = block.iter().filter(|planned| self.is_open(planned, records, retries));
        let planned = open.min_by_key(|planned| self.spent(planned, records))?;
        let attempt = self.made(planned, records).count();
        Some((*planned, u32::try_from(attempt).unwrap_or(u32::MAX)))
    }

    pub(crate) fn left(&self, records: &Records) -> usize {
        let retries = self.retries(records);
        self.blocks.iter().flatten().filter(|planned| self.is_open(planned, records, retries)).count()
    }

    /// Whether there is no valid run yet and another attempt is allowed.
    fn is_open(&self, planned: &PlannedRun, records: &Records, retries: usize) -> bool {
        !self.made(planned, records).any(RunRecord::is_valid) && self.spent(planned, records) <= retries
    }

    /// Counts the runs that were not interrupted: only these count as retries.
    fn spent(&self, planned: &PlannedRun, records: &Records) -> usize {
        self.made(planned, records).filter(|run| !run.is_interrupted()).count()
    }

    fn made<'r>(&self, planned: &PlannedRun, records: &'r Records) -> impl Iterator<Item = &'r RunRecord>
    where
        'a: 'r,
    {
        let variant = self.variants[planned.cell.variant].name;
        let family = self.families[planned.cell.family].name;
        records.of(planned.block, variant, family)
    }

    pub(crate) fn starting(&self, planned: &PlannedRun, attempt: u32) -> RunStart<'a> {
        RunStart {
            block: planned.block,
            blocks: u32::try_from(self.blocks.len()).unwrap_or(u32::MAX),
            attempt,
            variant: self.variants[planned.cell.variant].label,
            family: self.families[planned.cell.family].label,
        }
    }
}
