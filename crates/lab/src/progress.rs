//! The progress of a campaign, as the lab reports it to the program.

use std::time::Duration;

use crate::record::PanelRecord;

/// A panel that is about to begin.
#[derive(Debug, Clone, Copy)]
pub struct PanelStart<'a> {
    /// Block, from zero.
    pub block: u32,
    /// Blocks until the next look at the results.
    pub blocks: u32,
    /// Number of earlier panels of the same block and family.
    pub attempt: u32,
    /// Title of the family.
    pub family: &'a str,
}

/// Receives the progress of a campaign; the program draws its progress bar from it.
pub trait Progress {
    /// Called when a number of blocks begins, at whose end the results are looked at: the panels to make until then, and
    /// the time they take as far as that is known.
    fn started(&mut self, panels: usize, estimated: Duration);
    /// Called before each panel.
    fn panel_started(&mut self, panel: &PanelStart<'_>);
    /// Called during a panel with the share of it that is done, from 0 to 1.
    fn panel_advanced(&mut self, share: f64);
    /// Called after each panel, when its record is on the disk. `remaining` includes only repeats that are already needed.
    fn panel_finished(&mut self, record: &PanelRecord, remaining: Duration);
}
