//! Another router, on a test bed of its own that does what ours does on one core (`peers/dpdk/l3fwd/`).
//!
//! Its generator sends the same destinations in the same order, and the peer checked every packet against the table
//! before it reported that it was ready.

use std::time::Duration;

use fullview_lab::{Findings, Slice, SubjectError, Validity, Verified};
use serde::Deserialize;

use super::contestant::Contestant;
use crate::subject::arms::{PanelArm, PanelMember};

/// One slice, million packets a second.
#[derive(Debug, Deserialize)]
struct RouterSample {
    /// Received behind the router, in the loop with it.
    mpps: f64,
    sent_mpps: f64,
    /// Checked packets that came out wrong.
    bad: u64,
    lost: i64,
    on_cpu: f64,
}

/// A contestant that forwards.
pub struct PeerRouter {
    pub contestant: Contestant,
    pub wrong: u64,
    pub lost: u64,
}

impl PanelArm for PeerRouter {
    fn slice(&mut self, _lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
        let RouterSample { mpps, sent_mpps, bad, lost, on_cpu } = self.contestant.sample(length)?;
        self.wrong += bad;
        self.lost += lost.unsigned_abs();
        let packets = |rate: f64| (rate * 1e6 * length.as_secs_f64()).round() as u64;
        let lost_core = length.mul_f64((1.0 - on_cpu).max(0.0));
        Ok(Slice { counted: packets(mpps), offered: packets(sent_mpps), time: length, lost_core })
    }

    fn findings(&mut self) -> Findings {
        let misrouted = self.wrong > 0 || self.lost > 0;
        let counters = [("wrong", self.wrong), ("lost", self.lost)];
        Findings {
            counters: counters.map(|(name, count)| (name.into(), count as f64)).into(),
            reasons: misrouted.then_some(Validity::Misrouted).into_iter().collect(),
            events: self.contestant.events(),
        }
    }
}

impl PanelMember for PeerRouter {
    fn control(&self) -> usize {
        0
    }

    fn verify(&mut self) -> Result<Verified, SubjectError> {
        self.contestant.verify()
    }
}
