//! The latency of a device: how long probes take from the moment at which the schedule wants them sent to the receiver.

use std::sync::atomic::{AtomicBool, Ordering};

use fullview_lab::search::{TrialPurpose, TrialRequest};

use super::archive::{ArchivedProbes, ArchivedTrial, TrialArchive};
use super::error::RatesError;
use super::lab::{RateDevice, RateLab};
use super::latency_level::LatencyLevel;
use super::path_latency::{LevelLatency, PathLatency};
use super::probe_trial::ProbeTrial;
use super::questions::Questions;
use super::trial::Offered;

/// The cable whose delays are the stamps' own.
const LINK: &str = "link";
/// A trial with probes takes so many times as long as one of a search.
const LONGER: f64 = 5.0;
const ATTEMPTS: u32 = 3;

/// What the latency of one device in one repetition is measured with.
pub struct LatencyTurn<'a> {
    pub device: &'a str,
    pub repetition: u32,
    /// Of a trial of the search.
    pub trial_seconds: f64,
    pub seed: u64,
    /// With the routes that the device has while its rates are measured.
    pub questions: &'a Questions,
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
        let link = lab.has_cable().then(|| self.cable(lab, loads)).transpose()?;
        let mut link = link.into_iter().flatten();
        let paths = loads.iter().zip(self.through_device(lab, loads)?);
        let level = |(&(level, load), device)| LevelLatency { level, load, device, link: link.next() };
        Ok(paths.map(level).collect())
    }

    fn cable(
        &mut self,
        lab: &mut dyn RateLab,
        loads: &[(LatencyLevel, f64)],
    ) -> Result<Vec<PathLatency>, RatesError> {
        let mut running = lab.start(LINK)?;
        self.path(running.as_mut(), LINK, loads)
    }

    /// Has the device do what it did in the search: it was started again, and has no routes yet.
    fn through_device(
        &mut self,
        lab: &mut dyn RateLab,
        loads: &[(LatencyLevel, f64)],
    ) -> Result<Vec<PathLatency>, RatesError> {
        let mut running = lab.start(self.device)?;
        self.questions.prepare(running.as_mut())?;
        let found = self.path(running.as_mut(), self.device, loads)?;
        self.questions.end_changes(running.as_mut())?;
        Ok(found)
    }

    fn path(
        &mut self,
        running: &mut dyn RateDevice,
        path: &str,
        loads: &[(LatencyLevel, f64)],
    ) -> Result<Vec<PathLatency>, RatesError> {
        let level = |&(level, load)| {
            let duration = LONGER * self.trial_seconds;
            // Nothing follows from it for the search.
            let request = TrialRequest { load, duration, purpose: TrialPurpose::Warmup };
            let ProbeTrial { probes, delays, .. } = self.level(running, path, level, request)?;
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

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::sync::Arc;

    use fullview_profile::CoreProfile;
    use fullview_table::Family;

    use super::super::convergence::{Convergence, ConvergencePlan};
    use super::super::delays::Delays;
    use super::super::lab::LabDescription;
    use super::super::route_table::{RouteTable, TableSource};
    use super::super::table_load::{ChangeRate, RoutesPlan, TableLoad};
    use super::super::trial::RateTrial;
    use super::*;

    /// What was done, in its order.
    type Steps = Rc<RefCell<Vec<String>>>;

    struct RecordingLab(Steps);

    struct RecordingDevice(Steps);

    impl RateLab for RecordingLab {
        fn largest_load(&mut self, _: [f64; 2], _: f64, _: &AtomicBool) -> Result<f64, RatesError> {
            Ok(1000.0)
        }

        fn check_profile(&self) -> Result<(), RatesError> {
            Ok(())
        }

        fn start(&mut self, device: &str) -> Result<Box<dyn RateDevice + '_>, RatesError> {
            self.0.borrow_mut().push(device.into());
            Ok(Box::new(RecordingDevice(Rc::clone(&self.0))))
        }

        fn converge(&mut self, _: &str, _: ConvergencePlan<'_>) -> Result<Vec<Convergence>, RatesError> {
            Ok(vec![])
        }

        fn describe(&self) -> LabDescription {
            LabDescription::default()
        }
    }

    impl RateDevice for RecordingDevice {
        fn trial(&mut self, _: f64, _: f64) -> Result<RateTrial, RatesError> {
            Err(RatesError::ForwardsNothing)
        }

        fn probe(&mut self, _: f64, _: f64, _: u64) -> Result<ProbeTrial, RatesError> {
            self.0.borrow_mut().push("probes".into());
            let trial = RateTrial::new(Offered { planned: 1, sent: 1 }, 1)?;
            Ok(ProbeTrial { trial, probes: 0, delays: Delays::default() })
        }

        fn load_routes(&mut self, plan: &RoutesPlan) -> Result<TableLoad, RatesError> {
            self.0.borrow_mut().push("routes".into());
            Ok(TableLoad::new(plan.table.count(), [0.0; 2], [None; 2]))
        }

        fn end_changes(&mut self, _: &RoutesPlan) -> Result<Option<ChangeRate>, RatesError> {
            self.0.borrow_mut().push("end of changes".into());
            Ok(None)
        }

        fn profile(&mut self, _: f64, _: f64) -> Result<(CoreProfile, RateTrial), RatesError> {
            Err(RatesError::ForwardsNothing)
        }
    }

    fn questions() -> Questions {
        let source = TableSource { routes: 100, seed: 1, trace: None };
        let table = Arc::new(RouteTable::new(&source, Family::Inet).unwrap());
        let plan = RoutesPlan { table, source: Arc::new(source), changes: 10, spare: false };
        Questions { routes: Some(plan), ..Questions::default() }
    }

    #[test]
    fn the_device_has_its_routes_while_latency_is_measured_and_the_cable_has_none() {
        let (folder, steps) = (tempfile::tempdir().unwrap(), Steps::default());
        let mut archive = TrialArchive::create(folder.path()).unwrap();
        let (stop, questions) = (AtomicBool::new(false), questions());
        let mut turn = LatencyTurn {
            device: "kernel",
            repetition: 1,
            trial_seconds: 0.1,
            seed: 1,
            questions: &questions,
            archive: &mut archive,
            stop: &stop,
        };
        turn.measure(&mut RecordingLab(Rc::clone(&steps)), &[(LatencyLevel::Overload, 1e3)]).unwrap();
        assert_eq!(*steps.borrow(), ["link", "probes", "kernel", "routes", "probes", "end of changes"]);
    }
}
