//! The latency of a device: how long probes take from the moment at which the schedule wants them sent to the receiver.

use std::sync::atomic::{AtomicBool, Ordering};

use fullview_lab::search::{TrialPurpose, TrialRequest};
use serde::{Deserialize, Serialize};

use super::archive::{ArchivedProbes, ArchivedTrial, TrialArchive};
use super::delays::{DelaySummary, Delays};
use super::error::RatesError;
use super::lab::{RateDevice, RateLab};
use super::latency_level::LatencyLevel;
use super::probe_trial::ProbeTrial;
use super::trial::Offered;

/// The cable whose delays are the stamps' own.
const LINK: &str = "link";
/// A trial with probes takes so many times as long as one of a search.
const LONGER: f64 = 5.0;
const ATTEMPTS: u32 = 3;

/// The delays of one level, through the device, and over a cable in its place if the lab has one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LevelLatency {
    pub level: LatencyLevel,
    /// Packets per second.
    pub load: f64,
    pub device: PathLatency,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<PathLatency>,
}

/// The delays of one path.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PathLatency {
    pub probes: u64,
    pub lost: u64,
    /// In nanoseconds; nothing if no probe came out.
    pub delays: Option<DelaySummary>,
    #[serde(skip)]
    pub distribution: Delays,
}

impl PathLatency {
    pub fn new(probes: u64, distribution: Delays) -> PathLatency {
        let lost = probes.saturating_sub(distribution.count());
        PathLatency { probes, lost, delays: distribution.summary(), distribution }
    }
}

/// What the latency of one device in one repetition is measured with.
pub struct LatencyTurn<'a> {
    pub device: &'a str,
    pub repetition: u32,
    /// Of a trial of the search.
    pub trial_seconds: f64,
    pub seed: u64,
    pub archive: &'a mut TrialArchive,
    pub stop: &'a AtomicBool,
}

impl LatencyTurn<'_> {
    /// Measures over a cable first, then through the device.
    pub fn measure(
        &mut self,
        lab: &mut dyn RateLab,
        loads: &[(LatencyLevel, f64)],
    ) -> Result<Vec<LevelLatency>, RatesError> {
        let link = lab.has_cable().then(|| self.path(lab, LINK, loads)).transpose()?;
        let mut link = link.into_iter().flatten();
        let paths = loads.iter().zip(self.path(lab, self.device, loads)?);
        let level = |(&(level, load), device)| LevelLatency { level, load, device, link: link.next() };
        Ok(paths.map(level).collect())
    }

    fn path(
        &mut self,
        lab: &mut dyn RateLab,
        path: &str,
        loads: &[(LatencyLevel, f64)],
    ) -> Result<Vec<PathLatency>, RatesError> {
        let mut running = lab.start(path)?;
        let level = |&(level, load)| {
            let duration = LONGER * self.trial_seconds;
            // Nothing follows from it for the search.
            let request = TrialRequest { load, duration, purpose: TrialPurpose::Warmup };
            let ProbeTrial { probes, delays, .. } = self.level(running.as_mut(), path, level, request)?;
            Ok(PathLatency::new(probes, delays))
        };
        loads.iter().map(level).collect()
    }

    /// Repeats a trial in which the generator was late.
    fn level(
        &mut self,
        running: &mut dyn RateDevice,
        path: &str,
        level: LatencyLevel,
        request: TrialRequest,
    ) -> Result<ProbeTrial, RatesError> {
        let mut percent = 0.0;
        for attempt in 1..=ATTEMPTS {
            if self.stop.load(Ordering::Relaxed) {
                return Err(RatesError::Stopped);
            }
            let trial = running.probe(request.load, request.duration, self.seed)?;
            self.record(&trial, path, level, request, attempt)?;
            if trial.trial.counts() {
                return Ok(trial);
            }
            percent = trial.trial.offered.behind() * 100.0;
        }
        Err(RatesError::Behind { load: request.load, percent, attempts: ATTEMPTS })
    }

    fn record(
        &mut self,
        trial: &ProbeTrial,
        path: &str,
        level: LatencyLevel,
        request: TrialRequest,
        attempt: u32,
    ) -> Result<(), RatesError> {
        let Offered { planned, sent } = trial.trial.offered;
        let probes = ArchivedProbes {
            level,
            path: path.to_owned(),
            probes: trial.probes,
            lost: trial.lost(),
            nanoseconds: trial.delays.buckets(),
        };
        self.archive.add(&ArchivedTrial {
            device: self.device.to_owned(),
            repetition: self.repetition,
            request,
            attempt,
            planned,
            sent,
            received: trial.trial.received,
            counts: trial.trial.counts(),
            latency: Some(probes),
        })
    }
}
