//! What is measured of a device between hosts.

use std::time::Duration;

use fullview_profile::CoreProfile;

use super::protocol::{AgentReply, AgentRequest, ProbedLoad};
use super::remote_device::{RemoteDevice, hosts};
use super::remote_routes::{end_changes, load_routes};
use crate::rates::{
    ChangeRate, Delays, ProbeTrial, RateDevice, RateTrial, RatesError, RoutesPlan, TableLoad,
};

/// perf reads the samples of all cores of a machine within this time.
const READ_PROFILE: Duration = Duration::from_secs(240);

impl RateDevice for RemoteDevice<'_> {
    fn begin(&mut self, repetition: u32) -> Result<(), RatesError> {
        self.hooks.as_mut().map_or(Ok(()), |hooks| hooks.begin(repetition)).map_err(hosts)
    }

    fn end(&mut self) -> Result<(), RatesError> {
        self.hooks.take().map_or(Ok(()), |mut hooks| hooks.end()).map_err(hosts)?;
        self.stop_lines().map_err(hosts)
    }

    fn trial(&mut self, load: f64, seconds: f64) -> Result<RateTrial, RatesError> {
        self.trial_of(load, seconds)
    }

    fn profile(&mut self, load: f64, seconds: f64) -> Result<(CoreProfile, RateTrial), RatesError> {
        let agent = self.bed.dut_agent().map_err(hosts)?;
        agent.ask(&AgentRequest::Profile(self.profile_request())).map_err(hosts)?;
        let trial = self.trial_of(load, seconds);
        agent.send(&AgentRequest::EndProfile).map_err(hosts)?;
        match agent.answer(READ_PROFILE).map_err(hosts)? {
            AgentReply::Profile(profile) => Ok((*profile, trial?)),
            other => Err(hosts(agent.unexpected(&other))),
        }
    }

    fn load_routes(&mut self, plan: &RoutesPlan) -> Result<TableLoad, RatesError> {
        load_routes(self, plan)
    }

    fn end_changes(&mut self, plan: &RoutesPlan) -> Result<Option<ChangeRate>, RatesError> {
        end_changes(self, plan)
    }

    /// One clock stamps probes and receives them if one node does both.
    fn probe(&mut self, load: f64, seconds: f64, seed: u64) -> Result<ProbeTrial, RatesError> {
        if !self.bed.wiring.has_one_clock() {
            return Err(RatesError::NoCommonClock);
        }
        let probed = self.probe_here(load, Duration::from_secs_f64(seconds), seed).map_err(hosts)?;
        let ProbedLoad { offered, received, probes, nanoseconds } = probed;
        self.check()?;
        let trial = RateTrial::new(offered, received)?;
        Ok(ProbeTrial { trial, probes, delays: Delays::of_buckets(&nanoseconds) })
    }
}
