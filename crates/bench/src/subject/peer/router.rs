//! A router on the bed of `peers/bed`, which is the same for all routers, and that bed without it.
//!
//! Both are served by one process. The bed sent every packet through the router once and checked it against the table
//! before it reported that it was ready.

use std::time::Duration;

use fullview_lab::{Findings, Slice, SubjectError, Validity, Verified};

use super::contestant::Contestant;
use crate::error::PeerError;
use crate::subject::arms::{PanelArm, PanelMember};

/// A contestant that forwards.
pub struct PeerRouter {
    pub contestant: Contestant,
    pub control: usize,
}

impl PeerRouter {
    fn count(&self) -> Result<Findings, PeerError> {
        let totals = self.contestant.process.borrow_mut().totals()?;
        let lost = totals.sent.saturating_sub(totals.received);
        let misrouted = totals.wrong > 0 || lost > 0;
        let counters =
            [("sent", totals.sent), ("received", totals.received), ("wrong", totals.wrong), ("lost", lost)];
        Ok(Findings {
            counters: counters.map(|(name, count)| (name.into(), count as f64)).into(),
            reasons: misrouted.then_some(Validity::Misrouted).into_iter().collect(),
            events: self.contestant.events(),
        })
    }
}

impl PanelArm for PeerRouter {
    fn slice(&mut self, lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
        self.contestant.slice(lead_in, length)
    }

    /// A router that does not take part has counted nothing. One that ends without an answer has lost its packets.
    fn findings(&mut self) -> Findings {
        let mut events = self.contestant.events();
        if self.contestant.obstacle().is_some() {
            return Findings { events, ..Findings::default() };
        }
        self.count().unwrap_or_else(|error| {
            events.push(error.to_string());
            Findings { reasons: vec![Validity::Misrouted], events, ..Findings::default() }
        })
    }
}

impl PanelMember for PeerRouter {
    fn control(&self) -> usize {
        self.control
    }

    fn verify(&mut self) -> Result<Verified, SubjectError> {
        self.contestant.verify()
    }
}

/// The bed of a router's process without the router.
pub struct PeerBed(pub Contestant);

impl PanelArm for PeerBed {
    fn slice(&mut self, lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
        self.0.slice(lead_in, length)
    }

    /// The findings of the router contain what the bed found wrong.
    fn findings(&mut self) -> Findings {
        Findings::default()
    }
}
