//! The progress bar of a campaign, which moves with each trial.

use fullview_router::progress::style;
use indicatif::ProgressBar;

/// Steps of the bar for each search.
const STEPS: u64 = 100;

/// A bar over searches of which none takes more than some seconds of trials.
pub struct SearchProgress<'b> {
    bar: &'b ProgressBar,
    searches: u64,
    finished: u64,
    most_seconds: f64,
    /// Of trials of the search that runs.
    seconds: f64,
}

impl<'b> SearchProgress<'b> {
    pub fn new(bar: &'b ProgressBar, searches: usize, most_seconds: f64) -> SearchProgress<'b> {
        let searches = searches as u64;
        bar.set_length(searches * STEPS);
        bar.set_style(style("{bar:30} {prefix}  {eta} left  {msg}"));
        SearchProgress { bar, searches, finished: 0, most_seconds, seconds: 0.0 }
    }

    pub fn begin(&self, device: &str) {
        self.bar.set_prefix(format!("search {} of {}", self.finished + 1, self.searches));
        self.bar.set_message(device.to_owned());
    }

    /// After a trial of the search that runs.
    pub fn advance(&mut self, trial_seconds: f64) {
        self.seconds += trial_seconds;
        let share = (self.seconds / self.most_seconds).min(1.0);
        self.bar.set_position(self.finished * STEPS + (share * STEPS as f64) as u64);
    }

    /// Most searches end before they have taken all their time.
    pub fn end(&mut self) {
        self.finished += 1;
        self.seconds = 0.0;
        self.bar.set_position(self.finished * STEPS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_moves_with_each_trial_and_never_beyond_its_search() {
        let bar = ProgressBar::hidden();
        let mut progress = SearchProgress::new(&bar, 2, 10.0);
        progress.begin("kernel");
        progress.advance(2.5);
        assert_eq!((bar.position(), bar.length()), (25, Some(200)));
        progress.advance(20.0);
        assert_eq!(bar.position(), 100);
        progress.end();
        progress.begin("xdp");
        progress.advance(1.0);
        assert_eq!((bar.position(), bar.prefix()), (110, "search 2 of 2".into()));
    }
}
