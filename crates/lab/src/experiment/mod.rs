//! A question, from TOML: which variants of one subject are compared, under which conditions, and how it is decided.
//!
//! The lab reads everything but the subject's own settings, which stay a type of the program (`S`): an unknown key in
//! them is refused by that type, and the place in the file is reported like any other mistake.
//!
//! ```
//! use fullview_lab::Experiment;
//!
//! # fn main() -> Result<(), fullview_lab::ExperimentError> {
//! let text = r#"
//! title = "Is the new table faster?"
//! runs = 10
//! seed = 7
//! families = [{ name = "inet", title = "IPv4" }, { name = "inet6", title = "IPv6" }]
//! window = { warmup_s = 1.0, measure_s = 10.0 }
//! subject = { flows = 5000 }              # common to all variants
//!
//! [[variants]]
//! name = "before"
//! label = "the old table"
//!
//! [[variants]]
//! name = "after"
//! label = "the new table"
//! set = { table = "new" }                 # what it changes
//!
//! [analysis]
//! margin = 0.02                           # less than 2 % does not matter
//! "#;
//! let asked = Experiment::<toml::Table>::parse("question.toml", text)?;
//! assert_eq!(asked.comparisons().len(), 1);
//! assert_eq!(fullview_lab::plan(asked.variants.len(), asked.families.len(), asked.runs, asked.seed).len(), 40);
//! # Ok(())
//! # }
//! ```

mod check;
mod difference;
mod error;
mod family;

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub(crate) use difference::leaves;
pub use error::{ExperimentError, Step};
pub use family::Family;

/// What a subject can be told. Every field is optional, so that a variant names only what it changes.
pub trait Settings: DeserializeOwned + Serialize + Clone + Default {
    /// These settings laid over `base`: the fields set here win, the others are taken from `base`.
    fn over(self, base: &Self) -> Self;
}

/// One experiment file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    bound(serialize = "S: Serialize", deserialize = "S: DeserializeOwned + Default")
)]
pub struct Experiment<S> {
    /// First line of the report and of the graph.
    pub title: String,
    /// Facts of the test bed that no program can see, one line each, for the report's list of conditions.
    #[serde(default)]
    pub conditions: Vec<String>,
    /// A sentence for under the graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Valid runs asked for in every cell (variant × family): the number of blocks.
    pub runs: u32,
    /// Seed of the order of runs and of every random choice of the subjects.
    pub seed: u64,
    /// The series each variant is measured in, for example `inet` and `inet6`: opaque names to the lab.
    pub families: Vec<Family>,
    /// How long a run takes and how it is sampled.
    pub window: Window,
    /// Settings common to all variants.
    #[serde(default)]
    pub subject: S,
    /// What is compared.
    pub variants: Vec<Variant<S>>,
    /// How it is judged.
    #[serde(default)]
    pub analysis: Analysis,
    /// Where the text came from; a rebuilt report reads its own copy, so it is not part of the question.
    #[serde(skip)]
    pub(crate) source: Source,
}

/// The file an experiment was read from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// One of the things compared.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    bound(serialize = "S: Serialize", deserialize = "S: DeserializeOwned + Default")
)]
pub struct Variant<S> {
    /// Short name, for the command line and the records.
    pub name: String,
    /// What reports and graphs call it.
    pub label: String,
    /// The settings it changes.
    #[serde(default)]
    pub set: S,
}

/// The phases of one run, in order: warm up, settle, measure, drain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Seconds of full load before anything counts.
    pub warmup_s: f64,
    /// Seconds between the warm-up and the measurement.
    #[serde(default)]
    pub settle_s: f64,
    /// Seconds that count.
    pub measure_s: f64,
    /// Milliseconds a sample spans; without it one second, or a tenth of a measurement shorter than ten seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_ms: Option<u64>,
    /// Milliseconds to wait for what is still under way when the load has stopped.
    #[serde(default = "default_drain_ms")]
    pub drain_ms: u64,
}

/// How the comparisons are made and judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Analysis {
    /// Name of the variant all others are compared with; the first one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// The relative difference too small to matter: 0.01 is one per cent.
    pub margin: f64,
    /// Chance of at least one false alarm in the whole family of comparisons.
    pub alpha: f64,
    /// Pairs `[variant, against]`; every variant against the baseline when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparisons: Option<Vec<[String; 2]>>,
    /// How often an invalid run is repeated.
    pub retries: u32,
    /// Repeats of invalid runs in the whole campaign; when absent, half as many as runs are planned, so that a noisy
    /// machine makes a campaign half as long again at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_repeats: Option<usize>,
    /// What the value of a run counts, as it stands in the ministat labels.
    pub metric: String,
    /// Draw the right axis of the netbenches graphs: the rate as Ethernet throughput under simple IMIX.
    pub imix_axis: bool,
}

impl Default for Analysis {
    fn default() -> Self {
        Self {
            baseline: None,
            margin: 0.01,
            alpha: 0.05,
            comparisons: None,
            retries: 2,
            max_repeats: None,
            metric: "packets-per-second forwarded".into(),
            imix_axis: false,
        }
    }
}

/// A comparison by position in [`Experiment::variants`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comparison {
    /// The variant judged.
    pub variant: usize,
    /// What it is judged against.
    pub against: usize,
}

impl<S: DeserializeOwned + Default> Experiment<S> {
    /// Reads an experiment and refuses one that cannot be run or judged. `name` is the file name errors show.
    pub fn parse(name: &str, text: &str) -> Result<Self, ExperimentError> {
        let mut experiment: Self =
            toml::from_str(text).map_err(|error| ExperimentError::syntax(name, text, &error))?;
        experiment.source = Source { name: name.into(), text: text.into() };
        experiment.check()?;
        Ok(experiment)
    }
}

impl<S> Experiment<S> {
    /// Checks the whole again: for a caller that changed a field after reading, for example from a flag.
    pub fn check(&self) -> Result<(), ExperimentError> {
        check::check(self).map_err(|mistake| self.refuse(&mistake.path, mistake.message))
    }

    /// The error that refuses the value at `path`, for what only the subject's program can judge.
    pub fn refuse(&self, path: &[Step<'_>], message: String) -> ExperimentError {
        ExperimentError::mistake(&self.source.name, &self.source.text, path, message)
    }

    /// Position of the variant called `name`.
    pub fn variant_index(&self, name: &str) -> Option<usize> {
        self.variants.iter().position(|variant| variant.name == name)
    }

    /// Position of the variant all others are compared with.
    pub fn baseline(&self) -> usize {
        self.analysis.baseline.as_deref().and_then(|name| self.variant_index(name)).unwrap_or(0)
    }

    /// Runs of the plan, without repeats.
    pub fn planned_runs(&self) -> usize {
        self.runs as usize * self.variants.len() * self.families.len()
    }

    /// How many repeats of invalid runs the whole campaign may make.
    pub fn max_repeats(&self) -> usize {
        self.analysis.max_repeats.unwrap_or(self.planned_runs().div_ceil(2))
    }

    /// The declared family of comparisons, without repeating it for each family of the measurement.
    pub fn comparisons(&self) -> Vec<Comparison> {
        match &self.analysis.comparisons {
            Some(pairs) => pairs.iter().filter_map(|pair| self.comparison(pair)).collect(),
            None => self.all_against_baseline(),
        }
    }

    fn comparison(&self, [variant, against]: &[String; 2]) -> Option<Comparison> {
        Some(Comparison { variant: self.variant_index(variant)?, against: self.variant_index(against)? })
    }

    fn all_against_baseline(&self) -> Vec<Comparison> {
        let against = self.baseline();
        let others = (0..self.variants.len()).filter(|&variant| variant != against);
        others.map(|variant| Comparison { variant, against }).collect()
    }
}

/// A window that [`Experiment::check`] refuses may make these panic: its seconds need not be a duration.
impl Window {
    /// Full load before anything counts.
    pub fn warmup(&self) -> Duration {
        Duration::from_secs_f64(self.warmup_s)
    }

    /// Pause between the warm-up and the measurement.
    pub fn settle(&self) -> Duration {
        Duration::from_secs_f64(self.settle_s)
    }

    /// The time that counts.
    pub fn measure(&self) -> Duration {
        Duration::from_secs_f64(self.measure_s)
    }

    /// The time one sample spans.
    pub fn sample(&self) -> Duration {
        let tenth = self.measure() / 10;
        self.sample_ms.map_or_else(|| tenth.min(Duration::from_secs(1)), Duration::from_millis)
    }

    /// The wait for what is still under way when the load has stopped.
    pub fn drain(&self) -> Duration {
        Duration::from_millis(self.drain_ms)
    }

    /// All phases of a run together.
    pub fn total(&self) -> Duration {
        self.warmup() + self.settle() + self.measure() + self.drain()
    }
}

fn default_drain_ms() -> u64 {
    200
}
