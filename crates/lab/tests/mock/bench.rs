//! A bench without a clock: each value depends only on the settings and on the number of runs made.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fullview_lab::{
    Bench, Measurement, Progress, RunRecord, RunStart, Subject, SubjectError, Validity, Window,
};

use super::experiment::MockSettings;

/// Counts its runs, and requests a stop during the run with the number `stop_in`.
#[derive(Debug, Default)]
pub struct MockBench {
    pub runs: u32,
    pub verified: u32,
    pub stop_in: Option<u32>,
}

pub struct MockSubject<'a> {
    mock: &'a mut MockBench,
    settings: MockSettings,
    family: String,
    verified: bool,
}

impl Bench<MockSettings> for MockBench {
    fn prepare<'a>(
        &'a mut self,
        settings: &MockSettings,
        family: &str,
        _seed: u64,
    ) -> Result<Box<dyn Subject + 'a>, SubjectError> {
        Ok(Box::new(MockSubject {
            mock: self,
            settings: settings.clone(),
            family: family.into(),
            verified: false,
        }))
    }

    fn conditions(&mut self) -> Vec<String> {
        vec!["a mock".into()]
    }
}

impl Subject for MockSubject<'_> {
    fn verify(&mut self) -> Result<(), SubjectError> {
        if self.settings.wrong == Some(true) {
            return Err("key 3 gave next hop 4, and 5 is right".into());
        }
        self.mock.verified += 1;
        self.verified = true;
        Ok(())
    }

    fn measure(&mut self, _window: &Window, stop: &AtomicBool) -> Result<Measurement, SubjectError> {
        assert!(self.verified, "measured before it was verified");
        self.mock.runs += 1;
        let number = self.mock.runs;
        stop.fetch_or(self.mock.stop_in == Some(number), Ordering::Relaxed);
        let slower = if self.family == "inet6" { 0.9 } else { 1.0 };
        let noise = 1.0 + 0.001 * f64::from(number * 7 % 5);
        let value = self.settings.rate.unwrap_or(0.0) * slower * noise;
        let invalid = number <= self.settings.invalid_runs.unwrap_or(0);
        Ok(Measurement {
            value,
            samples: vec![value * 1.001, value, value * 0.999],
            counters: BTreeMap::from([("received".into(), value * 2.0), ("lost".into(), 0.0)]),
            reasons: invalid.then_some(Validity::GeneratorLimited).into_iter().collect(),
            interrupted: stop.load(Ordering::Relaxed),
        })
    }

    fn events(&self) -> Vec<String> {
        vec![format!("attached to {}", self.family)]
    }
}

/// Records the progress of a campaign.
#[derive(Debug, Default)]
pub struct ProgressLog {
    pub total: usize,
    pub estimated: Duration,
    pub attempts: Vec<u32>,
    pub finished: usize,
}

impl Progress for ProgressLog {
    fn started(&mut self, total_runs: usize, estimated: Duration) {
        (self.total, self.estimated) = (total_runs, estimated);
    }

    fn run_started(&mut self, run: &RunStart<'_>) {
        self.attempts.push(run.attempt);
    }

    fn run_finished(&mut self, _record: &RunRecord, _remaining: Duration) {
        self.finished += 1;
    }
}
