//! A device in namespaces whose link fails.

use std::thread;
use std::time::{Duration, Instant};

use super::convergence::FailingDevice;
use super::cores::keep;
use super::device::Device;
use super::error::RatesError;
use super::failure::{Failure, FailureLinks};
use super::table_load::{ChangeRate, RoutesPlan, end_changes, load_routes};
use super::traced_trial::{TracedTrial, trace};

impl FailingDevice for Device {
    fn repair(&mut self) -> Result<(), RatesError> {
        run_lines(self, &FailureLinks::of_bed(self.bed.family).repair())
    }

    fn trace(
        &mut self,
        failure: Failure,
        load: f64,
        duration: Duration,
        fails_after: Option<Duration>,
    ) -> Result<(TracedTrial, Duration), RatesError> {
        self.bed.destinations = failure.destinations(self.bed.family);
        let line = FailureLinks::of_bed(self.bed.family).fail(failure);
        trace(&self.bed, load, duration, || {
            let Some(wait) = fails_after else { return Ok(Instant::now()) };
            thread::sleep(wait);
            let began = Instant::now();
            run_lines(self, &[line]).map(|()| began)
        })
    }

    fn check(&self) -> Result<(), RatesError> {
        Device::check(self)
    }

    fn load_routes(&mut self, plan: &RoutesPlan) -> Result<(), RatesError> {
        load_routes(self, plan).map(drop)
    }

    fn end_changes(&mut self, plan: &RoutesPlan) -> Result<Option<ChangeRate>, RatesError> {
        end_changes(self, plan)
    }
}

/// Runs lines of `ip` in the device's namespace, on its core and not after the device.
fn run_lines(device: &Device, lines: &[String]) -> Result<(), RatesError> {
    let namespace = device.bed.router.as_ref().ok_or(RatesError::NoRoutes)?;
    let (core, batch) = (device.bed.cores.device, lines.join("\n") + "\n");
    thread::scope(|scope| {
        let run = || keep(None, core).and_then(|()| Ok(namespace.batch(&batch)?));
        scope.spawn(run).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
