//! Progress with the time left, on standard error, so that standard output stays the result.

use std::time::Duration;

use crate::command::say;
use fullview_lab::{Progress, RunRecord, RunStart};
use indicatif::{ProgressBar, ProgressStyle};

/// The bar of a campaign: one step a run.
pub struct CampaignBar {
    bar: ProgressBar,
}

impl CampaignBar {
    pub fn new() -> Self {
        CampaignBar { bar: ProgressBar::no_length() }
    }

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
            self.bar.suspend(|| say(&line));
        }
    }
}

impl Drop for CampaignBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A bar over the bytes of a file.
pub fn bytes(what: &str) -> ProgressBar {
    let bar = ProgressBar::no_length().with_message(what.to_owned());
    bar.set_style(style("{bar:30} {bytes}/{total_bytes}  {eta} left  {msg}"));
    bar
}

/// A bar over keys that are looked up.
pub fn keys(what: &str, count: usize) -> ProgressBar {
    let bar = ProgressBar::new(count as u64).with_message(what.to_owned());
    bar.set_style(style("{bar:30} {pos}/{len} keys  {eta} left  {msg}"));
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// A bar over things that take about equally long.
pub fn steps(count: u64) -> ProgressBar {
    let bar = ProgressBar::new(count);
    bar.set_style(style("{bar:30} {pos}/{len}  {eta} left  {msg}"));
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// A spinner for what has no length.
pub fn spinner(what: &str) -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_message(what.to_owned());
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
