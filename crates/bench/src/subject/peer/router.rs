//! Another router, on a test bed of its own that does what ours does on one core (`peers/dpdk/l3fwd/`).
//!
//! Its generator sends the same destinations in the same order, and the peer checked every packet against the table
//! before it reported that it was ready. Its value follows the rule for our own router: the router's share of a loop
//! that is timed with and without it. Where its generator has a core of its own (`peers/dpdk/memif/`), the value is the
//! rate of packets received.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::traffic::load::LoadResult;
use fullview_lab::stats::median;
use fullview_lab::{Measurement, Subject, SubjectError, Validity, Window};
use serde::Deserialize;

use super::contestant::Contestant;
use crate::subject::cores::Cores;
use crate::subject::forward::{note_distance, router_samples};
use crate::subject::sampling::{judge_share, measurement};

/// One slice of a run, million packets a second.
#[derive(Debug, Deserialize)]
struct RouterSample {
    /// Received behind the router, in the loop with it.
    mpps: f64,
    sent_mpps: f64,
    /// The loop without the router, where there is one.
    loop_mpps: Option<f64>,
    /// Checked packets that came out wrong.
    bad: u64,
    lost: i64,
    on_cpu: f64,
}

/// A contestant that forwards.
pub struct PeerRouter {
    pub contestant: Contestant,
    /// Where generator and router are on different cores: how far these are apart is part of a run.
    pub apart: Option<Cores>,
}

impl Subject for PeerRouter {
    fn verify(&mut self) -> Result<(), SubjectError> {
        self.contestant.verify()
    }

    fn measure(&mut self, window: &Window, stop: &AtomicBool) -> Result<Measurement, SubjectError> {
        if let Some((reason, _)) = self.contestant.obstacle() {
            return Ok(Measurement { reasons: vec![reason], ..Measurement::default() });
        }
        let before = self.apart.map(Cores::round_trip).transpose()?;
        let slices = self.contestant.samples(window, stop)?;
        let mut measurement = judge(&slices);
        if let (Some(before), Some(cores)) = (before, self.apart) {
            note_distance(&mut measurement, [before, cores.round_trip()?]);
        }
        Ok(Measurement { interrupted: stop.load(Ordering::Relaxed), ..measurement })
    }

    fn events(&self) -> Vec<String> {
        self.contestant.events()
    }
}

fn judge(slices: &[RouterSample]) -> Measurement {
    let rates = |of: fn(&RouterSample) -> f64| slices.iter().map(|slice| of(slice) * 1e6).collect::<Vec<_>>();
    let result = LoadResult {
        rates: rates(|slice| slice.mpps),
        sent_rates: rates(|slice| slice.sent_mpps),
        loop_rates: slices.iter().filter_map(|slice| slice.loop_mpps).map(|rate| rate * 1e6).collect(),
        ..LoadResult::default()
    };
    let (samples, reason) = router_samples(&result);
    let mut run = measurement(samples);
    run.reasons.extend(reason);
    if slices.iter().any(|slice| slice.bad > 0 || slice.lost != 0) {
        run.reasons.push(Validity::Misrouted);
    }
    let counted = [("all_pps", &result.rates), ("loop_pps", &result.loop_rates)];
    let medians = counted.into_iter().filter_map(|(name, rates)| Some((name.to_owned(), median(rates)?)));
    run.counters.extend(medians);
    judge_share(&mut run, slices.iter().map(|slice| slice.on_cpu).fold(1.0, f64::min));
    run
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(bad: u64, lost: i64) -> RouterSample {
        RouterSample { mpps: 50.0, sent_mpps: 50.0, loop_mpps: Some(200.0), bad, lost, on_cpu: 1.0 }
    }

    #[test]
    fn the_value_is_the_routers_share() {
        // 20 ns a packet with the router, 5 ns without it.
        let measurement = judge(&[slice(0, 0), slice(0, 0), slice(0, 0)]);
        assert!((measurement.samples[1] - 1e9 / 15.0).abs() < 1.0, "{measurement:?}");
        assert_eq!((measurement.samples.len(), measurement.reasons), (3, vec![]));
        assert_eq!(measurement.counters["loop_pps"], 200e6);
    }

    #[test]
    fn without_a_loop_to_compare_with_the_value_is_what_came_through() {
        let slices = [0, 0].map(|lost| RouterSample { loop_mpps: None, ..slice(0, lost) });
        let measurement = judge(&slices);
        assert_eq!((measurement.samples, measurement.reasons), (vec![50e6, 50e6], vec![]));
        assert!(!measurement.counters.contains_key("loop_pps"));
    }

    #[test]
    fn packets_that_came_out_wrong_or_not_at_all_spoil_the_run() {
        for slices in [[slice(0, 0), slice(1, 0)], [slice(0, 3), slice(0, 0)]] {
            assert_eq!(judge(&slices).reasons, [Validity::Misrouted]);
        }
    }
}
