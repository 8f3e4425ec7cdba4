//! The window in which a device is profiled, at a fixed load.

use anyhow::Context;
use fullview_bench::rates::{DeviceRates, RateLab, RateTrial, RatesCampaign, persist};
use fullview_profile::CoreProfile;

/// Seconds of the load, in which a core that is busy a third of the time has enough samples.
const SECONDS: f64 = 4.0;

/// A profile, and the trial during which it was made.
pub struct WindowProfile {
    /// Packets a second.
    pub load: f64,
    pub trial: RateTrial,
    pub profile: CoreProfile,
}

pub struct ProfileWindow<'c> {
    pub campaign: &'c RatesCampaign,
    pub largest_load: f64,
}

impl ProfileWindow<'_> {
    /// Starts the device again, and observes its core while it forwards. The trial is none of those that count.
    pub fn profile(&self, lab: &mut dyn RateLab, rates: &DeviceRates) -> anyhow::Result<WindowProfile> {
        let load = self.load(rates).context("it has no rates")?;
        let (profile, trial) = persist(lab, |lab| {
            let mut running = lab.start(&rates.device)?;
            self.campaign.questions.prepare(running.as_mut())?;
            running.profile(load, SECONDS)
        })?;
        Ok(WindowProfile { load, trial, profile })
    }

    /// What the device carries with hardly a loss; the largest load if it carries nothing.
    fn load(&self, rates: &DeviceRates) -> Option<f64> {
        rates.searches.first()?;
        let carried = rates.range(|search| search.pdr).filter(|range| range.median > 0.0);
        Some(carried.map_or(self.largest_load, |range| range.median))
    }
}
