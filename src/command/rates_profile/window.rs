//! The window in which a device is profiled, at a fixed load.

use std::sync::Arc;

use anyhow::Context;
use fullview_bench::rates::{BedCores, DeviceRates, DeviceTasks, RateLab, RateTrial, RatesCampaign};
use fullview_bench::testbed::OwnerFolder;
use fullview_profile::{CoreProfile, CoreRecorder, CoreTasks, Event};

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
    campaign: &'c RatesCampaign,
    largest_load: f64,
    core: usize,
    recorder: CoreRecorder,
    /// Has the files of perf while it runs; the next measurement removes those of a killed one.
    _folder: Arc<OwnerFolder>,
}

impl ProfileWindow<'_> {
    pub fn new(campaign: &RatesCampaign, largest_load: f64) -> anyhow::Result<ProfileWindow<'_>> {
        let (folder, core) = (OwnerFolder::current()?, BedCores::choose()?.device);
        let recorder = CoreRecorder::new(core, folder.path());
        Ok(ProfileWindow { campaign, largest_load, core, recorder, _folder: folder })
    }

    pub fn event(&self) -> Event {
        self.recorder.event()
    }

    pub fn core(&self) -> usize {
        self.core
    }

    /// Starts the device again, and observes its core while it forwards. The trial is none of those that count.
    pub fn profile(&self, lab: &mut dyn RateLab, rates: &DeviceRates) -> anyhow::Result<WindowProfile> {
        let load = self.load(rates).context("it has no rates")?;
        let mut running = lab.start(&rates.device)?;
        self.campaign.questions.prepare(running.as_mut())?;
        let DeviceTasks { processes, kernel_threads } = running.tasks()?;
        let tasks = CoreTasks { processes, kernel_threads };
        let (profile, trial) = self.recorder.record(&tasks, || running.trial(load, SECONDS))?;
        Ok(WindowProfile { load, trial: trial?, profile })
    }

    /// What the device carries with hardly a loss; the largest load if it carries nothing.
    fn load(&self, rates: &DeviceRates) -> Option<f64> {
        rates.searches.first()?;
        let carried = rates.range(|search| search.pdr).filter(|range| range.median > 0.0);
        Some(carried.map_or(self.largest_load, |range| range.median))
    }
}
