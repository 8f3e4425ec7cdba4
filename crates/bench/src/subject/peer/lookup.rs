//! A contestant's lookups.

use std::time::Duration;

use fullview_lab::{Findings, Slice, SubjectError, Verified};
use serde::Deserialize;

use super::contestant::Contestant;
use crate::subject::arms::{PanelArm, PanelMember};

/// A sample of lookups: million a second, and the share of the time during which the peer had the core.
#[derive(Debug, Deserialize)]
struct LookupSample {
    mlps: f64,
    on_cpu: f64,
}

/// A contestant that looks up.
pub struct PeerLookup {
    pub contestant: Contestant,
    pub control: usize,
}

impl PanelArm for PeerLookup {
    fn slice(&mut self, _lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
        let LookupSample { mlps, on_cpu } = self.contestant.sample(length)?;
        let counted = (mlps * 1e6 * length.as_secs_f64()).round() as u64;
        Ok(Slice {
            counted,
            offered: counted,
            time: length,
            lost_core: length.mul_f64((1.0 - on_cpu).max(0.0)),
        })
    }

    fn findings(&mut self) -> Findings {
        let counters = self.contestant.facts().collect();
        Findings { counters, reasons: Vec::new(), events: self.contestant.events() }
    }
}

impl PanelMember for PeerLookup {
    fn control(&self) -> usize {
        self.control
    }

    fn verify(&mut self) -> Result<Verified, SubjectError> {
        self.contestant.verify()
    }
}
