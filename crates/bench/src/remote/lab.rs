//! Measures devices between hosts that are connected by ssh.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::bed::{RecordedNode, RemoteBed};
use super::drawing::draw_text;
use super::error::RemoteError;
use super::hooks::DeviceHooks;
use super::image_install::ImageInstall;
use super::inventory::{DeviceSettings, ImageSettings, Inventory};
use super::laid_files::laid_files;
use super::page::{declared_settings, hooks as hook_section, machines, traffic_lines};
use super::protocol::AgentRequest;
use super::remote_device::{RemoteDevice, hosts};
use super::remote_failures::RemoteFailures;
use super::shell::output;
use super::wiring::Wiring;
use crate::rates::{
    Convergence, ConvergencePlan, LabDescription, NO_REAL_TIME, ROOM, RateDevice, RateLab, RatesError,
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
    options: LabOptions,
}

/// What a campaign wants of its hosts.
pub struct LabOptions {
    /// The size of all frames.
    pub size: FrameSize,
    /// How long a lost host may be away.
    pub patience: Duration,
    /// The folder of the results, for what hooks print.
    pub out: PathBuf,
    pub stop: Arc<AtomicBool>,
}

impl RemoteLab {
    /// Connects to all nodes.
    pub fn connect(wiring: Wiring, options: LabOptions) -> Result<RemoteLab, RemoteError> {
        let bed = RemoteBed::connect(wiring.clone())?;
        let nodes = bed.record();
        Ok(RemoteLab { wiring, bed: Some(bed), nodes, options })
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
        let mut rates =
            (0..TRIALS).map(|_| device.fastest(seconds)).collect::<Result<Vec<f64>, RatesError>>()?;
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

    /// Has the image of a device run. Everything on the hosts is put back before another one is installed.
    fn have_image(&mut self, name: &str) -> Result<(), RatesError> {
        let Some(image) = self.device(name)?.image.clone() else { return Ok(()) };
        if self.bed.is_none() {
            self.connect_again(self.options.patience)?;
        }
        let host = &self.bed()?.nodes[self.wiring.dut].host;
        if output(host, &image.running).map_err(hosts)? == image.expected.trim() {
            return Ok(());
        }
        self.bed = None;
        self.install(name, &image)?;
        self.connect_again(self.options.patience)
    }

    fn install(&self, name: &str, image: &ImageSettings) -> Result<(), RatesError> {
        let Inventory { nodes, ssh, .. } = &self.wiring.inventory;
        let (node, device, config) = (&nodes[self.wiring.dut], self.device(name)?, ssh.config.as_deref());
        let installed = ImageInstall { node, config, device, image, stop: &self.options.stop }.run();
        installed.map_err(|error| RatesError::Hosts(Box::new(error)))
    }

    /// Connects to all nodes again, for at most so long.
    fn connect_again(&mut self, patience: Duration) -> Result<(), RatesError> {
        let began = Instant::now();
        loop {
            match RemoteBed::connect(self.wiring.clone()) {
                Ok(bed) => {
                    self.bed = Some(bed);
                    return Ok(());
                }
                Err(error) if began.elapsed() >= patience => return Err(hosts(error)),
                Err(_) if self.options.stop.load(Ordering::Relaxed) => return Err(RatesError::Stopped),
                Err(_) => thread::sleep(AGAIN),
            }
        }
    }

    fn start_device(&self, name: &str) -> Result<RemoteDevice<'_>, RatesError> {
        let settings = self.device(name)?;
        self.bed()?.check_tuning().map_err(hosts)?;
        let device = RemoteDevice::start(self.bed()?, settings, self.options.size).map_err(hosts)?;
        device.wait()?;
        Ok(device)
    }
}

impl RateLab for RemoteLab {
    /// The least of what it holds with each device: some devices slow their neighbour down. Of images only the last one is
    /// asked twice, because each change takes long.
    fn largest_load(
        &mut self,
        [smallest, most]: [f64; 2],
        seconds: f64,
        stop: &AtomicBool,
    ) -> Result<f64, RatesError> {
        let devices = &self.wiring.inventory.devices;
        let mut names: Vec<String> = devices.iter().map(|device| device.name.clone()).collect();
        let has_images = self.wiring.has_images();
        let mut load = most;
        for name in &names {
            stopped(stop)?;
            self.have_image(name)?;
            load = load.min(ROOM * self.limit(name, seconds)?);
        }
        if has_images {
            names.drain(..names.len() - 1);
        }
        while load >= 2.0 * smallest {
            stopped(stop)?;
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
        self.have_image(device)?;
        let mut started = self.start_device(device)?;
        started.hooks = Some(DeviceHooks::new(self.bed()?, &self.options.out, device));
        Ok(Box::new(started))
    }

    fn converge(&mut self, device: &str, plan: ConvergencePlan<'_>) -> Result<Vec<Convergence>, RatesError> {
        self.have_image(device)?;
        converge(&mut RemoteFailures::new(self.start_device(device)?)?, plan)
    }

    /// A change of images changes them.
    fn hosts(&self) -> Map<String, Value> {
        let nodes = self.nodes.iter().filter(|_| !self.wiring.has_images());
        let facts = nodes.flat_map(|RecordedNode { name, system, tuning, .. }| {
            let settings = tuning.iter().flatten().map(|(setting, value)| (setting.as_str(), value));
            settings
                .chain([("system", system)])
                .map(move |(what, value)| (format!("{name}: {what}"), value.clone().into()))
        });
        facts.collect()
    }

    /// Ends all connections, which the nodes notice, and connects again.
    fn recover(&mut self) -> Result<(), RatesError> {
        self.bed = None;
        self.connect_again(self.options.patience)?;
        // A change of images changes the system and its settings.
        let recorded = if self.wiring.has_images() { &[] } else { &self.nodes[..] };
        let checked = self.bed()?.check_recorded(recorded).map_err(hosts);
        checked.inspect_err(|_| self.bed = None)
    }

    fn describe(&self) -> LabDescription {
        let (nodes, drawing) = (&self.nodes, draw_text(&self.wiring));
        let machines = machines(nodes)
            + &declared_settings(nodes)
            + &traffic_lines(&self.wiring.inventory.nodes)
            + &hook_section(&self.wiring.inventory.hooks);
        let sections = format!("\n## The test bed\n\n```text\n{drawing}```\n\n{machines}");
        let facts = json!({ "inventory": self.wiring.inventory, "nodes": nodes, "files": laid_files(&self.wiring.inventory.devices) });
        let frame_bytes = lengths(self.options.size, self.wiring.family());
        let refuses =
            |node: &RecordedNode| node.facts.as_ref().and_then(|facts| facts.real_time) == Some(false);
        let note = nodes.iter().any(refuses).then_some(NO_REAL_TIME);
        let (conditions, facts) = (with_priority(CONDITIONS, note), Some(facts));
        let control = self.wiring.inventory.control().map(|device| device.name.clone());
        let family = self.wiring.family().name();
        LabDescription {
            control,
            conditions,
            family,
            frame_bytes,
            sections,
            facts,
            ..LabDescription::default()
        }
    }
}

fn stopped(stop: &AtomicBool) -> Result<(), RatesError> {
    if stop.load(Ordering::Relaxed) { Err(RatesError::Stopped) } else { Ok(()) }
}
