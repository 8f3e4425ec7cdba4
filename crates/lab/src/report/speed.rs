//! How fast the machine was: in each panel the rate of the baseline's control, and the factor to the campaign's median.

use serde::Serialize;

use crate::observations::{Observations, PanelObservation};
use crate::stats::median;

/// The machine during the valid panels of one family.
#[derive(Debug, Clone)]
pub(super) struct MachineSpeed {
    /// What the baseline's control counted per second: the median over the panels.
    pub(super) median: f64,
    /// The panels in the order in which they were made.
    pub(super) panels: Vec<PanelSpeed>,
}

/// The machine during one panel, as `report.json` has it.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct PanelSpeed {
    pub(super) block: u32,
    /// What the control counted per second.
    pub(super) rate: f64,
    /// The median over the panels, divided by this rate: about what raises or lowers the rates of this panel.
    pub(super) factor: f64,
    /// Rounds that were measured.
    pub(super) rounds: usize,
    /// Rounds that count.
    pub(super) kept: usize,
}

impl MachineSpeed {
    /// The speeds of every family; `None` for a family without a valid panel.
    pub(super) fn of_families(observations: &Observations, families: usize) -> Vec<Option<Self>> {
        (0..families).map(|family| Self::of(observations.family(family))).collect()
    }

    fn of(panels: &[PanelObservation]) -> Option<Self> {
        let median = median_speed(panels)?;
        let speed = |panel: &PanelObservation| {
            let rate = panel.machine_rate()?;
            let (block, rounds, kept) = (panel.block, panel.rounds, panel.kept);
            Some(PanelSpeed { block, rate, factor: median / rate, rounds, kept })
        };
        Some(Self { median, panels: panels.iter().filter_map(speed).collect() })
    }

    /// The smallest and the largest factor.
    pub(super) fn factors(&self) -> (f64, f64) {
        let factors = || self.panels.iter().map(|panel| panel.factor);
        (factors().fold(f64::INFINITY, f64::min), factors().fold(0.0, f64::max))
    }

    pub(super) fn rounds(&self) -> usize {
        self.panels.iter().map(|panel| panel.rounds).sum()
    }

    /// The share of the rounds that does not count.
    pub(super) fn left_out(&self) -> f64 {
        let kept: usize = self.panels.iter().map(|panel| panel.kept).sum();
        1.0 - kept as f64 / self.rounds().max(1) as f64
    }
}

/// The median machine speed of a family's panels: what the baseline's control counts per second.
pub(super) fn median_speed(panels: &[PanelObservation]) -> Option<f64> {
    let rates: Vec<f64> = panels.iter().filter_map(PanelObservation::machine_rate).collect();
    median(&rates)
}
