//! The definition of an experiment: the content of its file.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::analysis::Analysis;
use super::family::Family;
use super::variant::Variant;
use super::window::Window;

/// An experiment. `S` is the type of the settings of its subject.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    bound(serialize = "S: Serialize", deserialize = "S: DeserializeOwned + Default")
)]
pub struct Experiment<S> {
    /// Title of the report and of the graph.
    pub title: String,
    /// Facts about the test bed that the program cannot find out, one per line, for the report's list of conditions.
    #[serde(default)]
    pub conditions: Vec<String>,
    /// A sentence under the graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Number of blocks: valid runs to make in every cell (variant × family).
    pub runs: u32,
    /// Seed of the order of the runs and of every random choice of the subjects.
    pub seed: u64,
    /// The families in which each variant is measured, for example `inet` and `inet6`. The lab does not interpret them.
    pub families: Vec<Family>,
    /// The phases of a run and the length of its samples.
    pub window: Window,
    /// Settings of all variants.
    #[serde(default)]
    pub subject: S,
    /// The variants that are compared.
    pub variants: Vec<Variant<S>>,
    /// How the variants are compared and judged.
    #[serde(default)]
    pub analysis: Analysis,
    /// The file the experiment was read from. It is not part of the archive, which has a copy of the text.
    #[serde(skip)]
    pub(crate) source: Source,
}

/// Name and text of the file an experiment was read from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// A comparison of two variants, by their positions in [`Experiment::variants`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comparison {
    /// The variant that is judged.
    pub variant: usize,
    /// The variant it is compared with.
    pub against: usize,
}

impl<S> Experiment<S> {
    /// Position of the variant with this name.
    pub fn variant_index(&self, name: &str) -> Option<usize> {
        self.variants.iter().position(|variant| variant.name == name)
    }

    /// Position of the variant that all others are compared with.
    pub fn baseline(&self) -> usize {
        self.analysis.baseline.as_deref().and_then(|name| self.variant_index(name)).unwrap_or(0)
    }

    /// Number of runs in the plan, without repeats.
    pub fn planned_runs(&self) -> usize {
        self.runs as usize * self.variants.len() * self.families.len()
    }

    /// The largest number of repeats of invalid runs in the whole campaign.
    pub fn max_repeats(&self) -> usize {
        self.analysis.max_repeats.unwrap_or(self.planned_runs().div_ceil(2))
    }

    /// The declared comparisons. Each of them is made in every family.
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
