//! The settings that the variants of an experiment are measured with.

use fullview_lab::Experiment;

use crate::settings::Settings;

/// The settings of each variant, laid over the common ones.
pub fn variants(experiment: &Experiment<Settings>) -> Vec<Settings> {
    let variants = experiment.variants.iter();
    variants.map(|variant| variant.set.clone().laid_over(&experiment.subject)).collect()
}
