//! The profile of one variant in one family.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use fullview_bench::settings::Settings;
use fullview_bench::subject::RouterBench;
use fullview_lab::{
    Arm, Bench, Experiment, Family, Panel, PanelError, Settings as _, SubjectError, Verified,
};
use fullview_profile::counters::{self, EventCount};
use fullview_profile::{Profile, Recorder};

/// A turn of a profile, unless the experiment sets its length: long enough that its beginning and end do not show.
const TURN: Duration = Duration::from_millis(10);
/// Caches and branch predictors are warm after this.
const WARM_UP: Duration = Duration::from_millis(300);
/// Events are counted for this part of the time that is sampled.
const COUNTED_PART: u32 = 4;

/// What is profiled.
pub struct Measurement<'m> {
    pub experiment: &'m Experiment<Settings>,
    pub family: &'m Family,
    /// Its place in the experiment.
    pub variant: usize,
    pub recorder: &'m Recorder,
    /// Whether the user has asked for the end.
    pub stop: &'m AtomicBool,
}

pub struct MeasuredProfile {
    /// Name of the family.
    pub family: String,
    /// Place of the variant in the experiment.
    pub variant: usize,
    pub profile: Profile,
    pub events: Vec<EventCount>,
    /// What the metric counted while the events were counted.
    pub counted: u64,
}

impl Measurement<'_> {
    /// Makes the variant ready alone, verifies it, and samples it after a warm-up; `None` if the user stopped it.
    pub fn make(&self, bench: &mut RouterBench) -> anyhow::Result<Option<MeasuredProfile>> {
        let Experiment { variants, subject, seed, .. } = self.experiment;
        let settings = variants[self.variant].set.clone().over(subject);
        let mut made = Ok(None);
        let mut work = |panel: &mut dyn Panel| {
            made = self.measure(panel);
            Ok::<(), PanelError>(())
        };
        let panel = bench.panel(&[settings], &self.family.name, *seed, &mut work);
        panel.map_err(|error| self.failed(error.into()))?;
        made.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: SubjectError) -> anyhow::Error {
        let variant = &self.experiment.variants[self.variant];
        anyhow!(error).context(format!("{}, {}", variant.name, self.family.name))
    }

    fn measure(&self, panel: &mut dyn Panel) -> Result<Option<MeasuredProfile>, SubjectError> {
        if let Verified::SetAside(why) = panel.verify(0)? {
            let events = panel.findings(0).events.join("; ");
            return Err(format!("it cannot take part, {why}: {events}").into());
        }
        let time = self.experiment.window.measure();
        self.turns(panel, WARM_UP.min(time))?;
        let recorded = self.recorder.record(|| self.turns(panel, time));
        // Work that the user has cut short may be too short for a profile.
        if self.is_stopped() {
            return Ok(None);
        }
        let (profile, sampled) = recorded?;
        sampled?;
        let (events, counted) = counters::count(|| self.turns(panel, time / COUNTED_PART))?;
        let profile = MeasuredProfile {
            family: self.family.name.clone(),
            variant: self.variant,
            profile,
            events,
            counted: counted?,
        };
        Ok(Some(profile).filter(|_| !self.is_stopped()))
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Lets the variant work for a time; returns what it counted.
    fn turns(&self, panel: &mut dyn Panel, time: Duration) -> Result<u64, SubjectError> {
        let limits = panel.slice_limits();
        let asked = self.experiment.window.slice().unwrap_or(TURN);
        let turn = asked.clamp(limits.shortest, limits.longest);
        let (began, mut counted) = (Instant::now(), 0);
        while began.elapsed() < time && !self.is_stopped() {
            counted += panel.slice(Arm::Member(0), Duration::ZERO, turn)?.counted;
        }
        Ok(counted)
    }
}

impl MeasuredProfile {
    /// Events for each thing that the metric counts; `None` where the machine does not count them.
    pub fn per_unit(&self, event: &str) -> Option<f64> {
        let count = self.events.iter().find(|one| one.event == event)?.count?;
        (self.counted > 0).then(|| count as f64 / self.counted as f64)
    }
}
