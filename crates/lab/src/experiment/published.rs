//! Figures that others published, to stand beside those of the campaign.

use serde::{Deserialize, Serialize};

/// Published figures, and what is and is not comparable with them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Who published them, and on which machine they were measured.
    pub source: String,
    /// A paragraph on what is and what is not comparable with the figures of the campaign.
    pub comparable: String,
    /// The figures.
    pub figures: Vec<PublishedFigure>,
}

/// One published comparison, which corresponds to a comparison of the campaign.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedFigure {
    /// Name of the family.
    pub family: String,
    /// Name of the variant that stands for what was measured.
    pub variant: String,
    /// Name of the variant that stands for what it was compared with.
    pub against: String,
    /// The published rate of the variant, in the experiment's metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// The published rate of what it was compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against_rate: Option<f64>,
    /// The published relative difference: 0.21 is +21 %. It may be one of averages where the rates are medians.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<f64>,
    /// Whether the publication proved a difference.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub proven: bool,
}

impl PublishedFigure {
    /// The relative difference that was published, or else that of the published rates.
    pub fn relative_difference(&self) -> Option<f64> {
        let of_rates = self.rate.zip(self.against_rate).map(|(rate, against)| rate / against - 1.0);
        self.difference.or(of_rates)
    }
}

fn yes() -> bool {
    true
}

fn is_yes(answer: &bool) -> bool {
    *answer
}
