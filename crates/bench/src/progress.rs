//! A campaign's progress bar.

use std::time::{Duration, Instant};

use fullview_lab::{PanelRecord, PanelStart, Progress};
use fullview_router::log;
use fullview_router::progress::style;
use indicatif::ProgressBar;

/// Steps of the bar for each panel.
const STEPS: u64 = 50;

/// The bar of a campaign until its next look.
pub struct CampaignBar {
    bar: ProgressBar,
    /// Steps of the panels that are finished.
    done: u64,
    /// When the panels until the next look are expected to be finished.
    look: Instant,
}

impl Default for CampaignBar {
    fn default() -> Self {
        CampaignBar { bar: ProgressBar::no_length(), done: 0, look: Instant::now() }
    }
}

impl CampaignBar {
    fn left(&mut self, remaining: Duration) {
        self.look = Instant::now() + remaining;
        self.show_left();
    }

    fn show_left(&self) {
        let left = self.look.saturating_duration_since(Instant::now());
        self.bar.set_prefix(format!("{} until the next look", indicatif::HumanDuration(left)));
    }
}

impl Progress for CampaignBar {
    fn started(&mut self, panels: usize, estimated: Duration) {
        self.done = 0;
        self.bar.set_length(panels as u64 * STEPS);
        self.bar.set_position(0);
        self.bar.set_style(style("{bar:30} {prefix}  {msg}"));
        self.left(estimated);
    }

    fn panel_started(&mut self, panel: &PanelStart<'_>) {
        let again = if panel.attempt > 0 { ", again" } else { "" };
        let (block, blocks) = (panel.block + 1, panel.blocks);
        self.bar.set_message(format!("block {block}/{blocks}, {}{again}", panel.family));
        self.bar.tick();
    }

    fn panel_advanced(&mut self, share: f64) {
        self.show_left();
        self.bar.set_position(self.done + (share.clamp(0.0, 1.0) * STEPS as f64) as u64);
    }

    fn panel_finished(&mut self, record: &PanelRecord, remaining: Duration) {
        self.left(remaining);
        if record.is_valid() {
            self.done += STEPS;
        } else {
            let PanelRecord { block, family, validity, .. } = record;
            let line = format!("block {}, {family}: panel kept, not counted: {validity}", block + 1);
            self.bar.suspend(|| log::line(&line));
        }
        self.bar.set_position(self.done);
    }
}

impl Drop for CampaignBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
