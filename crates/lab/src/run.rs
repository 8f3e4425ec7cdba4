//! Runs a plan: prepare, verify, measure, judge, append, and once more for what was invalid.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::archive::Archive;
use crate::error::{LabError, Step};
use crate::experiment::{Experiment, Settings, Window};
use crate::host::{self, Provenance};
use crate::plan::Planned;
use crate::sample::{RunRecord, SCHEMA};
use crate::schedule::Schedule;
use crate::subject::{Bench, Measurement, SubjectError};
use crate::validity::Reasons;

/// How a campaign ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Every run of the plan was made.
    Complete,
    /// It was told to stop; what was measured is in the archive, and resuming goes on from there.
    Interrupted,
}

/// A run about to begin.
#[derive(Debug, Clone, Copy)]
pub struct Starting<'a> {
    /// Block, from zero.
    pub block: u32,
    /// Blocks of the plan.
    pub blocks: u32,
    /// Earlier runs of the same block and cell.
    pub attempt: u32,
    /// Label of the variant.
    pub variant: &'a str,
    /// Title of the family.
    pub family: &'a str,
}

/// Hears how a campaign goes on: the program draws its bar from this.
pub trait Progress {
    /// Before the first run: how many are left to make and how long their windows take.
    fn started(&mut self, total_runs: usize, estimated: Duration);
    /// Before each run.
    fn run_started(&mut self, run: &Starting<'_>);
    /// After each run, when it is on the disk. `remaining` counts repeats only once they are known to be needed.
    fn run_finished(&mut self, record: &RunRecord, remaining: Duration);
}

/// Makes every run of the experiment that the archive does not hold yet.
///
/// Invalid runs are kept and repeated at the end of their block, up to [`crate::Analysis::retries`] times each and
/// [`Experiment::max_repeats`] times in all. When `stop` becomes true the run in progress ends, is kept as interrupted,
/// and the campaign returns.
pub fn run<S: Settings>(
    experiment: &Experiment<S>,
    archive: &mut Archive,
    bench: &mut dyn Bench<S>,
    progress: &mut dyn Progress,
    stop: &AtomicBool,
) -> Result<Outcome, LabError> {
    experiment.check()?;
    archive.describe(&Provenance::observe(bench.conditions()))?;
    let schedule = Schedule::of(experiment);
    let mut pace = Pace::of(experiment);
    progress.started(schedule.left(archive.records()), pace.remaining(schedule.left(archive.records())));
    while let Some((planned, attempt)) = schedule.next(archive.records()) {
        if stop.load(Ordering::Relaxed) {
            return Ok(Outcome::Interrupted);
        }
        progress.run_started(&schedule.starting(&planned, attempt));
        let clock = Instant::now();
        let record = one_run(experiment, bench, &planned, attempt, stop)?;
        let interrupted = record.is_interrupted();
        archive.append(record)?;
        pace.took(clock.elapsed());
        if let Some(record) = archive.records().runs.last() {
            progress.run_finished(record, pace.remaining(schedule.left(archive.records())));
        }
        if interrupted {
            return Ok(Outcome::Interrupted);
        }
    }
    Ok(Outcome::Complete)
}

/// How long a run takes: its window at first, then the mean of the runs made.
struct Pace {
    window: Duration,
    spent: Duration,
    runs: u32,
}

impl Pace {
    fn of<S>(experiment: &Experiment<S>) -> Self {
        Self { window: experiment.window.total(), spent: Duration::ZERO, runs: 0 }
    }

    fn took(&mut self, time: Duration) {
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
    planned: &Planned,
    attempt: u32,
    stop: &AtomicBool,
) -> Result<RunRecord, LabError> {
    let variant = &experiment.variants[planned.cell.variant];
    let family = experiment.families[planned.cell.family].name.clone();
    let started = host::now();
    let settings = variant.set.clone().over(&experiment.subject);
    let trial = Trial { variant: &variant.name, family: &family };
    let (measured, events) = trial.make(bench, &settings, planned.seed, &experiment.window, stop)?;
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
        validity: Reasons::of_run(&measured),
        samples: measured.samples,
        counters: measured.counters,
        events,
    })
}

/// One subject on its way through a run, with the names its failures are reported under.
struct Trial<'a> {
    variant: &'a str,
    family: &'a str,
}

impl Trial<'_> {
    fn make<S>(
        &self,
        bench: &mut dyn Bench<S>,
        settings: &S,
        seed: u64,
        window: &Window,
        stop: &AtomicBool,
    ) -> Result<(Measurement, Vec<String>), LabError> {
        let mut subject =
            bench.prepare(settings, self.family, seed).map_err(|error| self.failed(Step::Prepare, error))?;
        subject.verify().map_err(|error| self.failed(Step::Verify, error))?;
        let measured = subject.measure(window, stop).map_err(|error| self.failed(Step::Measure, error))?;
        self.usable(&measured)?;
        Ok((measured, subject.events()))
    }

    fn failed(&self, step: Step, source: SubjectError) -> LabError {
        LabError::Subject { variant: self.variant.into(), family: self.family.into(), step, source }
    }

    /// A figure that is not finite cannot be written to the journal and read back.
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
