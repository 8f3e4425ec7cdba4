//! The agent: this program on a node, which does what the program that measures asks.
//!
//! It ends when its input ends or says nothing for long, or by a signal, and then puts back what it changed.

use std::io::{self, Write};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use fullview_table::Family;

use super::agent_device::AgentDevice;
use super::claim::InterfaceClaim;
use super::counter::PacketCounter;
use super::declared::{DeclaredSetting, TunedSetting};
use super::dut_links::DutLinks;
use super::dut_profile::DutProfile;
use super::dut_routes::DutRoutes;
use super::machine::facts;
use super::machine_settings::declared_tuning;
use super::marks::exchange;
use super::offers::offer;
use super::probing::{ProbedPackets, probe};
use super::protocol::{
    AgentReply, AgentRequest, ProbeRequest, ProbedLoad, SETTLE_CHECKS, Traffic, TuneRequest,
};
use super::requests::RequestLines;
use super::traces::{StampCaptures, now, trace};
use super::tuning::{Tuning, tuning};
use super::undo::{Changes, put_back_settings};
use crate::rates::memory_of;

type AgentError = Box<dyn std::error::Error + Send + Sync>;

/// What the agent holds until it ends. The fields are dropped in this order.
#[derive(Default)]
struct Agent {
    profile: Option<DutProfile>,
    links: Option<DutLinks>,
    routes: Option<DutRoutes>,
    device: Option<AgentDevice>,
    device_tuning: Changes,
    counters: Vec<PacketCounter>,
    captures: Option<StampCaptures>,
    traffic: Traffic,
    /// Settings that have to keep their declared values until the agent ends.
    declared: Vec<DeclaredSetting>,
    host: Changes,
    claims: Vec<InterfaceClaim>,
}

/// Answers the requests on standard input.
pub fn serve_agent() -> io::Result<()> {
    let (requests, mut agent) = (RequestLines::read()?, Agent::default());
    for line in &requests.lines {
        let answered = match serde_json::from_str(&line) {
            Ok(request) => agent.answer(request, &requests.lost),
            Err(error) => Err(error.into()),
        };
        let reply = answered.unwrap_or_else(|error| AgentReply::Error(error.to_string()));
        let mut text = serde_json::to_vec(&reply)?;
        text.push(b'\n');
        io::stdout().write_all(&text).and_then(|()| io::stdout().flush())?;
    }
    Ok(())
}

impl Agent {
    fn answer(&mut self, request: AgentRequest, lost: &AtomicBool) -> Result<AgentReply, AgentError> {
        Ok(match request {
            AgentRequest::Facts => AgentReply::Facts(Box::new(facts()?)),
            AgentRequest::Exchange(request) => AgentReply::Heard(exchange(&request)?),
            AgentRequest::Claim { interfaces, is_inet6 } => {
                self.claim(&interfaces, is_inet6)?;
                put_back_settings(false)?;
                AgentReply::Done
            }
            AgentRequest::Clean { interfaces, dry_run } => {
                self.claim(&interfaces, false)?;
                AgentReply::PutBack(put_back_settings(dry_run)?)
            }
            AgentRequest::Tuning(interfaces) => AgentReply::Tuning(self.tuning(&interfaces)),
            AgentRequest::Tune(request) => AgentReply::Tuned(self.tune(request)?),
            AgentRequest::Host { interfaces, is_inet6 } => self.prepare(&interfaces, is_inet6)?,
            AgentRequest::Device(request) => {
                self.end_device();
                self.device = Some(AgentDevice::start(&request)?);
                AgentReply::Done
            }
            AgentRequest::Forwarded => {
                let device = self.device.as_ref().ok_or("no device runs")?;
                AgentReply::Count(device.forwarded()?.ok_or("the device is no program")?)
            }
            AgentRequest::StopDevice => {
                self.stop();
                AgentReply::Done
            }
            AgentRequest::Traffic(traffic) => {
                self.traffic = traffic;
                AgentReply::Done
            }
            AgentRequest::Offer(requests) => AgentReply::Offered(offer(&requests, &self.traffic, lost)?),
            AgentRequest::Probe(request) => AgentReply::Probed(self.probe(&request, lost)?),
            AgentRequest::CountAt { interface, destination } => {
                self.counters.push(PacketCounter::start(&interface, destination)?);
                AgentReply::Done
            }
            AgentRequest::CountAll => {
                self.counters.iter_mut().try_for_each(PacketCounter::count_all)?;
                AgentReply::Done
            }
            AgentRequest::Count => AgentReply::Count(self.count()?),
            AgentRequest::Settled { settle_ms } => AgentReply::Count(self.settled(settle_ms)?),
            AgentRequest::Clock => AgentReply::Moment(now()),
            AgentRequest::Capture { interfaces, is_inet6 } => {
                let family = if is_inet6 { Family::Inet6 } else { Family::Inet };
                self.captures = Some(StampCaptures::open(&interfaces, family)?);
                AgentReply::Done
            }
            AgentRequest::Captured => {
                let captures = self.captures.take().ok_or("nothing is captured")?;
                AgentReply::Stamps(captures.read()?)
            }
            AgentRequest::Trace(request) => AgentReply::Traced(trace(&request, &self.traffic, lost)?),
            other => self.answer_about_dut(other)?,
        })
    }

    /// Requests about what is measured of a device beside its rates.
    fn answer_about_dut(&mut self, request: AgentRequest) -> Result<AgentReply, AgentError> {
        let routes = self.routes.as_mut().ok_or("no routes are loaded");
        Ok(match request {
            AgentRequest::LoadRoutes(request) => {
                self.routes = None;
                let (held, loaded) = DutRoutes::load(&request)?;
                self.routes = Some(held);
                AgentReply::Routes(loaded)
            }
            AgentRequest::ChangeRoutes { rate, core } => {
                routes?.change(rate, core)?;
                AgentReply::Done
            }
            AgentRequest::EndChanges => AgentReply::Changes(routes?.end_changes()?),
            AgentRequest::Memory => AgentReply::Memory(self.process().map(memory_of)),
            AgentRequest::CheckProfile => {
                fullview_profile::check()?;
                AgentReply::Done
            }
            AgentRequest::Profile(request) => {
                self.profile = None;
                self.profile = Some(DutProfile::start(&request, self.process())?);
                AgentReply::Done
            }
            AgentRequest::EndProfile => {
                let profile = self.profile.take().ok_or("nothing is observed")?;
                AgentReply::Profile(Box::new(profile.end()?))
            }
            AgentRequest::Links(links) => {
                self.links = Some(DutLinks::new(links)?);
                AgentReply::Done
            }
            AgentRequest::Repair => {
                self.links.as_ref().ok_or("no links are set up")?.repair()?;
                AgentReply::Done
            }
            AgentRequest::EndLinks => {
                self.links = None;
                AgentReply::Done
            }
            AgentRequest::Fail(failure) => {
                let (links, began) = (self.links.as_ref().ok_or("no links are set up")?, now());
                links.fail(failure)?;
                AgentReply::Moment(began)
            }
            other => return Err(format!("{other:?} has no answer").into()),
        })
    }

    /// Ends the device, and puts back what was set for it.
    fn stop(&mut self) {
        self.end_device();
        self.device_tuning = Changes::default();
    }

    /// Ends the device, after what works on it.
    fn end_device(&mut self) {
        self.profile = None;
        self.links = None;
        self.routes = None;
        self.device = None;
    }

    fn claim(&mut self, interfaces: &[String], is_inet6: bool) -> Result<(), AgentError> {
        let claims = interfaces.iter().map(|interface| InterfaceClaim::new(interface));
        let forwarding = is_inet6.then(InterfaceClaim::forwarding_inet6);
        self.claims = claims.chain(forwarding).collect::<Result<_, _>>()?;
        Ok(())
    }

    /// With the declared settings, of which any can be there.
    fn tuning(&self, interfaces: &[String]) -> Tuning {
        tuning(interfaces).into_iter().chain(declared_tuning(&self.declared)).collect()
    }

    fn tune(&mut self, request: TuneRequest) -> Result<Vec<TunedSetting>, AgentError> {
        let changes = if request.of_device { &mut self.device_tuning } else { &mut self.host };
        let apply = |one: &DeclaredSetting| one.apply(request.may_set, changes);
        let tuned = request.settings.iter().map(apply).collect::<Result<_, _>>()?;
        if !request.of_device {
            self.declared = request.settings;
        }
        Ok(tuned)
    }

    fn process(&self) -> Option<u32> {
        self.device.as_ref().and_then(AgentDevice::process)
    }

    /// A host must not forward what it receives: it could have a route for it.
    fn prepare(&mut self, interfaces: &[String], is_inet6: bool) -> Result<AgentReply, AgentError> {
        if is_inet6 {
            self.host.forwarding_inet6("0")?;
        }
        for interface in interfaces {
            self.host.up(interface)?;
            self.host.interface(interface, "forwarding", "0")?;
        }
        Ok(AgentReply::Done)
    }

    fn probe(&mut self, request: &ProbeRequest, lost: &AtomicBool) -> Result<ProbedLoad, AgentError> {
        let before = self.count()?;
        let mut after = before;
        let traffic = self.traffic.clone();
        let probed = probe(request, &traffic, lost, || {
            after = self.settled(request.settle_ms)?;
            Ok::<_, AgentError>(())
        })?;
        let ProbedPackets { offered, probes, delays } = probed;
        Ok(ProbedLoad {
            offered,
            received: after.saturating_sub(before),
            probes,
            nanoseconds: delays.buckets(),
        })
    }

    fn count(&mut self) -> Result<u64, AgentError> {
        let counts = self.counters.iter_mut().map(PacketCounter::packets);
        Ok(counts.sum::<Result<u64, _>>()?)
    }

    fn settled(&mut self, settle_ms: u64) -> Result<u64, AgentError> {
        let mut before = self.count()?;
        for _ in 0..SETTLE_CHECKS {
            thread::sleep(Duration::from_millis(settle_ms));
            let now = self.count()?;
            if now == before {
                break;
            }
            before = now;
        }
        Ok(before)
    }
}
