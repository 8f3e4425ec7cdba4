//! A contestant's lookups.

use std::sync::atomic::{AtomicBool, Ordering};

use fullview_lab::{Measurement, Subject, SubjectError, Window};
use serde::Deserialize;

use super::contestant::Contestant;
use crate::subject::sampling::{judge_share, measurement};

/// A sample of lookups: million a second, and the share of the time during which the peer had the core.
#[derive(Debug, Deserialize)]
struct LookupSample {
    mlps: f64,
    on_cpu: f64,
}

/// A contestant that looks up.
pub struct PeerLookup(pub Contestant);

impl Subject for PeerLookup {
    fn verify(&mut self) -> Result<(), SubjectError> {
        self.0.verify()
    }

    fn measure(&mut self, window: &Window, stop: &AtomicBool) -> Result<Measurement, SubjectError> {
        if let Some((reason, _)) = self.0.obstacle() {
            return Ok(Measurement { reasons: vec![reason], ..Measurement::default() });
        }
        let counted: Vec<LookupSample> = self.0.samples(window, stop)?;
        let mut run = measurement(counted.iter().map(|sample| sample.mlps * 1e6).collect());
        let share = counted.iter().map(|sample| sample.on_cpu).fold(1.0, f64::min);
        judge_share(&mut run, share);
        run.counters.extend(self.0.facts());
        run.interrupted = stop.load(Ordering::Relaxed);
        Ok(run)
    }

    fn events(&self) -> Vec<String> {
        self.0.events()
    }
}
