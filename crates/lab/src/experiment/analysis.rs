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
    /// How often an invalid run is repeated.
    pub retries: u32,
    /// Repeats of invalid runs in the whole campaign. The default is half the number of planned runs, so that a campaign
    /// on a noisy machine takes at most half as long again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_repeats: Option<usize>,
    /// What the value of a run counts, in the words of the ministat labels.
    pub metric: String,
    /// Whether the graph has the right axis of the netbenches graphs: the rate as Ethernet throughput with simple IMIX.
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
