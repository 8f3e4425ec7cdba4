//! Devices in network namespaces of this machine.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::ValueEnum;

use super::bed::BedPlan;
use super::cores::BedCores;
use super::device::{Device, DeviceName};
use super::error::RatesError;
use super::frame::lengths;
use super::generator::offer;
use super::lab::{LabDescription, RateDevice, RateLab};
use super::largest::largest_load;
use super::probe_trial::{ProbeTrial, probe};
use super::receiver::{received, settled};
use super::trial::RateTrial;
use crate::traffic::frame::FrameSize;

const CONDITIONS: &str = "All devices were measured in the same test bed, on one core beside a core with the generator, and hosts \
                          and device share what the machine has. Figures of other machines, of cards or of other tables are not \
                          comparable.";

/// A lab that makes a test bed for each device.
pub struct NamespaceLab {
    plan: BedPlan,
    /// This program.
    program: PathBuf,
}

impl NamespaceLab {
    pub fn new(program: PathBuf, size: FrameSize) -> Result<NamespaceLab, RatesError> {
        Ok(NamespaceLab { plan: BedPlan { cores: BedCores::choose()?, size }, program })
    }
}

impl RateLab for NamespaceLab {
    fn largest_load(&mut self, limits: [f64; 2], seconds: f64, stop: &AtomicBool) -> Result<f64, RatesError> {
        largest_load(self.plan, limits, seconds, stop)
    }

    fn start(&mut self, device: &str) -> Result<Box<dyn RateDevice + '_>, RatesError> {
        let named = DeviceName::from_str(device, false);
        let name = named.map_err(|_| RatesError::NoDevice(device.to_owned()))?;
        Ok(Box::new(Device::start(name, self.plan, &self.program)?))
    }

    fn describe(&self) -> LabDescription {
        let frame_bytes = lengths(self.plan.size);
        LabDescription { conditions: CONDITIONS.into(), frame_bytes, ..LabDescription::default() }
    }
}

impl RateDevice for Device {
    fn trial(&mut self, load: f64, seconds: f64) -> Result<RateTrial, RatesError> {
        let before = received(&self.bed)?;
        let offered = offer(&self.bed, load, Duration::from_secs_f64(seconds))?;
        RateTrial::new(offered, settled(&self.bed)?.saturating_sub(before))
    }

    fn probe(&mut self, load: f64, seconds: f64, seed: u64) -> Result<ProbeTrial, RatesError> {
        probe(&self.bed, load, seconds, seed)
    }
}
