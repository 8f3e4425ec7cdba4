//! What a campaign will take and what it will see, before it is measured.

use serde::Serialize;

use crate::experiment::Experiment;
use crate::noise::{FamilyNoise, Noise, Spread};
use crate::stats::{Looks, Rules, interval_reach, smallest_difference, spread_at_most};

/// The probability with which the smallest difference of a forecast is seen.
pub const POWER: f64 = 0.95;
/// The part of a panel that is not measurement, where no panel was measured: preparation and verification.
const PREPARATION: f64 = 1.5;

/// The size of a campaign, and what it will see at each of its looks.
#[derive(Debug, Clone, Serialize)]
pub struct Forecast {
    /// Variants times families.
    pub cells: usize,
    /// Panels of a block: one for each family.
    pub panels: usize,
    /// Arms that take turns in a panel: the variants, the copy of the baseline, the controls.
    pub arms: usize,
    /// Comparisons in all families.
    pub comparisons: usize,
    /// Minutes of one block.
    pub block_minutes: f64,
    /// The most blocks that the campaign may have.
    pub most_blocks: u32,
    /// The most minutes that a campaign until decided may take.
    pub most_minutes: f64,
    /// The difference that does not matter.
    pub margin: f64,
    /// The looks that fit, in their order.
    pub looks: Vec<ForecastLook>,
}

/// One look of a forecast.
#[derive(Debug, Clone, Serialize)]
pub struct ForecastLook {
    /// Blocks that were made by then.
    pub blocks: u32,
    /// Minutes that they take, without repeats.
    pub minutes: f64,
    /// What is seen in each family; empty without a measured noise.
    pub families: Vec<FamilyForecast>,
}

/// What is seen in one family. Differences are relative.
#[derive(Debug, Clone, Serialize)]
pub struct FamilyForecast {
    /// Title of the family.
    pub title: String,
    /// How far the interval of a comparison reaches to either side, of the whole loop.
    pub half_width: Option<f64>,
    /// The same of the members' shares of the loop.
    pub share_half_width: Option<f64>,
    /// The smallest true difference that is told apart from the margin with a probability of [`POWER`]; `None` if no
    /// difference is.
    pub seen: Option<f64>,
}

/// Forecasts a campaign of this experiment, with the noise that was measured on this machine if there is any.
pub fn forecast<S>(experiment: &Experiment<S>, noise: Option<&Noise>) -> Forecast {
    let families = experiment.families.len();
    let block_minutes = block_seconds(experiment, noise) / 60.0;
    let controls = noise.and_then(|noise| noise.families.first()).map_or(1, |family| family.controls);
    let mut forecast = Forecast {
        cells: families * experiment.variants.len(),
        panels: families,
        arms: controls + experiment.variants.len() + 1,
        comparisons: families * experiment.comparisons().len(),
        block_minutes,
        most_blocks: experiment.most_blocks(),
        most_minutes: experiment.analysis.max_minutes,
        margin: experiment.analysis.margin,
        looks: Vec::new(),
    };
    forecast.looks = looks(experiment, noise, &forecast);
    forecast
}

/// What is seen after so many blocks, in each family of `noise` that the experiment has.
pub fn seen_after<S>(experiment: &Experiment<S>, noise: &Noise, blocks: u32) -> Vec<FamilyForecast> {
    let comparisons = experiment.families.len() * experiment.comparisons().len();
    let rules = Rules {
        margin: experiment.analysis.margin,
        alpha: experiment.analysis.alpha,
        looks: Looks::starting_at(experiment.first_look()),
    };
    let families = experiment.families.iter().filter_map(|family| noise.family(&family.name));
    families.map(|family| family_forecast(family, blocks, comparisons, &rules)).collect()
}

fn looks<S>(experiment: &Experiment<S>, noise: Option<&Noise>, size: &Forecast) -> Vec<ForecastLook> {
    let looks = Looks::starting_at(experiment.first_look());
    let first = looks.next_after(0).min(size.most_blocks);
    let later = std::iter::successors(Some(first), |blocks| Some(looks.next_after(*blocks)));
    let fits = |blocks: &u32| {
        let minutes = f64::from(*blocks) * size.block_minutes;
        *blocks == first || *blocks <= size.most_blocks && minutes <= size.most_minutes
    };
    let at = |blocks: u32| ForecastLook {
        blocks,
        minutes: f64::from(blocks) * size.block_minutes,
        families: noise.map_or_else(Vec::new, |noise| seen_after(experiment, noise, blocks)),
    };
    later.take_while(fits).map(at).collect()
}

fn family_forecast(family: &FamilyNoise, blocks: u32, comparisons: usize, rules: &Rules) -> FamilyForecast {
    let reach = |spread: Option<Spread>| interval_reach(blocks, spread?.stddev, comparisons, rules);
    // The spread is known from few blocks. A promise is made from what it is at most.
    let most = |spread: Spread| spread_at_most(spread.stddev, spread.degrees_of_freedom);
    let seen = |spread: Option<Spread>| smallest_difference(blocks, most(spread?), comparisons, rules, POWER);
    let whole = seen(family.whole);
    let share = if family.subtracts { seen(family.share) } else { whole };
    FamilyForecast {
        title: family.title.clone(),
        half_width: reach(family.whole),
        share_half_width: reach(family.share),
        seen: whole.zip(share).map(|(whole, share)| whole.max(share)),
    }
}

/// The time of a block: from panels that were measured, in proportion to their arms, or from the window alone.
fn block_seconds<S>(experiment: &Experiment<S>, noise: Option<&Noise>) -> f64 {
    let window = &experiment.window;
    let members = experiment.variants.len() + 1;
    let of_window =
        window.warmup().as_secs_f64() + window.measure().as_secs_f64() * (members + 1) as f64 * PREPARATION;
    let measured = |family: &FamilyNoise| {
        family.panel_seconds * (family.controls + members) as f64 / family.arms.max(1) as f64
    };
    let families = experiment.families.iter();
    let of_family = |name: &str| noise.and_then(|noise| noise.family(name)).map_or(of_window, measured);
    families.map(|family| of_family(&family.name)).sum()
}
