//! Series of runs: from the raw logs, and from the published columns of medians.

use serde::Serialize;

use crate::folder::{Column, Folder, RawRun};
use crate::info::Info;
use crate::name::RunName;
use crate::published::{PublishedMedians, RunLines};
use crate::trend::trend;

/// A receiver that counts this share of what was sent counts all of it: the two clocks, and the seconds that are left out,
/// differ.
const ALL: f64 = 0.99;

/// The runs of one variant under one traffic.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    pub name: String,
    pub variant: String,
    pub family: String,
    pub unit: String,
    /// Values in the order of the runs' numbers; of a column alone, in the order of its lines.
    pub values: Vec<f64>,
    /// The published column, by name, and what differs in it.
    pub column: Option<String>,
    #[serde(flatten)]
    pub medians: PublishedMedians,
    pub clocks: Vec<f64>,
    /// What was sent in the runs whose generator left a log, in packets per second.
    pub offered: Vec<f64>,
    /// How many of these runs carried all of it: the generator or the wire was the limit.
    pub generator_limited: usize,
    /// Probability of this order without a trend over the runs.
    pub trend: Option<f64>,
    /// By how much the last quarter of each run differs from its first.
    pub drifts: Vec<f64>,
    /// Seconds of each run in which no packet came; the values leave them out.
    pub silent: Vec<usize>,
}

impl Series {
    /// Whether the generator or the wire was the limit of all runs of which it is known what was sent.
    pub fn is_generator_limited(&self) -> bool {
        self.generator_limited > 0 && self.generator_limited == self.offered.len()
    }

    /// In how many runs packets stopped, so that the values say too much.
    pub fn interrupted(&self) -> usize {
        self.silent.iter().filter(|seconds| **seconds > 0).count()
    }
}

/// `1 run`, `5 runs`.
pub(crate) fn counted(runs: usize) -> String {
    if runs == 1 { "1 run".into() } else { format!("{runs} runs") }
}

/// All series of a directory, in the order of their names.
pub fn series(folder: &Folder) -> Vec<Series> {
    let mut free: Vec<&Column> = folder.columns.iter().collect();
    let mut found: Vec<Series> = folder
        .runs
        .chunk_by(|one, other| one.name.series == other.name.series)
        .map(|runs| of_runs(runs, folder, &mut free))
        .collect();
    found.extend(free.into_iter().map(of_column));
    found
}

fn of_runs(runs: &[RawRun], folder: &Folder, free: &mut Vec<&Column>) -> Series {
    let name = &runs[0].name.series;
    let sent: Vec<(f64, f64)> = runs.iter().filter_map(|run| Some((run.value, sent(run, folder)?))).collect();
    let info = folder.infos.iter().find(|info| info.series() == *name);
    let values: Vec<f64> = runs.iter().map(|run| run.value).collect();
    let unread = folder.unread.iter().filter(|unread| unread.series == *name);
    let lines = RunLines::new(runs, unread.map(|unread| unread.run));
    let at = free.iter().position(|column| column.name == *name);
    let at = at.or_else(|| free.iter().position(|column| lines.is_column_by_name(&column.values)));
    let column = at.map(|at| free.remove(at));
    let parts = info.map_or_else(|| split(name), |info| parts(info, column));
    Series {
        name: name.clone(),
        variant: parts.0,
        family: parts.1,
        unit: runs[0].unit.clone(),
        trend: trend(&values),
        column: column.map(|column| column.name.clone()),
        medians: column.map(|column| lines.compare(&column.values)).unwrap_or_default(),
        clocks: runs.iter().filter_map(|run| run.clock).collect(),
        generator_limited: sent.iter().filter(|(value, offered)| *value >= ALL * offered).count(),
        offered: sent.into_iter().map(|(_, offered)| offered).collect(),
        drifts: runs.iter().map(|run| run.drift).collect(),
        silent: runs.iter().map(|run| run.silent).collect(),
        values,
    }
}

/// What the generator sent in the run.
fn sent(run: &RawRun, folder: &Folder) -> Option<f64> {
    let of_run = |(name, _): &&(RunName, f64)| (&name.series, name.run) == (&run.name.series, run.name.run);
    folder.offered.iter().find(of_run).map(|(_, sent)| *sent)
}

fn of_column(column: &Column) -> Series {
    let (variant, family) = split(&column.name);
    Series {
        name: column.name.clone(),
        variant,
        family,
        unit: "pps".into(),
        values: column.values.clone(),
        column: Some(column.name.clone()),
        medians: PublishedMedians::default(),
        clocks: Vec::new(),
        offered: Vec::new(),
        generator_limited: 0,
        // The order of the runs is known only of fewer than ten, where that of names is the same.
        trend: (column.values.len() < 10).then(|| trend(&column.values)).flatten(),
        drifts: Vec::new(),
        silent: Vec::new(),
    }
}

/// Variant and family by the `.info` file; a folder of one image without a name takes it from its column.
fn parts(info: &Info, column: Option<&Column>) -> (String, String) {
    let family: Vec<&str> =
        [&*info.config, &*info.traffic].into_iter().filter(|part| !part.is_empty()).collect();
    match (info.image.is_empty(), column) {
        (true, _) if !info.config.is_empty() => (info.config.clone(), info.traffic.clone()),
        (true, Some(column)) => split(&column.name),
        _ => (info.image.clone(), family.join(".")),
    }
}

/// Without an `.info` file, the last part of a name is the family.
fn split(name: &str) -> (String, String) {
    name.rsplit_once('.')
        .map_or((String::new(), name.into()), |(variant, family)| (variant.into(), family.into()))
}
