//! The agent: this program on a node, which does what the program that measures asks.
//!
//! It ends when its input ends or says nothing for long, and then puts back what it changed.

use std::io::{self, Write};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use super::agent_device::AgentDevice;
use super::counter::PacketCounter;
use super::machine::facts;
use super::marks::exchange;
use super::offers::offer;
use super::probing::{ProbedPackets, probe};
use super::protocol::{AgentReply, AgentRequest, ProbeRequest, ProbedLoad};
use super::requests::RequestLines;
use super::undo::Changes;

/// A device that sends without end is not waited for.
const CHECKS: usize = 100;

type AgentError = Box<dyn std::error::Error + Send + Sync>;

/// What the agent holds until it ends.
#[derive(Default)]
struct Agent {
    device: Option<AgentDevice>,
    counter: Option<PacketCounter>,
    host: Changes,
}

/// Answers the requests on standard input.
pub fn serve_agent() -> io::Result<()> {
    let (requests, mut agent) = (RequestLines::read(), Agent::default());
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
            AgentRequest::Host(interfaces) => self.prepare(&interfaces)?,
            AgentRequest::Device(request) => {
                self.device = None;
                self.device = Some(AgentDevice::start(&request)?);
                AgentReply::Done
            }
            AgentRequest::Forwarded => {
                let device = self.device.as_ref().ok_or("no device runs")?;
                AgentReply::Count(device.forwarded()?.ok_or("the device is no program")?)
            }
            AgentRequest::StopDevice => {
                self.device = None;
                AgentReply::Done
            }
            AgentRequest::Offer(requests) => AgentReply::Offered(offer(&requests, lost)?),
            AgentRequest::Probe(request) => AgentReply::Probed(self.probe(&request, lost)?),
            AgentRequest::CountAt { interface, destination } => {
                self.counter = Some(PacketCounter::start(&interface, destination)?);
                AgentReply::Done
            }
            AgentRequest::Count => AgentReply::Count(self.count()?),
            AgentRequest::Settled { settle_ms } => AgentReply::Count(self.settled(settle_ms)?),
        })
    }

    /// A host must not forward what it receives: it could have a route for it.
    fn prepare(&mut self, interfaces: &[String]) -> Result<AgentReply, AgentError> {
        for interface in interfaces {
            self.host.up(interface)?;
            self.host.interface(interface, "forwarding", "0")?;
        }
        Ok(AgentReply::Done)
    }

    fn probe(&mut self, request: &ProbeRequest, lost: &AtomicBool) -> Result<ProbedLoad, AgentError> {
        let before = self.count()?;
        let mut after = before;
        let probed = probe(request, lost, || {
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
        Ok(self.counter.as_mut().ok_or("no counter runs")?.packets()?)
    }

    fn settled(&mut self, settle_ms: u64) -> Result<u64, AgentError> {
        let mut before = self.count()?;
        for _ in 0..CHECKS {
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
