//! How long a device loses packets when the link or the route fails by which it sends.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fullview_lab::stats::median;
use serde::{Deserialize, Serialize};

use super::error::RatesError;
use super::failure::Failure;
use super::outage::Outage;
use super::table_load::{ChangeRate, RoutesPlan};
use super::traced_trial::TracedTrial;

/// The load of all devices, unless the largest load is too near.
const LOAD: f64 = 10_000.0;
/// The trial in which something fails is one part, in which the generator makes no pause.
const TRIAL: Duration = Duration::from_millis(450);
/// When it fails.
const FAILURE: Duration = Duration::from_millis(60);
/// Trials until one loses nothing, before a failure: the device learns the repaired routes.
const QUIET: Duration = Duration::from_millis(60);
const QUIET_ATTEMPTS: usize = 60;
/// So many in a row: a route may come into use in the middle of the first one.
const QUIET_TRIALS: usize = 2;
/// Trials with a failure until one counts.
const ATTEMPTS: usize = 10;

/// What is to fail, and how often.
#[derive(Clone, Copy, Debug)]
pub struct ConvergencePlan<'p> {
    /// Of each kind.
    pub failures: u32,
    /// Packets a second.
    pub load: f64,
    /// Further routes, by the second link.
    pub routes: Option<&'p RoutesPlan>,
    pub stop: &'p AtomicBool,
}

/// What failures of one kind cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Convergence {
    pub failure: Failure,
    /// Packets a second.
    pub load: f64,
    /// Of further routes meanwhile; nothing if none changed.
    pub changes: Option<ChangeRate>,
    pub median_ms: f64,
    pub worst_ms: f64,
    pub outages: Vec<Outage>,
}

impl Convergence {
    fn new(failure: Failure, load: f64, outages: Vec<Outage>) -> Convergence {
        let times: Vec<f64> = outages.iter().map(|outage| outage.outage_ms).collect();
        let worst_ms = times.iter().copied().fold(0.0, f64::max);
        let median_ms = median(&times).unwrap_or_default();
        Convergence { failure, load, changes: None, median_ms, worst_ms, outages }
    }
}

/// The load at which things fail, in a campaign with this largest load.
pub fn failure_load(largest: f64) -> f64 {
    LOAD.min(largest / 2.0)
}

/// A device with two links, of which one can fail.
pub trait FailingDevice {
    /// Repairs links and routes.
    fn repair(&mut self) -> Result<(), RatesError>;

    /// Offers packets that use the routes of a failure. It happens after a time, if one is given. Returns when it began at
    /// the earliest, too, in the time of the packets.
    fn trace(
        &mut self,
        failure: Failure,
        load: f64,
        duration: Duration,
        fails_after: Option<Duration>,
    ) -> Result<(TracedTrial, Duration), RatesError>;

    /// Refuses to go on with a program that has failed.
    fn check(&self) -> Result<(), RatesError>;

    fn load_routes(&mut self, plan: &RoutesPlan) -> Result<(), RatesError>;

    fn end_changes(&mut self, plan: &RoutesPlan) -> Result<Option<ChangeRate>, RatesError>;
}

/// Has links and routes fail, and repairs them after each time. The device has a spare link.
pub fn converge(
    device: &mut dyn FailingDevice,
    plan: ConvergencePlan<'_>,
) -> Result<Vec<Convergence>, RatesError> {
    plan.routes.map(|routes| device.load_routes(routes)).transpose()?;
    let measured: Result<Vec<Convergence>, RatesError> =
        Failure::ALL.into_iter().map(|failure| fail_repeatedly(device, failure, plan)).collect();
    let changes = plan.routes.map(|routes| device.end_changes(routes)).transpose()?.flatten();
    Ok(measured?.into_iter().map(|one| Convergence { changes, ..one }).collect())
}

fn fail_repeatedly(
    device: &mut dyn FailingDevice,
    failure: Failure,
    plan: ConvergencePlan<'_>,
) -> Result<Convergence, RatesError> {
    let outages = (0..plan.failures).map(|_| fail(device, failure, plan)).collect::<Result<_, _>>()?;
    Ok(Convergence::new(failure, plan.load, outages))
}

/// One failure, again if other work disturbed it.
fn fail(
    device: &mut dyn FailingDevice,
    failure: Failure,
    plan: ConvergencePlan<'_>,
) -> Result<Outage, RatesError> {
    for _ in 0..ATTEMPTS {
        if plan.stop.load(Ordering::Relaxed) {
            return Err(RatesError::Stopped);
        }
        device.repair()?;
        await_quiet(device, failure, plan.load)?;
        let (trial, began) = device.trace(failure, plan.load, TRIAL, Some(FAILURE))?;
        if let Some(outage) = Outage::of(&trial, began, plan.load) {
            return Ok(outage);
        }
    }
    Err(RatesError::Disturbed { failure: failure.word(), attempts: ATTEMPTS })
}

/// Waits until packets use the routes that are to fail, and none is lost.
fn await_quiet(device: &mut dyn FailingDevice, failure: Failure, load: f64) -> Result<(), RatesError> {
    let mut quiet = 0;
    for _ in 0..QUIET_ATTEMPTS {
        let (trial, _) = device.trace(failure, load, QUIET, None)?;
        device.check()?;
        let is_prepared = failure.is_prepared(trial.received.each_ref().map(BTreeSet::len));
        quiet = if is_prepared && trial.missing().is_empty() { quiet + 1 } else { 0 };
        if quiet == QUIET_TRIALS {
            return Ok(());
        }
    }
    Err(RatesError::NeverQuiet { failure: failure.word(), load })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_have_a_median_and_a_worst_outage() {
        let of =
            |outage_ms| Outage { sent: 1, lost: 1, share: 1.0, outage_ms, span_ms: 1.0, recovered: true };
        let found = Convergence::new(Failure::Link, 1e4, [3.0, 1.0, 9.0].map(of).into());
        assert_eq!((found.median_ms, found.worst_ms), (3.0, 9.0));
    }

    #[test]
    fn the_load_of_failures_is_the_same_unless_the_generator_is_slow() {
        assert_eq!((failure_load(1e6), failure_load(5000.0)), (10_000.0, 2500.0));
    }
}
