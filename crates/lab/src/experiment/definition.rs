//! The definition of an experiment: the content of its file.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::analysis::Analysis;
use super::family::Family;
use super::length::Runs;
use super::published::Published;
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
    /// How many blocks to measure: in each, a panel of every family.
    #[serde(default)]
    pub runs: Runs,
    /// Seed of the order of the runs and of every random choice of the subjects.
    pub seed: u64,
    /// The families in which each variant is measured, for example `inet` and `inet6`. The lab does not interpret them.
    pub families: Vec<Family>,
    /// The phases of a panel and the length of its turns.
    pub window: Window,
    /// Settings of all variants.
    #[serde(default)]
    pub subject: S,
    /// The variants that are compared.
    pub variants: Vec<Variant<S>>,
    /// How the variants are compared and judged.
    #[serde(default)]
    pub analysis: Analysis,
    /// What others published about the same question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Published>,
    /// The file the experiment was read from. It is not part of the archive, which has a copy of the text.
    #[serde(skip)]
    pub(crate) source: Source,
}

/// Blocks before the first look of a campaign that runs until it is decided. With fewer the quantiles of Student's t are
/// so wide that only gross differences are decided.
const FIRST_LOOK: u32 = 5;

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

    /// What a rate of this family counts.
    pub fn metric(&self, family: usize) -> &str {
        self.families[family].metric.as_deref().unwrap_or(&self.analysis.metric)
    }

    /// What the rates of all families count, if it is the same.
    pub fn only_metric(&self) -> Option<&str> {
        let metrics = || (0..self.families.len()).map(|family| self.metric(family));
        metrics().next().filter(|first| metrics().all(|metric| metric == *first))
    }

    /// This experiment with subjects of another type. What refers to variants by name has to be set anew; published figures
    /// are those of the variants before.
    pub fn with_settings<T>(&self, subject: T, variants: Vec<Variant<T>>) -> Experiment<T> {
        Experiment {
            title: self.title.clone(),
            conditions: self.conditions.clone(),
            note: self.note.clone(),
            runs: self.runs,
            seed: self.seed,
            families: self.families.clone(),
            window: self.window.clone(),
            subject,
            variants,
            analysis: self.analysis.clone(),
            published: None,
            source: self.source.clone(),
        }
    }

    /// The number of blocks at which the comparisons are judged first. Later looks follow from it.
    pub fn first_look(&self) -> u32 {
        let of_runs = match self.runs {
            Runs::Blocks(blocks) => blocks,
            Runs::UntilDecided => FIRST_LOOK.min(self.analysis.max_blocks),
        };
        self.analysis.first_look.unwrap_or(of_runs)
    }

    /// The largest number of blocks that the campaign makes.
    pub fn most_blocks(&self) -> u32 {
        match self.runs {
            Runs::Blocks(blocks) => blocks,
            Runs::UntilDecided => self.analysis.max_blocks,
        }
    }

    /// The largest number of repeats of invalid panels in the whole campaign, which has this many blocks.
    pub fn max_repeats(&self, blocks: u32) -> usize {
        let panels = blocks as usize * self.families.len();
        self.analysis.max_repeats.unwrap_or(panels.div_ceil(2))
    }

    /// This experiment as the continuation of the campaign that `before` describes: its looks go on where they were.
    pub(crate) fn continuing(&self, before: &Self) -> Self
    where
        S: Clone,
    {
        let mut now = self.clone();
        if now.first_look() != before.first_look() {
            now.analysis.first_look = Some(before.first_look());
        }
        now
    }

    /// This experiment with the length of another one, which a resumed campaign may change.
    pub(crate) fn with_length_of(&self, now: &Self) -> Self
    where
        S: Clone,
    {
        let mut same = self.clone();
        same.runs = now.runs;
        let Analysis { first_look, max_blocks, max_minutes, retries, max_repeats, .. } = now.analysis;
        let analysis = &mut same.analysis;
        (analysis.first_look, analysis.max_blocks, analysis.max_minutes) =
            (first_look, max_blocks, max_minutes);
        (analysis.retries, analysis.max_repeats) = (retries, max_repeats);
        same
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
