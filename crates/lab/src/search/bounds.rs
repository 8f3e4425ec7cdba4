//! What the trials at one load say about it (appendices A and B of the draft).

use super::target::SearchTarget;

/// A trial as far as it counts for the load it was made at.
#[derive(Debug, Clone, Copy)]
pub struct LoadTrial {
    /// The requested duration decides whether the trial is short for a target.
    pub duration: f64,
    pub effective_duration: f64,
    pub loss_ratio: f64,
}

/// How a load is classified for a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoundKind {
    Lower,
    Upper,
}

/// Time of the trials at a load.
struct DurationSums {
    good_long: f64,
    bad_long: f64,
    good_short: f64,
    bad_short: f64,
}

impl DurationSums {
    fn of(target: &SearchTarget, trials: &[LoadTrial]) -> DurationSums {
        let sum = |long: bool, good: bool| {
            let counts = |trial: &&LoadTrial| {
                (trial.duration >= target.trial_duration) == long
                    && (trial.loss_ratio <= target.loss_ratio) == good
            };
            trials.iter().filter(counts).map(|trial| trial.effective_duration).sum()
        };
        DurationSums {
            good_long: sum(true, true),
            bad_long: sum(true, false),
            good_short: sum(false, true),
            bad_short: sum(false, false),
        }
    }
}

/// Classifies a load. `None` while trials that are still missing could make it either.
///
/// Short trials only ever count against a load: bad ones beyond the share that their good ones allow.
pub fn classify(target: &SearchTarget, trials: &[LoadTrial]) -> Option<BoundKind> {
    let sums = DurationSums::of(target, trials);
    let allowed = sums.good_short * target.exceed_ratio / (1.0 - target.exceed_ratio);
    let bad = sums.bad_long + (sums.bad_short - allowed).max(0.0);
    let whole = (sums.good_long + bad).max(target.duration_sum);
    let limit = whole * target.exceed_ratio;
    let (if_rest_is_good, if_rest_is_bad) = (bad <= limit, whole - sums.good_long <= limit);
    match (if_rest_is_good, if_rest_is_bad) {
        (true, true) => Some(BoundKind::Lower),
        (false, false) => Some(BoundKind::Upper),
        _ => None,
    }
}

/// The loss ratio that the exceed ratio of the long trials' time is above, if time that is missing to the sum was lost
/// altogether. The conditional throughput follows from it.
pub fn conditional_loss_ratio(target: &SearchTarget, trials: &[LoadTrial]) -> f64 {
    let sums = DurationSums::of(target, trials);
    let whole = (sums.good_long + sums.bad_long).max(target.duration_sum);
    // Sums of durations have rounding errors, which are no trials.
    let nothing = whole * 1e-9;
    let mut left = whole * (1.0 - target.exceed_ratio);
    let mut quantile = None;
    for (loss_ratio, duration) in durations_by_loss(target, trials) {
        if let Some(reached) = quantile.filter(|_| left <= nothing) {
            return reached;
        }
        quantile = Some(loss_ratio);
        left -= duration;
    }
    quantile.filter(|_| left <= nothing).unwrap_or(1.0)
}

/// The time of the long trials with each loss ratio, the smallest ratio first.
fn durations_by_loss(target: &SearchTarget, trials: &[LoadTrial]) -> Vec<(f64, f64)> {
    let is_long = |trial: &LoadTrial| trial.duration >= target.trial_duration;
    let mut long: Vec<LoadTrial> = trials.iter().copied().filter(is_long).collect();
    long.sort_by(|one, other| one.loss_ratio.total_cmp(&other.loss_ratio));
    let time = |equal: &[LoadTrial]| equal.iter().map(|trial| trial.effective_duration).sum();
    long.chunk_by(|one, other| one.loss_ratio == other.loss_ratio)
        .map(|equal| (equal[0].loss_ratio, time(equal)))
        .collect()
}
