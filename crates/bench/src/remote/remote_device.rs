//! A device that runs between hosts, as the program that measures sees it.

use std::net::IpAddr;
use std::time::Duration;

use super::bed::{RemoteBed, tune};
use super::command_sender::LoadCommands;
use super::connection::AgentConnection;
use super::error::RemoteError;
use super::hooks::DeviceHooks;
use super::inventory::{DeviceKind, DeviceSettings};
use super::protocol::{
    AgentReply, AgentRequest, DeviceNeighbor, DevicePort, DeviceRequest, OfferRequest, ProbeRequest,
    ProbedLoad, ProfileRequest, Traffic, longest_settling,
};
use super::shell::RemoteLines;
use super::wiring::{PortPlace, Wiring};
use crate::rates::{ALL, Offered, RateTrial, RatesError, RoutedDevice, with_pauses};
use crate::traffic::frame::FrameSize;

/// So often a device gets packets until some come out: it learns the neighbours first.
const ATTEMPTS: usize = 100;
/// The same for a generator that takes seconds to begin.
const COMMANDS: usize = 10;
const FIRST_PACKETS: f64 = 0.05;
const FIRST_LOAD: f64 = 1000.0;

/// A device that runs on the device under test.
pub struct RemoteDevice<'l> {
    pub bed: &'l RemoteBed,
    kind: DeviceKind,
    size: FrameSize,
    lines: Option<RemoteLines>,
    pub hooks: Option<DeviceHooks<'l>>,
    /// Whether the agent has something to end.
    pub has_agent: bool,
}

impl<'l> RemoteDevice<'l> {
    pub fn start(
        bed: &'l RemoteBed,
        settings: &DeviceSettings,
        size: FrameSize,
    ) -> Result<RemoteDevice<'l>, RemoteError> {
        let dut = &bed.nodes[bed.wiring.dut];
        let kind = settings.kind;
        let mut device = RemoteDevice { bed, kind, size, lines: None, hooks: None, has_agent: false };
        device.send_to(Vec::new())?;
        if let (Some(agent), Some(tuning)) = (&dut.agent, &settings.tuning) {
            device.has_agent = true;
            tune(agent, &bed.wiring.inventory.nodes[bed.wiring.dut], tuning, true)?;
        }
        if let Some(agent) = dut.agent.as_ref().filter(|_| settings.kind != DeviceKind::Command) {
            agent.ask(&AgentRequest::Device(request(bed, settings)?))?;
            device.has_agent = true;
        }
        device.lines = settings.start_lines(&dut.host)?;
        Ok(device)
    }

    /// Sends packets until some come out. Of our own program, also until it has forwarded some itself: otherwise the kernel
    /// alone would be measured in its name.
    pub fn wait(&self) -> Result<(), RatesError> {
        self.await_silence()?;
        if self.kind == DeviceKind::Off {
            return Ok(());
        }
        let attempts = if self.commands().is_some() { COMMANDS } else { ATTEMPTS };
        for _ in 0..attempts {
            let came = self.trial_of(FIRST_LOAD, FIRST_PACKETS)?.received > 0;
            if came && (self.kind != DeviceKind::Fullview || self.forwarded()? > 0) {
                return Ok(());
            }
        }
        Err(RatesError::ForwardsNothing)
    }

    /// A receiver that counts every frame must not count what the device sends of its own while it is set up.
    fn await_silence(&self) -> Result<(), RatesError> {
        let node = &self.bed.nodes[self.bed.wiring.receiving.node];
        let settled = node.receiver.as_ref().map(|receiver| receiver.settled(&node.host));
        settled.transpose().map(drop).map_err(hosts)
    }

    /// Packets of all further loads go to these addresses in turn; none stands for the receiver's own.
    pub fn send_to(&self, destinations: Vec<IpAddr>) -> Result<(), RemoteError> {
        let request = AgentRequest::Traffic(Traffic { size: self.size, destinations });
        let sends = |node: &usize| self.bed.wiring.sending.iter().any(|port| port.node == *node);
        let agents =
            (0..self.bed.nodes.len()).filter(sends).filter_map(|node| self.bed.nodes[node].agent.as_ref());
        agents.into_iter().try_for_each(|agent| agent.ask(&request).map(drop))
    }

    /// Offers a load, in equal parts from every interface that sends, all at once.
    pub fn offer(&self, load: f64, seconds: f64) -> Result<Offered, RatesError> {
        let duration = Duration::from_secs_f64(seconds);
        let offered = self.commands().map(|commands| commands.offer(load, duration));
        offered.unwrap_or_else(|| self.offer_parts(load, duration)).map_err(hosts)
    }

    /// What is sent without a limit, in packets per second.
    pub fn fastest(&self, seconds: f64) -> Result<f64, RatesError> {
        match self.commands() {
            Some(commands) => commands.fastest(Duration::from_secs_f64(seconds)).map_err(hosts),
            None => Ok(self.offer(ALL, seconds)?.sent as f64 / seconds),
        }
    }

    fn commands(&self) -> Option<LoadCommands<'l>> {
        LoadCommands::of(self.bed, self.size)
    }

    fn offer_parts(&self, load: f64, duration: Duration) -> Result<Offered, RemoteError> {
        let part = load / self.bed.wiring.sending.len() as f64;
        let parts = (0..self.bed.nodes.len()).map(|node| self.parts(node, part, duration));
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        let senders = self.bed.nodes.iter().zip(parts).filter(|(_, parts)| !parts.is_empty());
        let senders = senders.filter_map(|(node, parts)| Some((node.agent.as_ref()?, parts)));
        let asked: Vec<_> =
            senders.map(|(agent, parts)| (agent, agent.send(&AgentRequest::Offer(parts)))).collect();
        // All answers are read before an error goes on: the next request would get one that is left.
        let answers = asked.into_iter().map(|(agent, sent)| {
            sent.and_then(|()| match agent.answer(with_pauses(duration))? {
                AgentReply::Offered(one) => Ok(one),
                other => Err(agent.unexpected(&other)),
            })
        });
        let answers: Vec<Result<Offered, RemoteError>> = answers.collect();
        answers.into_iter().try_fold(Offered::default(), |all, one| {
            let one = one?;
            Ok(Offered { planned: all.planned + one.planned, sent: all.sent + one.sent })
        })
    }

    /// The node with the first interface that sends, which sends all of a load.
    pub fn first_sender(
        &self,
        load: f64,
        duration: Duration,
    ) -> Result<(&'l AgentConnection, OfferRequest), RemoteError> {
        let (bed, wiring) = (self.bed, &self.bed.wiring);
        // A wiring has one at least.
        let port = wiring.sending[0];
        let node = || wiring.node(port).name.clone();
        let agent =
            bed.nodes[port.node].agent.as_ref().ok_or_else(|| RemoteError::NoAgent { node: node() })?;
        Ok((agent, self.part(port, wiring.node(port).core.unwrap_or(0), load, duration)?))
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
            hosts: wiring.hosts(port)?,
            load,
            nanoseconds: u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX),
        })
    }

    /// Refuses a trial during which the device under test was lost: it has put everything back, and forwards no more.
    pub fn check(&self) -> Result<(), RatesError> {
        let lines = self.lines.iter().try_for_each(RemoteLines::check);
        let agent = self.bed.nodes[self.bed.wiring.dut].agent.as_ref();
        let answers = |agent: &AgentConnection| agent.ask(&AgentRequest::Clock).map(drop);
        lines.and_then(|()| agent.map_or(Ok(()), answers)).map_err(hosts)
    }

    /// Runs the last lines of the device.
    pub fn stop_lines(&mut self) -> Result<(), RemoteError> {
        self.lines.take().map_or(Ok(()), RemoteLines::stop)
    }

    /// A load with probes, of which the node at which they end sends all.
    pub fn probe_here(&self, load: f64, duration: Duration, seed: u64) -> Result<ProbedLoad, RemoteError> {
        let Wiring { receiving, sending, .. } = &self.bed.wiring;
        let part = load / sending.len() as f64;
        let request = ProbeRequest {
            offers: self.parts(receiving.node, part, duration)?,
            receiving: self.bed.wiring.interface(*receiving).name.clone(),
            seed,
            settle_ms: self.bed.wiring.node(*receiving).settle_ms,
        };
        let settling = longest_settling(request.settle_ms);
        let node = &self.bed.wiring.node(*receiving).name;
        let agent = self.bed.nodes[receiving.node].agent.as_ref();
        let agent = agent.ok_or_else(|| RemoteError::NoAgent { node: node.clone() })?;
        agent.send(&AgentRequest::Probe(request))?;
        match agent.answer(with_pauses(duration) + settling)? {
            AgentReply::Probed(probed) => Ok(probed),
            other => Err(agent.unexpected(&other)),
        }
    }

    /// Offers a load, and counts what comes out until no more comes.
    pub fn trial_of(&self, load: f64, seconds: f64) -> Result<RateTrial, RatesError> {
        let settle_ms = self.bed.wiring.node(self.bed.wiring.receiving).settle_ms;
        let before = self.count(&AgentRequest::Count)?;
        let offered = self.offer(load, seconds)?;
        let after = self.count(&AgentRequest::Settled { settle_ms })?;
        self.check()?;
        RateTrial::new(offered, after.saturating_sub(before))
    }

    /// The receiver counts packets to all addresses from now on.
    pub fn count_all(&self) -> Result<(), RemoteError> {
        let agent = self.bed.nodes[self.bed.wiring.receiving.node].agent.as_ref();
        agent.map_or(Ok(()), |agent| agent.ask(&AgentRequest::CountAll).map(drop))
    }

    /// A program that lines start can be any of those that run there.
    pub fn profile_request(&self) -> ProfileRequest {
        let wiring = &self.bed.wiring;
        let names = wiring.ports_of(wiring.dut).map(|port| wiring.interface(port).name.clone());
        ProfileRequest {
            core: wiring.inventory.nodes[wiring.dut].core,
            interfaces: names.collect(),
            everything: self.kind == DeviceKind::Command,
        }
    }

    pub fn count(&self, request: &AgentRequest) -> Result<u64, RatesError> {
        let node = &self.bed.nodes[self.bed.wiring.receiving.node];
        match (&node.receiver, request) {
            (Some(receiver), AgentRequest::Settled { .. }) => receiver.settled(&node.host),
            (Some(receiver), _) => receiver.packets(&node.host),
            _ => node.agent.as_ref().map_or(Ok(0), |agent| agent.count(request)),
        }
        .map_err(hosts)
    }
}

impl RoutedDevice for RemoteDevice<'_> {
    /// What comes out, unless a program counts for itself.
    fn forwarded(&self) -> Result<u64, RatesError> {
        match self.kind {
            DeviceKind::Fullview => {
                let agent = self.bed.dut_agent();
                agent.and_then(|agent| agent.count(&AgentRequest::Forwarded)).map_err(hosts)
            }
            _ => self.count(&AgentRequest::Count),
        }
    }

    fn offer_to(&self, address: IpAddr, load: f64, duration: Duration) -> Result<(), RatesError> {
        self.send_to(vec![address]).map_err(hosts)?;
        self.offer(load, duration.as_secs_f64()).map(drop)
    }
}

impl Drop for RemoteDevice<'_> {
    fn drop(&mut self) {
        self.hooks = None;
        self.lines = None;
        let agent = self.bed.nodes[self.bed.wiring.dut].agent.as_ref();
        if let Some(agent) = agent.filter(|_| self.has_agent) {
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

/// A lost host can come back.
pub fn hosts(error: RemoteError) -> RatesError {
    match error {
        RemoteError::Lost { .. } | RemoteError::Silent { .. } => RatesError::LostHosts(Box::new(error)),
        _ => RatesError::Hosts(Box::new(error)),
    }
}
