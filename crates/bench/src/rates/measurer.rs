//! Makes the trials of a search on a device.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fullview_lab::search::{Measurer, TrialRequest, TrialResult};

use super::archive::{ArchivedTrial, TrialArchive};
use super::bed::RateBed;
use super::device::DeviceName;
use super::error::RatesError;
use super::generator::{Offered, offer};
use super::receiver::{received, settled};

/// The share of its schedule that a generator may miss in a trial that counts.
pub const MOST_BEHIND: f64 = 0.005;
const ATTEMPTS: u32 = 3;

/// What one trial counted.
#[derive(Clone, Copy, Debug)]
pub struct RateTrial {
    pub offered: Offered,
    pub received: u64,
}

impl RateTrial {
    /// Offers a load, and counts what comes out until no more comes.
    pub fn make(bed: &RateBed, load: f64, seconds: f64) -> Result<RateTrial, RatesError> {
        let before = received(bed)?;
        let offered = offer(bed, load, Duration::from_secs_f64(seconds))?;
        let received = settled(bed)?.saturating_sub(before);
        if received > offered.sent {
            return Err(RatesError::Foreign { sent: offered.sent, received });
        }
        Ok(RateTrial { offered, received })
    }

    /// Whether the generator kept its schedule.
    pub fn counts(self) -> bool {
        self.offered.behind() <= MOST_BEHIND
    }

    /// The share of the sent packets that did not come out.
    pub fn loss_ratio(self) -> f64 {
        1.0 - self.received as f64 / self.offered.sent.max(1) as f64
    }
}

/// Measures one device in one repetition.
pub struct BedMeasurer<'a> {
    pub bed: &'a RateBed,
    pub device: DeviceName,
    pub repetition: u32,
    pub archive: &'a mut TrialArchive,
    pub stop: &'a AtomicBool,
}

impl Measurer for BedMeasurer<'_> {
    type Error = RatesError;

    fn measure(&mut self, request: TrialRequest) -> Result<TrialResult, RatesError> {
        let mut percent = 0.0;
        for attempt in 1..=ATTEMPTS {
            let trial = self.attempt(request, attempt)?;
            if trial.counts() {
                let effective_duration = request.duration;
                return Ok(TrialResult { loss_ratio: trial.loss_ratio(), effective_duration });
            }
            percent = trial.offered.behind() * 100.0;
        }
        Err(RatesError::Behind { load: request.load, percent, attempts: ATTEMPTS })
    }
}

impl BedMeasurer<'_> {
    fn attempt(&mut self, request: TrialRequest, attempt: u32) -> Result<RateTrial, RatesError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(RatesError::Stopped);
        }
        let trial = RateTrial::make(self.bed, request.load, request.duration)?;
        let (Offered { planned, sent }, received) = (trial.offered, trial.received);
        let BedMeasurer { device, repetition, .. } = *self;
        let counts = trial.counts();
        let line = ArchivedTrial { device, repetition, request, attempt, planned, sent, received, counts };
        self.archive.add(&line)?;
        Ok(trial)
    }
}
