//! Measures devices between hosts that are connected by ssh.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;

use super::bed::RemoteBed;
use super::drawing::draw_text;
use super::error::RemoteError;
use super::inventory::{DeviceKind, DeviceSettings};
use super::page::machines;
use super::protocol::{
    AgentReply, AgentRequest, DeviceNeighbor, DevicePort, DeviceRequest, OfferRequest, ProbeRequest,
    ProbedLoad,
};
use super::shell::RemoteLines;
use super::wiring::{PortPlace, Wiring};
use crate::rates::{
    ALL, Delays, LabDescription, Offered, ProbeTrial, ROOM, RateDevice, RateLab, RateTrial, RatesError,
    TRIALS, lengths,
};
use crate::traffic::frame::FrameSize;

/// So often a device gets packets until some come out: it learns the neighbours first.
const ATTEMPTS: usize = 100;
const FIRST_PACKETS: f64 = 0.05;
const FIRST_LOAD: f64 = 1000.0;

const CONDITIONS: &str = "All devices were measured in one test bed of the hosts below, which ran nothing else for it. Figures \
                          of other test beds, or of other settings of these hosts, are not comparable.";

/// A test bed of several hosts.
pub struct RemoteLab {
    bed: RemoteBed,
}

/// A device that runs on the device under test.
struct RemoteDevice<'l> {
    bed: &'l RemoteBed,
    lines: Option<RemoteLines>,
    has_agent: bool,
}

impl RemoteLab {
    pub fn new(bed: RemoteBed) -> RemoteLab {
        RemoteLab { bed }
    }

    fn device(&self, name: &str) -> Result<&DeviceSettings, RatesError> {
        let found = self.bed.wiring.inventory.devices.iter().find(|device| device.name == name);
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
        let mut device = RemoteDevice::start(&self.bed, settings).map_err(hosts)?;
        device.wait(settings.kind)?;
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
            self.bed.wiring.inventory.devices.iter().map(|device| device.name.clone()).collect();
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

    fn start(&mut self, device: &str) -> Result<Box<dyn RateDevice + '_>, RatesError> {
        Ok(Box::new(self.start_device(device)?))
    }

    fn describe(&self) -> LabDescription {
        let nodes = self.bed.record();
        let drawing = draw_text(&self.bed.wiring);
        let sections = format!("\n## The test bed\n\n```text\n{drawing}```\n\n{}", machines(&nodes));
        let facts = json!({ "inventory": self.bed.wiring.inventory, "nodes": nodes });
        let frame_bytes = lengths(FrameSize::Smallest);
        let (conditions, facts) = (CONDITIONS.into(), Some(facts));
        LabDescription { conditions, frame_bytes, sections, facts, ..LabDescription::default() }
    }
}

impl<'l> RemoteDevice<'l> {
    fn start(bed: &'l RemoteBed, settings: &DeviceSettings) -> Result<RemoteDevice<'l>, RemoteError> {
        let dut = &bed.nodes[bed.wiring.dut];
        let mut device = RemoteDevice { bed, lines: None, has_agent: false };
        if let Some(agent) = dut.agent.as_ref().filter(|_| settings.kind != DeviceKind::Command) {
            agent.ask(&AgentRequest::Device(request(bed, settings)?))?;
            device.has_agent = true;
        }
        if !(settings.start.is_empty() && settings.stop.is_empty()) {
            device.lines = Some(RemoteLines::start(&dut.host, &settings.start, &settings.stop)?);
        }
        Ok(device)
    }

    /// Sends packets until some come out. Of our own program, also until it has forwarded some itself: otherwise the kernel
    /// alone would be measured in its name.
    fn wait(&mut self, kind: DeviceKind) -> Result<(), RatesError> {
        if kind == DeviceKind::Off {
            return Ok(());
        }
        for _ in 0..ATTEMPTS {
            let came = self.trial(FIRST_LOAD, FIRST_PACKETS)?.received > 0;
            if came && (kind != DeviceKind::Fullview || self.forwarded().map_err(hosts)? > 0) {
                return Ok(());
            }
        }
        Err(RatesError::ForwardsNothing)
    }

    fn forwarded(&self) -> Result<u64, RemoteError> {
        let agent = self.bed.nodes[self.bed.wiring.dut].agent.as_ref();
        agent.map_or(Ok(0), |agent| agent.count(&AgentRequest::Forwarded))
    }

    /// Offers a load, in equal parts from every interface that sends, all at once.
    fn offer(&self, load: f64, seconds: f64) -> Result<Offered, RatesError> {
        self.offer_parts(load, Duration::from_secs_f64(seconds)).map_err(hosts)
    }

    fn offer_parts(&self, load: f64, duration: Duration) -> Result<Offered, RemoteError> {
        let part = load / self.bed.wiring.sending.len() as f64;
        let mut asked = Vec::new();
        for (number, node) in self.bed.nodes.iter().enumerate() {
            let parts = self.parts(number, part, duration)?;
            if let Some(agent) = node.agent.as_ref().filter(|_| !parts.is_empty()) {
                agent.send(&AgentRequest::Offer(parts))?;
                asked.push(agent);
            }
        }
        let mut all = Offered::default();
        for agent in asked {
            match agent.answer(duration)? {
                AgentReply::Offered(one) => {
                    all = Offered { planned: all.planned + one.planned, sent: all.sent + one.sent };
                }
                other => return Err(agent.unexpected(&other)),
            }
        }
        Ok(all)
    }

    /// What a node sends, from one core after another.
    fn parts(&self, node: usize, load: f64, duration: Duration) -> Result<Vec<OfferRequest>, RemoteError> {
        let wiring = &self.bed.wiring;
        let first = wiring.inventory.nodes[node].core.unwrap_or(0);
        let sending = wiring.sending.iter().copied().filter(|port| port.node == node);
        sending.zip(first..).map(|(port, core)| self.part(port, core, load, duration)).collect()
    }

    fn part(
        &self,
        port: PortPlace,
        core: usize,
        load: f64,
        duration: Duration,
    ) -> Result<OfferRequest, RemoteError> {
        let (bed, wiring) = (self.bed, &self.bed.wiring);
        let peer = wiring.peer(port).unwrap_or(port);
        Ok(OfferRequest {
            interface: wiring.interface(port).name.clone(),
            core,
            macs: [bed.mac(port)?, bed.mac(peer)?],
            addresses: [port, wiring.receiving].map(|port| wiring.interface(port).address.address),
            load,
            nanoseconds: u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX),
        })
    }

    /// A load with probes, of which the node at which they end sends all.
    fn probe_here(&self, load: f64, duration: Duration, seed: u64) -> Result<ProbedLoad, RemoteError> {
        let Wiring { receiving, sending, .. } = &self.bed.wiring;
        let part = load / sending.len() as f64;
        let request = ProbeRequest {
            offers: self.parts(receiving.node, part, duration)?,
            receiving: self.bed.wiring.interface(*receiving).name.clone(),
            seed,
            settle_ms: self.bed.wiring.node(*receiving).settle_ms,
        };
        let node = &self.bed.wiring.node(*receiving).name;
        let agent = self.bed.nodes[receiving.node].agent.as_ref();
        let agent = agent.ok_or_else(|| RemoteError::NoAgent { node: node.clone() })?;
        agent.send(&AgentRequest::Probe(request))?;
        match agent.answer(duration)? {
            AgentReply::Probed(probed) => Ok(probed),
            other => Err(agent.unexpected(&other)),
        }
    }

    fn count(&self, request: &AgentRequest) -> Result<u64, RatesError> {
        let agent = self.bed.nodes[self.bed.wiring.receiving.node].agent.as_ref();
        agent.map_or(Ok(0), |agent| agent.count(request)).map_err(hosts)
    }
}

impl RateDevice for RemoteDevice<'_> {
    fn trial(&mut self, load: f64, seconds: f64) -> Result<RateTrial, RatesError> {
        let settle_ms = self.bed.wiring.node(self.bed.wiring.receiving).settle_ms;
        let before = self.count(&AgentRequest::Count)?;
        let offered = self.offer(load, seconds)?;
        let after = self.count(&AgentRequest::Settled { settle_ms })?;
        RateTrial::new(offered, after.saturating_sub(before))
    }

    /// One clock stamps probes and receives them if one node does both.
    fn probe(&mut self, load: f64, seconds: f64, seed: u64) -> Result<ProbeTrial, RatesError> {
        if !self.bed.wiring.has_one_clock() {
            return Err(RatesError::NoCommonClock);
        }
        let probed = self.probe_here(load, Duration::from_secs_f64(seconds), seed).map_err(hosts)?;
        let ProbedLoad { offered, received, probes, nanoseconds } = probed;
        let trial = RateTrial::new(offered, received)?;
        Ok(ProbeTrial { trial, probes, delays: Delays::of_buckets(&nanoseconds) })
    }
}

impl Drop for RemoteDevice<'_> {
    fn drop(&mut self) {
        self.lines = None;
        if let Some(agent) = self.bed.nodes[self.bed.wiring.dut].agent.as_ref().filter(|_| self.has_agent) {
            // An agent that is lost has ended, and its device with it.
            let _ = agent.ask(&AgentRequest::StopDevice);
        }
    }
}

/// The device with the hosts at its wires.
fn request(bed: &RemoteBed, settings: &DeviceSettings) -> Result<DeviceRequest, RemoteError> {
    let wiring = &bed.wiring;
    let port = |port| {
        let (interface, peer) = (wiring.interface(port), wiring.peer(port));
        let peer = peer.filter(|peer| wiring.node(*peer).role.is_host());
        let neighbor = peer.map(|peer| {
            let address = wiring.interface(peer).address.address;
            Ok::<_, RemoteError>(DeviceNeighbor { address, mac: bed.mac(peer)? })
        });
        let (name, neighbor) = (interface.name.clone(), neighbor.transpose()?);
        Ok::<_, RemoteError>(DevicePort { interface: name, net: interface.address, neighbor })
    };
    Ok(DeviceRequest {
        kind: settings.kind,
        engine: settings.engine.clone(),
        options: settings.options.clone(),
        ports: wiring.ports_of(wiring.dut).map(port).collect::<Result<_, _>>()?,
    })
}

fn hosts(error: RemoteError) -> RatesError {
    RatesError::Hosts(Box::new(error))
}
