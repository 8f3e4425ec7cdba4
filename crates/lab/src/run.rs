//! Runs a campaign: prepares, verifies and measures each subject, appends the record, and repeats invalid runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::archive::Archive;
use crate::error::{LabError, RunStep};
use crate::experiment::{Experiment, Settings, Window};
use crate::host::{self, Provenance};
use crate::measurement::Measurement;
use crate::plan::PlannedRun;
use crate::progress::Progress;
use crate::record::{RunRecord, SCHEMA};
use crate::schedule::Schedule;
use crate::subject::{Bench, SubjectError};

/// How a campaign ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Every run of the plan was made.
    Complete,
    /// The campaign was stopped. The runs made are in the archive, and resuming continues after them.
    Interrupted,
}

/// Makes every run of the experiment that the archive does not contain yet.
///
/// Invalid runs are kept and repeated at the end of their block, up to [`crate::Analysis::retries`] times each and
/// [`Experiment::max_repeats`] times in total. When `stop` becomes true, the run in progress ends and is kept as
/// interrupted, and the campaign ends.
pub fn run<S: Settings>(
    experiment: &Experiment<S>,
    archive: &mut Archive,
    bench: &mut dyn Bench<S>,
    progress: &mut dyn Progress,
    stop: &AtomicBool,
) -> Result<Outcome, LabError> {
    experiment.check()?;
    archive.record_provenance(&Provenance::observe(bench.conditions()))?;
    let schedule = Schedule::of(experiment);
    let mut estimate = TimeEstimate::of(experiment);
    let left = schedule.left(archive.records());
    progress.started(left, estimate.remaining(left));
    while let Some((planned, attempt)) = schedule.next(archive.records()) {
        if stop.load(Ordering::Relaxed) {
            return Ok(Outcome::Interrupted);
        }
        progress.run_started(&schedule.starting(&planned, attempt));
        let clock = Instant::now();
        let record = one_run(experiment, bench, &planned, attempt, stop)?;
        archive.append(record.clone())?;
        estimate.add(clock.elapsed());
        progress.run_finished(&record, estimate.remaining(schedule.left(archive.records())));
        if record.is_interrupted() {
            return Ok(Outcome::Interrupted);
        }
    }
    Ok(Outcome::Complete)
}

/// Estimates how long a run takes: first by its window, then by the mean of the runs made.
struct TimeEstimate {
    window: Duration,
    spent: Duration,
    runs: u32,
}

impl TimeEstimate {
    fn of<S>(experiment: &Experiment<S>) -> Self {
        Self { window: experiment.window.total(), spent: Duration::ZERO, runs: 0 }
    }

    fn add(&mut self, time: Duration) {
        self.spent += time;
        self.runs += 1;
    }

    fn remaining(&self, runs: usize) -> Duration {
        let each = if self.runs == 0 { self.window } else { self.spent / self.runs };
        each.saturating_mul(u32::try_from(runs).unwrap_or(u32::MAX))
    }
}

fn one_run<S: Settings>(
    experiment: &Experiment<S>,
    bench: &mut dyn Bench<S>,
    planned: &PlannedRun,
    attempt: u32,
    stop: &AtomicBool,
) -> Result<RunRecord, LabError> {
    let variant = &experiment.variants[planned.cell.variant];
    let family = experiment.families[planned.cell.family].name.clone();
    let started = host::now();
    let settings = variant.set.clone().over(&experiment.subject);
    let run = SubjectRun { variant: &variant.name, family: &family };
    let (measured, events) = run.make(bench, &settings, planned.seed, &experiment.window, stop)?;
    Ok(RunRecord {
        schema: SCHEMA,
        block: planned.block,
        position: planned.position,
        attempt,
        variant: variant.name.clone(),
        family,
        seed: planned.seed,
        started,
        value: measured.value,
        validity: measured.validity(),
        samples: measured.samples,
        counters: measured.counters,
        events,
    })
}

/// One run of a subject, with the names for its errors.
struct SubjectRun<'a> {
    variant: &'a str,
    family: &'a str,
}

impl SubjectRun<'_> {
    fn make<S>(
        &self,
        bench: &mut dyn Bench<S>,
        settings: &S,
        seed: u64,
        window: &Window,
        stop: &AtomicBool,
    ) -> Result<(Measurement, Vec<String>), LabError> {
        let mut subject = bench
            .prepare(settings, self.family, seed)
            .map_err(|error| self.failed(RunStep::Prepare, error))?;
        subject.verify().map_err(|error| self.failed(RunStep::Verify, error))?;
        let measured = subject.measure(window, stop).map_err(|error| self.failed(RunStep::Measure, error))?;
        self.usable(&measured)?;
        Ok((measured, subject.events()))
    }

    fn failed(&self, step: RunStep, source: SubjectError) -> LabError {
        LabError::Subject { variant: self.variant.into(), family: self.family.into(), step, source }
    }

    /// Refuses a figure that is not finite, because the journal cannot store it.
    fn usable(&self, measured: &Measurement) -> Result<(), LabError> {
        let value = [("value", measured.value)];
        let samples = measured.samples.iter().map(|sample| ("sample", *sample));
        let counters = measured.counters.iter().map(|(name, count)| (name.as_str(), *count));
        let mut figures = value.into_iter().chain(samples).chain(counters);
        match figures.find(|(_, figure)| !(figure.is_finite() && *figure >= 0.0)) {
            None => Ok(()),
            Some((what, value)) => Err(LabError::Figure {
                variant: self.variant.into(),
                family: self.family.into(),
                what: what.into(),
                value,
            }),
        }
    }
}
