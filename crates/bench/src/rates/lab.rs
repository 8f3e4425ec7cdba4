//! Where devices are measured: in namespaces of this machine, or on other hosts.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use fullview_profile::CoreProfile;
use serde_json::{Map, Value};

use super::convergence::{Convergence, ConvergencePlan};
use super::error::RatesError;
use super::probe_trial::ProbeTrial;
use super::table_load::{ChangeRate, RoutesPlan, TableLoad};
use super::trial::RateTrial;

/// Hosts with a place for one device at a time.
pub trait RateLab {
    /// The largest load between these two that the generator offers on schedule, in packets per second.
    fn largest_load(&mut self, limits: [f64; 2], seconds: f64, stop: &AtomicBool) -> Result<f64, RatesError>;

    /// Whether a cable can take the device's place (`link`).
    fn has_cable(&self) -> bool {
        true
    }

    /// Refuses to make profiles where perf cannot be started.
    fn check_profile(&self) -> Result<(), RatesError>;

    /// Whether the device's core also receives for the right host.
    fn receives_on_device_core(&self) -> bool {
        true
    }

    /// Starts the device of this name, and waits until it forwards. It ends when the value is dropped.
    fn start(&mut self, device: &str) -> Result<Box<dyn RateDevice + '_>, RatesError>;

    /// Starts a device with a second link, and has links and routes fail.
    fn converge(&mut self, device: &str, plan: ConvergencePlan<'_>) -> Result<Vec<Convergence>, RatesError>;

    /// Facts about the hosts that stay the same in a campaign, also when it is resumed.
    fn hosts(&self) -> Map<String, Value> {
        Map::new()
    }

    /// Makes the lab whole again after a host was lost.
    fn recover(&mut self) -> Result<(), RatesError> {
        Ok(())
    }

    /// What a reader of the figures has to know about it.
    fn describe(&self) -> LabDescription;
}

/// A device that runs.
pub trait RateDevice {
    /// Does what the lab does before and during the search of a repetition.
    fn begin(&mut self, _repetition: u32) -> Result<(), RatesError> {
        Ok(())
    }

    /// Does what the lab does after it.
    fn end(&mut self) -> Result<(), RatesError> {
        Ok(())
    }

    /// Offers a load, and counts what comes out until no more comes.
    fn trial(&mut self, load: f64, seconds: f64) -> Result<RateTrial, RatesError>;

    /// The same with probes, which the seed chooses, if both hosts have one clock.
    fn probe(&mut self, _load: f64, _seconds: f64, _seed: u64) -> Result<ProbeTrial, RatesError> {
        Err(RatesError::NoCommonClock)
    }

    /// Loads routes, and begins to change them.
    fn load_routes(&mut self, plan: &RoutesPlan) -> Result<TableLoad, RatesError>;

    /// Ends the changes, if there are some.
    fn end_changes(&mut self, plan: &RoutesPlan) -> Result<Option<ChangeRate>, RatesError>;

    /// Observes its core while a load is offered.
    fn profile(&mut self, load: f64, seconds: f64) -> Result<(CoreProfile, RateTrial), RatesError>;
}

/// Facts about a lab.
#[derive(Clone, Debug, Default)]
pub struct LabDescription {
    /// Sentences about traffic and comparability.
    pub conditions: String,
    /// Of all packets: `inet` or `inet6`.
    pub family: &'static str,
    /// Bytes of consecutive frames without the FCS; they repeat from the start.
    pub frame_bytes: Vec<usize>,
    /// What devices are that their names do not say.
    pub devices: BTreeMap<String, String>,
    /// The device with which the others are compared block by block.
    pub control: Option<String>,
    /// Sections of the page, in Markdown.
    pub sections: String,
    /// The same for programs.
    pub facts: Option<Value>,
}
