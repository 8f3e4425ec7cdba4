//! A campaign's progress bar.

use std::time::Duration;

use fullview_lab::{Progress, RunRecord, RunStart};
use fullview_router::log;
use fullview_router::progress::style;
use indicatif::ProgressBar;

/// The bar of a campaign: one step a run.
pub struct CampaignBar {
    bar: ProgressBar,
}

impl Default for CampaignBar {
    fn default() -> Self {
        CampaignBar { bar: ProgressBar::no_length() }
    }
}

impl CampaignBar {
    fn left(&self, remaining: Duration) {
        self.bar.set_prefix(format!("{} left", indicatif::HumanDuration(remaining)));
    }
}

impl Progress for CampaignBar {
    fn started(&mut self, total_runs: usize, estimated: Duration) {
        self.bar.set_length(total_runs as u64);
        self.bar.set_style(style("{bar:30} run {pos}/{len}  {prefix}  {msg}"));
        self.left(estimated);
    }

    fn run_started(&mut self, run: &RunStart<'_>) {
        let again = if run.attempt > 0 { ", again" } else { "" };
        self.bar.set_message(format!("{}: {}{again}", run.family, run.variant));
        self.bar.tick();
    }

    fn run_finished(&mut self, record: &RunRecord, remaining: Duration) {
        self.left(remaining);
        if record.is_valid() {
            self.bar.inc(1);
        } else {
            let (variant, family, reasons) = (&record.variant, &record.family, &record.validity);
            let line = format!("{variant}, {family}: run kept, not counted: {reasons}");
            self.bar.suspend(|| log::line(&line));
        }
    }
}

impl Drop for CampaignBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
