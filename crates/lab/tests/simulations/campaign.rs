//! One simulated campaign: measured and reported by the code that the program uses, as often as it is looked at.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fullview_lab::stats::{Effect, Verdict};
use fullview_lab::{
    Archive, Experiment, LabError, Opening, Outcome, PanelRecord, PanelStart, Progress, report, run,
};
use serde::Deserialize;
use tempfile::TempDir;

use super::bench::{Happenings, OF_BASELINE, OF_CONTROL, SimulatedSettings, VirtualBench};
use super::machine::Random;

/// The families and the variants are as many as those of `experiments/full-view.toml`.
const EXPERIMENT: &str = r#"
title = "Simulated"
families = [{ name = "inet", title = "IPv4" }, { name = "inet6", title = "IPv6" }]
window = { warmup_s = 0.0, measure_s = 0.024, slice_ms = 1.0 }
variants = [{ name = "radix", label = "radix" }, { name = "up", label = "up" }, { name = "down", label = "down" }]
"#;

/// Rounds of a panel.
const ROUNDS: usize = 24;

/// What the campaigns measure, and where.
#[derive(Clone, Copy)]
pub struct Simulated {
    pub happens: Happenings,
    /// The relative difference of the variant `up`; that of `down` is the opposite.
    pub difference: f64,
    pub subtracts: bool,
    /// Error rate of the comparisons.
    pub alpha: f64,
    pub max_blocks: u32,
    /// How much faster the copy of the baseline is, in logarithms.
    pub copy: f64,
    /// Probability that the campaign is interrupted after a panel.
    pub interrupted: f64,
}

/// A report as a reader of `report.json` sees it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Seen {
    pub untrusted: Option<String>,
    pub comparisons: Vec<SeenComparison>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct SeenComparison {
    pub family: String,
    pub variant: String,
    pub verdict: Option<Verdict>,
    pub whole: Option<Effect>,
    pub share: Option<Effect>,
    /// The log ratios of the blocks.
    pub ratios: Vec<f64>,
}

impl Simulated {
    fn experiment(&self, seed: u64) -> Experiment<SimulatedSettings> {
        let Self { alpha, max_blocks, .. } = self;
        let analysis = format!("analysis = {{ alpha = {alpha:?}, max_blocks = {max_blocks} }}");
        let text = format!("seed = {seed}\n{analysis}\n{EXPERIMENT}");
        let mut experiment: Experiment<SimulatedSettings> =
            Experiment::parse("simulated.toml", &text).expect("an experiment");
        for variant in &mut experiment.variants {
            variant.set.difference = Some(self.difference_of(&variant.name));
        }
        experiment
    }

    /// The true relative difference of a variant from the baseline, in the whole loop.
    pub fn difference_of(&self, variant: &str) -> f64 {
        match variant {
            "up" => self.difference,
            "down" => -self.difference,
            _ => 0.0,
        }
    }

    /// The same in the variant's own share of the loop.
    pub fn share_difference_of(&self, variant: &str) -> f64 {
        let own = |faster: f64| OF_BASELINE / (1.0 + faster) - OF_CONTROL;
        own(0.0) / own(self.difference_of(variant)) - 1.0
    }

    /// Runs a campaign and returns the reports at all its looks, the last one at its end. A panel that fails ends the
    /// program, which is started again.
    pub fn campaign(&self, seed: u64) -> Vec<Seen> {
        let folder = folder();
        let experiment = self.experiment(seed);
        let mut bench = VirtualBench::new(self.happens, self.subtracts, seed);
        bench.copy = self.copy;
        let mut user = User::new(folder.path(), seed, self.interrupted, self.happens.stopped);
        let mut opening = Opening::New;
        loop {
            let mut archive = Archive::open(folder.path(), &experiment, opening).expect("a folder");
            let stop = Arc::clone(&user.stop);
            match run(&experiment, &mut archive, &mut bench, &mut user, &stop) {
                Ok(Outcome::Complete) => break,
                Ok(Outcome::Interrupted) | Err(LabError::Bed { .. }) => opening = Opening::Resume,
                Err(error) => panic!("{error}"),
            }
            stop.store(false, Ordering::Relaxed);
        }
        user.look();
        user.seen
    }
}

/// The user of the program: looks at the results each time that they may end the campaign, and interrupts it.
struct User {
    folder: PathBuf,
    stop: Arc<AtomicBool>,
    random: Random,
    /// Probabilities of an interruption after a panel, and within one.
    interrupted: f64,
    stopped: f64,
    /// Advances of the panel in progress until it is stopped.
    stops_in: Option<usize>,
    begun: bool,
    seen: Vec<Seen>,
}

impl User {
    fn new(folder: &Path, seed: u64, interrupted: f64, stopped: f64) -> User {
        let (stop, random) = (Arc::default(), Random::seeded(!seed));
        let (folder, begun) = (folder.to_owned(), false);
        User { folder, stop, random, interrupted, stopped, stops_in: None, begun, seen: Vec::new() }
    }

    fn look(&mut self) {
        let report = report(&self.folder).expect("a report");
        self.seen.push(serde_json::from_str(report.json()).expect("a document"));
    }

    fn stop_if(&self, stops: bool) {
        self.stop.fetch_or(stops, Ordering::Relaxed);
    }
}

impl Progress for User {
    /// A number of blocks begins, so one has ended, unless this is the first one.
    fn started(&mut self, _panels: usize, _estimated: Duration) {
        if self.begun {
            self.look();
        }
        self.begun = true;
    }

    fn panel_started(&mut self, _panel: &PanelStart<'_>) {
        let stops = self.random.happens(self.stopped);
        self.stops_in = stops.then(|| self.random.below(ROUNDS));
        self.stop_if(self.stops_in == Some(0));
    }

    fn panel_advanced(&mut self, _share: f64) {
        self.stops_in = self.stops_in.and_then(|advances| advances.checked_sub(1));
        self.stop_if(self.stops_in == Some(0));
    }

    fn panel_finished(&mut self, _record: &PanelRecord, _remaining: Duration) {
        let stops = self.random.happens(self.interrupted);
        self.stop_if(stops);
    }
}

/// A folder in memory where there is one: an archive waits for the disk after each panel.
fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.expect("a folder")
}
