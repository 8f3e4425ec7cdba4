//! The largest load of a search in namespaces: what the generator itself holds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::bed::{BedPlan, RateBed};
use super::error::RatesError;
use super::generator::offer;
use super::receiver::{await_silence, received, settled};
use super::trial::{MOST_BEHIND, RateTrial};

/// More than any generator sends.
pub const ALL: f64 = 1e8;
pub const TRIALS: usize = 3;
/// A generator that is always late can neither wait nor make up for anything.
pub const ROOM: f64 = 0.8;

/// Measures the largest load that the generator offers on schedule: over a link, while the other core forwards, and when the
/// receiver has room for nothing, because the kernel reports every packet without room by a call of its own. No more than
/// `most` is offered.
pub fn largest_load(
    plan: BedPlan,
    [smallest, most]: [f64; 2],
    seconds: f64,
    stop: &AtomicBool,
) -> Result<f64, RatesError> {
    let refused = fastest(&RateBed::blocked(plan)?, seconds)?;
    let forwarded = fastest(&RateBed::routed(plan, true)?, seconds)?;
    let linked = fastest(&RateBed::direct(plan)?, seconds)?;
    let mut load = most.min(ROOM * linked.min(forwarded).min(refused));
    while load >= 2.0 * smallest {
        if stop.load(Ordering::Relaxed) {
            return Err(RatesError::Stopped);
        }
        let carried = holds(&RateBed::direct(plan)?, load, seconds, MOST_BEHIND)?;
        if carried && holds(&RateBed::routed(plan, true)?, load, seconds, 1.0)? {
            return Ok(load);
        }
        load *= ROOM;
    }
    Err(RatesError::NoLoad { smallest })
}

/// The median rate of trials without a schedule.
fn fastest(bed: &RateBed, seconds: f64) -> Result<f64, RatesError> {
    let rate = |_| Ok(offer(bed, ALL, Duration::from_secs_f64(seconds))?.sent as f64 / seconds);
    let mut rates = (0..TRIALS).map(rate).collect::<Result<Vec<f64>, RatesError>>()?;
    rates.sort_by(f64::total_cmp);
    Ok(rates[TRIALS / 2])
}

/// Whether most trials at this load are on schedule and lose no more than a share.
fn holds(bed: &RateBed, load: f64, seconds: f64, most_lost: f64) -> Result<bool, RatesError> {
    let mut held = 0;
    await_silence(bed)?;
    for _ in 0..TRIALS {
        let before = received(bed)?;
        let offered = offer(bed, load, Duration::from_secs_f64(seconds))?;
        let trial = RateTrial::new(offered, settled(bed, before, offered.sent)?)?;
        held += usize::from(trial.counts() && trial.loss_ratio() <= most_lost);
    }
    Ok(2 * held > TRIALS)
}
