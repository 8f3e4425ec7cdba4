//! Links and routes of the device under test that fail, as the program that measures sees them.

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fullview_table::Family;

use super::connection::AgentConnection;
use super::error::RemoteError;
use super::protocol::{AgentReply, AgentRequest, TracedLoad};
use super::remote_device::{RemoteDevice, hosts};
use super::remote_routes::{end_changes, load_routes};
use crate::rates::{
    ChangeRate, FailingDevice, Failure, FailureLinks, RatesError, RoutesPlan, TRACE_SETTLE, TracedTrial,
    with_pauses,
};

/// Readings of a clock of which the one with the shortest way counts.
const READINGS: usize = 8;

/// A device with two links to the receiver.
pub struct RemoteFailures<'l> {
    device: RemoteDevice<'l>,
}

/// How far a clock is ahead of that of this machine, and the error of that, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct ClockOffset {
    ahead: i128,
    error: i128,
}

impl<'l> RemoteFailures<'l> {
    /// Sets up the links of a device that runs.
    pub fn new(mut device: RemoteDevice<'l>) -> Result<RemoteFailures<'l>, RatesError> {
        let links = links(&device).map_err(hosts)?;
        device.has_agent = true;
        device.bed.dut_agent().and_then(|agent| agent.ask(&AgentRequest::Links(links))).map_err(hosts)?;
        Ok(RemoteFailures { device })
    }

    /// Offers packets, while the failure happens if it is to, and returns what was sent and when it began. One interface sends
    /// them, because stamps of several clocks would not tell the packets apart.
    fn send(
        &self,
        failure: Failure,
        load: f64,
        duration: Duration,
        fails_after: Option<Duration>,
    ) -> Result<(TracedLoad, Duration), RemoteError> {
        let (agent, request) = self.device.first_sender(load, duration)?;
        let sender = clock(agent)?;
        agent.send(&AgentRequest::Trace(request))?;
        let began = fails_after.map(|wait| self.fail(failure, wait, sender)).transpose();
        // Read before any error goes on: the next request would get this answer.
        match agent.answer(with_pauses(duration))? {
            AgentReply::Traced(load) => Ok((load, began?.unwrap_or_default())),
            other => Err(agent.unexpected(&other)),
        }
    }

    /// Makes it fail, and returns the earliest moment at which it can have begun, by the sender's clock.
    fn fail(&self, failure: Failure, wait: Duration, sender: ClockOffset) -> Result<Duration, RemoteError> {
        let agent = self.device.bed.dut_agent()?;
        let dut = clock(agent)?;
        thread::sleep(wait);
        match agent.ask(&AgentRequest::Fail(failure))? {
            AgentReply::Moment(began) => {
                let began = i128::from(began) - dut.ahead + sender.ahead - dut.error - sender.error;
                Ok(Duration::from_nanos(u64::try_from(began).unwrap_or_default()))
            }
            other => Err(agent.unexpected(&other)),
        }
    }

    fn receiver(&self) -> Result<&AgentConnection, RemoteError> {
        let (bed, receiving) = (self.device.bed, self.device.bed.wiring.receiving);
        let node = || bed.wiring.node(receiving).name.clone();
        bed.nodes[receiving.node].agent.as_ref().ok_or_else(|| RemoteError::NoAgent { node: node() })
    }

    fn capture(&self) -> Result<(), RemoteError> {
        let wiring = &self.device.bed.wiring;
        let ports = [wiring.receiving, wiring.spare.unwrap_or(wiring.receiving)];
        let names = ports.map(|port| wiring.interface(port).name.clone());
        let is_inet6 = wiring.family() == Family::Inet6;
        self.receiver()?.ask(&AgentRequest::Capture { interfaces: names, is_inet6 }).map(drop)
    }

    fn captured(&self) -> Result<[Vec<u64>; 2], RemoteError> {
        let receiver = self.receiver()?;
        match receiver.ask(&AgentRequest::Captured)? {
            AgentReply::Stamps(stamps) => Ok(stamps),
            other => Err(receiver.unexpected(&other)),
        }
    }
}

impl Drop for RemoteFailures<'_> {
    /// Before the last lines of the device run: what they remove would be taken for the machine's own, and set again.
    fn drop(&mut self) {
        // An agent that is lost has ended, and its links with it.
        let _ = self.device.bed.dut_agent().and_then(|agent| agent.ask(&AgentRequest::EndLinks));
    }
}

impl FailingDevice for RemoteFailures<'_> {
    fn repair(&mut self) -> Result<(), RatesError> {
        let agent = self.device.bed.dut_agent().map_err(hosts)?;
        agent.ask(&AgentRequest::Repair).map(drop).map_err(hosts)
    }

    fn trace(
        &mut self,
        failure: Failure,
        load: f64,
        duration: Duration,
        fails_after: Option<Duration>,
    ) -> Result<(TracedTrial, Duration), RatesError> {
        self.device.send_to(failure.destinations(self.device.bed.wiring.family())).map_err(hosts)?;
        self.capture().map_err(hosts)?;
        let (traced, began) = self.send(failure, load, duration, fails_after).map_err(hosts)?;
        let settle = self.device.bed.wiring.node(self.device.bed.wiring.receiving).settle_ms;
        thread::sleep(TRACE_SETTLE.max(Duration::from_millis(settle)));
        let received = self.captured().map_err(hosts)?;
        let sent = traced.stamps.into_iter().map(Duration::from_nanos).collect();
        let received = received.map(|stamps| stamps.into_iter().map(Duration::from_nanos).collect());
        Ok((TracedTrial { offered: traced.offered, sent, received }, began))
    }

    fn check(&self) -> Result<(), RatesError> {
        self.device.check()
    }

    fn load_routes(&mut self, plan: &RoutesPlan) -> Result<(), RatesError> {
        load_routes(&mut self.device, plan).map(drop)
    }

    fn end_changes(&mut self, plan: &RoutesPlan) -> Result<Option<ChangeRate>, RatesError> {
        end_changes(&mut self.device, plan)
    }
}

fn links(device: &RemoteDevice<'_>) -> Result<FailureLinks, RemoteError> {
    let (bed, wiring) = (device.bed, &device.bed.wiring);
    let past = || RemoteError::NoRoutedPort { node: wiring.node(wiring.receiving).name.clone() };
    let [egress, spare] = [wiring.egress(false), wiring.egress(true)];
    let (egress, spare) = (egress.ok_or_else(past)?, spare.ok_or_else(past)?);
    let station = |port| wiring.interface(wiring.peer(port).unwrap_or(port)).address.address;
    Ok(FailureLinks {
        egress: wiring.interface(egress).name.clone(),
        spare: wiring.interface(spare).name.clone(),
        stations: vec![(station(egress), bed.mac(wiring.receiving)?)],
        spare_station: station(spare),
    })
}

/// Compares a clock with that of this machine.
fn clock(agent: &AgentConnection) -> Result<ClockOffset, RemoteError> {
    let readings = (0..READINGS).map(|_| read_clock(agent)).collect::<Result<Vec<_>, _>>()?;
    let best = readings.into_iter().min_by_key(|reading| reading.error);
    Ok(best.unwrap_or(ClockOffset { ahead: 0, error: 0 }))
}

fn read_clock(agent: &AgentConnection) -> Result<ClockOffset, RemoteError> {
    let (asked, here) = (Instant::now(), SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
    match agent.ask(&AgentRequest::Clock)? {
        AgentReply::Moment(there) => {
            let way = asked.elapsed().as_nanos().cast_signed();
            let middle = here.as_nanos().cast_signed() + way / 2;
            Ok(ClockOffset { ahead: i128::from(there) - middle, error: way / 2 })
        }
        other => Err(agent.unexpected(&other)),
    }
}
