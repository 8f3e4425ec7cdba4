//! Whether the two sides of a comparison had the same bed.

use std::fmt;
use std::path::Path;

use crate::campaign::{Campaign, Measurements};
use crate::error::{ArchiveError, LabError};
use crate::observations::{Observations, PanelObservation};
use crate::stats::{Contrast, Effect};

const CONFIDENCE: f64 = 0.99;
/// Beds differ if the interval of their rates' ratio lies outside this part of the margin.
const PART_OF_MARGIN: f64 = 0.25;

/// Two controls of one family whose rates differ, although two variants on these beds are compared.
#[derive(Debug, Clone, PartialEq)]
pub struct BedDifference {
    /// Title of the family.
    pub family: String,
    /// Label of a variant on the one bed.
    pub variant: String,
    /// Label of a variant on the other bed, which it is compared with.
    pub against: String,
    /// The ratio of the beds' rates less 1, with a 99 % interval.
    pub effect: Effect,
}

impl fmt::Display for BedDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { family, variant, against, effect } = self;
        let (word, less, more) = match effect.low > 0.0 {
            true => ("faster", effect.low, effect.high),
            false => ("slower", -effect.high, -effect.low),
        };
        let [less, more] = [less, more].map(|share| share * 100.0);
        write!(
            f,
            "{family}: without a router the bed of {variant} is {less:.1} to {more:.1} % {word} than that of {against}; \
             the difference of their whole loops contains it"
        )
    }
}

/// Finds the comparisons of a campaign whose sides had beds of different rates.
pub fn differences(folder: &Path) -> Result<Vec<BedDifference>, LabError> {
    let campaign = Campaign::read(folder)?;
    let Measurements::Panels(panels) = &campaign.measured else {
        return Err(ArchiveError::WithoutPanels { folder: folder.into() }.into());
    };
    let experiment = &campaign.experiment;
    let observations = Observations::of(experiment, panels, folder)?;
    let limit = experiment.analysis.margin * PART_OF_MARGIN;
    let mut found: Vec<BedDifference> = Vec::new();
    for (index, family) in experiment.families.iter().enumerate() {
        let panels = observations.family(index);
        let mut seen = Vec::new();
        for pair in experiment.comparisons() {
            let Some(effect) = effect(panels, [pair.variant, pair.against]) else { continue };
            // In every panel the same variants have one bed, so the first panel knows which beds have been compared.
            let beds = panels.first().map(|panel| panel.controls_of(pair.variant, pair.against));
            if (effect.low > limit || effect.high < -limit) && !seen.contains(&beds) {
                let [variant, against] =
                    [pair.variant, pair.against].map(|variant| experiment.variants[variant].label.clone());
                found.push(BedDifference { family: family.title.clone(), variant, against, effect });
                seen.push(beds);
            }
        }
    }
    Ok(found)
}

/// The ratio of the rates of two members' beds; `None` if they have one.
fn effect(panels: &[PanelObservation], [member, against]: [usize; 2]) -> Option<Effect> {
    let ratios: Option<Vec<f64>> =
        panels.iter().map(|panel| panel.control_ratio(member, against).map(f64::exp)).collect();
    let ratios = ratios?;
    Contrast::paired(&vec![1.0; ratios.len()], &ratios).log_ratio(CONFIDENCE)
}
