//! Measures devices between hosts that are connected by ssh.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::bed::{RecordedNode, RemoteBed};
use super::drawing::draw_text;
use super::error::RemoteError;
use super::inventory::DeviceSettings;
use super::page::machines;
use super::protocol::AgentRequest;
use super::remote_device::{RemoteDevice, hosts};
use super::remote_failures::RemoteFailures;
use super::wiring::Wiring;
use crate::rates::{
    ALL, Convergence, ConvergencePlan, LabDescription, NO_REAL_TIME, ROOM, RateDevice, RateLab, RatesError,
    TRIALS, converge, lengths, with_priority,
};
use crate::traffic::frame::FrameSize;

/// How often a lost host is tried again.
const AGAIN: Duration = Duration::from_secs(1);

const CONDITIONS: &str = "All devices were measured in one test bed of the hosts below, which ran nothing else for it. Figures \
                          of other test beds, or of other settings of these hosts, are not comparable.";

/// A test bed of several hosts.
pub struct RemoteLab {
    wiring: Wiring,
    /// Nothing after a host was lost, until all are there again.
    bed: Option<RemoteBed>,
    nodes: Vec<RecordedNode>,
    size: FrameSize,
    /// How long a host may be away.
    patience: Duration,
}

impl RemoteLab {
    /// Connects to all nodes. `size` is that of all frames; a node that is lost may come back within `patience`.
    pub fn connect(wiring: Wiring, size: FrameSize, patience: Duration) -> Result<RemoteLab, RemoteError> {
        let bed = RemoteBed::connect(wiring.clone())?;
        let nodes = bed.record();
        Ok(RemoteLab { wiring, bed: Some(bed), nodes, size, patience })
    }

    fn bed(&self) -> Result<&RemoteBed, RatesError> {
        self.bed.as_ref().ok_or_else(|| RatesError::Hosts("the hosts are not connected".into()))
    }

    fn device(&self, name: &str) -> Result<&DeviceSettings, RatesError> {
        let found = self.wiring.inventory.devices.iter().find(|device| device.name == name);
        found.ok_or_else(|| RatesError::NoDevice(name.into()))
    }

    /// The most that the generator sends, and whether it is on schedule at some load, while a device runs.
    fn limit(&self, name: &str, seconds: f64) -> Result<f64, RatesError> {
        let device = self.start_device(name)?;
        let rate = |_| Ok(device.offer(ALL, seconds)?.sent as f64 / seconds);
        let mut rates = (0..TRIALS).map(rate).collect::<Result<Vec<f64>, RatesError>>()?;
        rates.sort_by(f64::total_cmp);
        Ok(rates[TRIALS / 2])
    }

    fn holds(&self, name: &str, load: f64, seconds: f64) -> Result<bool, RatesError> {
        let mut device = self.start_device(name)?;
        let mut held = 0;
        for _ in 0..TRIALS {
            held += usize::from(device.trial(load, seconds)?.counts());
        }
        Ok(2 * held > TRIALS)
    }

    fn start_device(&self, name: &str) -> Result<RemoteDevice<'_>, RatesError> {
        let settings = self.device(name)?;
        self.bed()?.check_tuning().map_err(hosts)?;
        let device = RemoteDevice::start(self.bed()?, settings, self.size).map_err(hosts)?;
        device.wait()?;
        Ok(device)
    }
}

impl RateLab for RemoteLab {
    /// The least of what it holds with each device: some devices slow their neighbour down.
    fn largest_load(
        &mut self,
        [smallest, most]: [f64; 2],
        seconds: f64,
        stop: &AtomicBool,
    ) -> Result<f64, RatesError> {
        let names: Vec<String> =
            self.wiring.inventory.devices.iter().map(|device| device.name.clone()).collect();
        let mut load = most;
        for name in &names {
            if stop.load(Ordering::Relaxed) {
                return Err(RatesError::Stopped);
            }
            load = load.min(ROOM * self.limit(name, seconds)?);
        }
        while load >= 2.0 * smallest {
            if stop.load(Ordering::Relaxed) {
                return Err(RatesError::Stopped);
            }
            let held = names.iter().map(|name| self.holds(name, load, seconds));
            if held.collect::<Result<Vec<bool>, _>>()?.into_iter().all(|held| held) {
                return Ok(load);
            }
            load *= ROOM;
        }
        Err(RatesError::NoLoad { smallest })
    }

    fn has_cable(&self) -> bool {
        false
    }

    /// perf has to be on the device under test.
    fn check_profile(&self) -> Result<(), RatesError> {
        let asked = self.bed()?.dut_agent().and_then(|agent| agent.ask(&AgentRequest::CheckProfile));
        asked.map(drop).map_err(hosts)
    }

    fn receives_on_device_core(&self) -> bool {
        false
    }

    fn start(&mut self, device: &str) -> Result<Box<dyn RateDevice + '_>, RatesError> {
        Ok(Box::new(self.start_device(device)?))
    }

    fn converge(&mut self, device: &str, plan: ConvergencePlan<'_>) -> Result<Vec<Convergence>, RatesError> {
        converge(&mut RemoteFailures::new(self.start_device(device)?)?, plan)
    }

    /// Ends all connections, which the nodes notice, and connects again.
    fn recover(&mut self, stop: &AtomicBool) -> Result<(), RatesError> {
        self.bed = None;
        let began = Instant::now();
        loop {
            match RemoteBed::connect(self.wiring.clone()) {
                Ok(bed) => {
                    bed.check_recorded(&self.nodes).map_err(hosts)?;
                    self.bed = Some(bed);
                    return Ok(());
                }
                Err(error) if began.elapsed() >= self.patience => return Err(hosts(error)),
                Err(_) if stop.load(Ordering::Relaxed) => return Err(RatesError::Stopped),
                Err(_) => thread::sleep(AGAIN),
            }
        }
    }

    fn describe(&self) -> LabDescription {
        let (nodes, drawing) = (&self.nodes, draw_text(&self.wiring));
        let sections = format!("\n## The test bed\n\n```text\n{drawing}```\n\n{}", machines(nodes));
        let facts = json!({ "inventory": self.wiring.inventory, "nodes": nodes });
        let frame_bytes = lengths(self.size);
        let refuses =
            |node: &RecordedNode| node.facts.as_ref().and_then(|facts| facts.real_time) == Some(false);
        let note = nodes.iter().any(refuses).then_some(NO_REAL_TIME);
        let (conditions, facts) = (with_priority(CONDITIONS, note), Some(facts));
        LabDescription { conditions, frame_bytes, sections, facts, ..LabDescription::default() }
    }
}
