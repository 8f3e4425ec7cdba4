//! A contestant's lookups.

use std::time::Duration;

use fullview_lab::{Findings, Slice, SubjectError, Verified};

use super::contestant::Contestant;
use crate::subject::arms::{PanelArm, PanelMember};

/// A contestant that looks up.
pub struct PeerLookup {
    pub contestant: Contestant,
    pub control: usize,
}

impl PanelArm for PeerLookup {
    fn slice(&mut self, lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
        self.contestant.slice(lead_in, length)
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
