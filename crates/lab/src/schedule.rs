//! The next panel of a campaign: a pure function of the plan and of the panels already made.
//!
//! A campaign therefore continues in the same way after a stop, a crash and an invalid panel.

use std::collections::BTreeSet;

use crate::archive::MeasuredPanel;
use crate::experiment::Experiment;
use crate::plan::{self, PlannedPanel};
use crate::record::PanelRecord;

/// The panels of a campaign in their order.
pub(crate) struct Schedule<'a> {
    families: Vec<&'a str>,
    seed: u64,
    retries: usize,
}

/// The next panel, and the number of earlier panels of the same block and family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NextPanel {
    pub(crate) planned: PlannedPanel,
    pub(crate) attempt: u32,
}

impl<'a> Schedule<'a> {
    pub(crate) fn of<S>(experiment: &'a Experiment<S>) -> Self {
        let families = experiment.families.iter().map(|family| family.name.as_str()).collect();
        Self { families, seed: experiment.seed, retries: experiment.analysis.retries as usize }
    }

    /// Returns the next panel of the first `blocks` blocks: first every panel of a block in order, then the invalid ones
    /// again. `max_repeats` is the number of repeats that so many blocks may have.
    pub(crate) fn next(
        &self,
        panels: &[MeasuredPanel],
        blocks: u32,
        max_repeats: usize,
    ) -> Option<NextPanel> {
        let retries = if repeats(panels) < max_repeats { self.retries } else { 0 };
        (0..blocks).find_map(|block| self.next_of(block, panels, retries))
    }

    /// Counts the panels of the first `blocks` blocks that [`Self::next`] will still return.
    pub(crate) fn left(&self, panels: &[MeasuredPanel], blocks: u32, max_repeats: usize) -> usize {
        let retries = if repeats(panels) < max_repeats { self.retries } else { 0 };
        let planned = (0..blocks).flat_map(|block| plan::block(self.families.len(), block, self.seed));
        planned.filter(|planned| self.is_open(planned, panels, retries)).count()
    }

    fn next_of(&self, block: u32, panels: &[MeasuredPanel], retries: usize) -> Option<NextPanel> {
        let planned = plan::block(self.families.len(), block, self.seed).into_iter();
        let open = planned.filter(|planned| self.is_open(planned, panels, retries));
        let planned = open.min_by_key(|planned| self.spent(planned, panels))?;
        let attempt = self.made(&planned, panels).count();
        Some(NextPanel { planned, attempt: u32::try_from(attempt).unwrap_or(u32::MAX) })
    }

    /// Whether there is no valid panel yet and another attempt is allowed.
    fn is_open(&self, planned: &PlannedPanel, panels: &[MeasuredPanel], retries: usize) -> bool {
        !self.made(planned, panels).any(PanelRecord::is_valid) && self.spent(planned, panels) <= retries
    }

    /// Counts the panels that were not interrupted: only these count as attempts.
    fn spent(&self, planned: &PlannedPanel, panels: &[MeasuredPanel]) -> usize {
        self.made(planned, panels).filter(|panel| !panel.is_interrupted()).count()
    }

    fn made<'p>(
        &self,
        planned: &PlannedPanel,
        panels: &'p [MeasuredPanel],
    ) -> impl Iterator<Item = &'p PanelRecord> {
        let (block, family) = (planned.block, self.families[planned.family]);
        let records = panels.iter().map(|panel| &panel.record);
        records.filter(move |record| record.block == block && record.family == family)
    }
}

/// Counts the panels that were made because an earlier panel of the same block and family was invalid.
pub(crate) fn repeats(panels: &[MeasuredPanel]) -> usize {
    let ended = || panels.iter().map(|panel| &panel.record).filter(|panel| !panel.is_interrupted());
    let cells: BTreeSet<_> = ended().map(|panel| (panel.block, &panel.family)).collect();
    ended().count() - cells.len()
}
