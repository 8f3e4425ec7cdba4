//! What to run next: a pure function of the plan and of the runs already made.
//!
//! A campaign that was stopped, one that crashed and a run that was invalid therefore all go on in the same way.

use crate::experiment::Experiment;
use crate::plan::{Planned, plan};
use crate::run::Starting;
use crate::sample::{Records, RunRecord};

/// Which runs a campaign makes, and in which order.
pub(crate) struct Schedule<'a> {
    blocks: Vec<Vec<Planned>>,
    variants: Vec<Name<'a>>,
    families: Vec<Name<'a>>,
    retries: usize,
    max_repeats: usize,
}

/// What the records and what the reader call a variant or a family.
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
        let blocks = runs.chunk_by(|one, next| one.block == next.block).map(<[Planned]>::to_vec).collect();
        let (retries, max_repeats) = (experiment.analysis.retries as usize, experiment.max_repeats());
        Self { blocks, variants, families, retries, max_repeats }
    }

    /// The next run and its attempt: first every run of a block in its order, then, round by round, the invalid ones.
    pub(crate) fn next(&self, records: &Records) -> Option<(Planned, u32)> {
        let retries = self.retries(records);
        self.blocks.iter().find_map(|block| self.next_of(block, records, retries))
    }

    /// Repeats that one run may still get: none when the campaign has made all it may.
    fn retries(&self, records: &Records) -> usize {
        if records.repeats() < self.max_repeats { self.retries } else { 0 }
    }

    fn next_of(&self, block: &[Planned], records: &Records, retries: usize) -> Option<(Planned, u32)> {
        let open = block.iter().filter(|planned| self.is_open(planned, records, retries));
        let planned = open.min_by_key(|planned| self.spent(planned, records))?;
        let attempt = self.made(planned, records).count();
        Some((*planned, u32::try_from(attempt).unwrap_or(u32::MAX)))
    }

    pub(crate) fn left(&self, records: &Records) -> usize {
        let retries = self.retries(records);
        self.blocks.iter().flatten().filter(|planned| self.is_open(planned, records, retries)).count()
    }

    /// Whether a valid run is still missing and may still be tried for.
    fn is_open(&self, planned: &Planned, records: &Records, retries: usize) -> bool {
        !self.made(planned, records).any(RunRecord::is_valid) && self.spent(planned, records) <= retries
    }

    /// Runs made that were not cut short from outside: only these use up retries.
    fn spent(&self, planned: &Planned, records: &Records) -> usize {
        self.made(planned, records).filter(|run| !run.is_interrupted()).count()
    }

    fn made<'r>(&self, planned: &Planned, records: &'r Records) -> impl Iterator<Item = &'r RunRecord>
    where
        'a: 'r,
    {
        let variant = self.variants[planned.cell.variant].name;
        let family = self.families[planned.cell.family].name;
        records.of(planned.block, variant, family)
    }

    pub(crate) fn starting(&self, planned: &Planned, attempt: u32) -> Starting<'a> {
        Starting {
            block: planned.block,
            blocks: u32::try_from(self.blocks.len()).unwrap_or(u32::MAX),
            attempt,
            variant: self.variants[planned.cell.variant].label,
            family: self.families[planned.cell.family].label,
        }
    }
}
