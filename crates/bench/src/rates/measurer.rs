//! Makes the trials of a search on a device.

use std::sync::atomic::{AtomicBool, Ordering};

use fullview_lab::search::{Measurer, TrialRequest, TrialResult};

use super::archive::{ArchivedTrial, TrialArchive};
use super::error::RatesError;
use super::lab::RateDevice;
use super::search_progress::SearchProgress;
use super::trial::{Offered, RateTrial};

const ATTEMPTS: u32 = 3;

/// Measures one device in one repetition.
pub struct DeviceMeasurer<'a, 'b> {
    pub running: &'a mut dyn RateDevice,
    pub device: &'a str,
    pub repetition: u32,
    pub archive: &'a mut TrialArchive,
    pub stop: &'a AtomicBool,
    pub progress: &'a mut SearchProgress<'b>,
}

impl Measurer for DeviceMeasurer<'_, '_> {
    type Error = RatesError;

    fn measure(&mut self, request: TrialRequest) -> Result<TrialResult, RatesError> {
        let mut percent = 0.0;
        for attempt in 1..=ATTEMPTS {
            let trial = self.attempt(request, attempt)?;
            self.progress.advance(request.duration);
            if trial.counts() {
                let effective_duration = request.duration;
                return Ok(TrialResult { loss_ratio: trial.loss_ratio(), effective_duration });
            }
            percent = trial.offered.behind() * 100.0;
        }
        Err(RatesError::Behind { load: request.load, percent, attempts: ATTEMPTS })
    }
}

impl DeviceMeasurer<'_, '_> {
    fn attempt(&mut self, request: TrialRequest, attempt: u32) -> Result<RateTrial, RatesError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(RatesError::Stopped);
        }
        let trial = self.running.trial(request.load, request.duration)?;
        let (Offered { planned, sent }, received) = (trial.offered, trial.received);
        let (device, repetition, counts) = (self.device.to_owned(), self.repetition, trial.counts());
        let line = ArchivedTrial {
            device,
            repetition,
            request,
            attempt,
            planned,
            sent,
            received,
            counts,
            latency: None,
        };
        self.archive.add(&line)?;
        Ok(trial)
    }
}
