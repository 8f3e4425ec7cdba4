//! The settings of the statistics.

use serde::{Deserialize, Serialize};

/// How variants are compared and judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Analysis {
    /// Name of the variant that all others are compared with. The default is the first variant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// The largest relative difference that does not matter: 0.01 is one per cent.
    pub margin: f64,
    /// Probability of at least one false alarm in the whole family of comparisons.
    pub alpha: f64,
    /// Pairs `[variant, against]`. The default is every variant against the baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparisons: Option<Vec<[String; 2]>>,
    /// Blocks before the first look at the results; the default is `runs`, or 5 if that is not a number. A resumed
    /// campaign keeps the first look that it began with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_look: Option<u32>,
    /// Blocks of a campaign that runs until it is decided, at most.
    pub max_blocks: u32,
    /// Minutes of such a campaign, at most. It ends at the last look that fits.
    pub max_minutes: f64,
    /// How often an invalid panel is repeated.
    pub retries: u32,
    /// Repeats of invalid panels in the whole campaign. The default is half the number of planned panels, so that a
    /// campaign on a noisy machine takes at most half as long again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_repeats: Option<usize>,
    /// What a rate counts, in the words of the ministat labels.
    pub metric: String,
    /// Whether the graph has the right axis of the netbenches graphs: the rate as Ethernet throughput with simple IMIX.
    pub imix_axis: bool,
    /// What the positions `at` of variants or families count, for the axis of a second graph. Without it there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub axis: Option<String>,
}

impl Default for Analysis {
    fn default() -> Self {
        Self {
            baseline: None,
            margin: 0.01,
            alpha: 0.05,
            comparisons: None,
            first_look: None,
            max_blocks: 40,
            max_minutes: 10.0,
            retries: 2,
            max_repeats: None,
            metric: "packets-per-second forwarded".into(),
            imix_axis: false,
            axis: None,
        }
    }
}
