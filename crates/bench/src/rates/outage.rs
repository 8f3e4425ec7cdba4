//! For how long packets were lost when something failed.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::traced_trial::TracedTrial;
use super::trial::MOST_BEHIND;

/// The part of a trial, at its end, that loses nothing if another route has taken over.
const END: f64 = 0.1;

/// What one failure cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outage {
    pub sent: u64,
    pub lost: u64,
    /// The share of the packets that used the link before it failed.
    pub share: f64,
    /// The time in which as many packets of that share are sent as were lost.
    pub outage_ms: f64,
    /// From the first lost packet to the last one; 0 if none was lost.
    pub span_ms: f64,
    /// Whether the end of the trial lost nothing. If not, both times are longer.
    pub recovered: bool,
}

impl Outage {
    /// By a trial in which the work that makes something fail began at a moment. Nothing if the generator fell behind,
    /// packets were lost before, or none used the link: then not the failure alone is to blame. Nor if it took that work until
    /// the end to make something fail.
    pub fn of(trial: &TracedTrial, began: Duration, load: f64) -> Option<Outage> {
        let missing = trial.missing();
        let end = trial.sent.len() - (trial.sent.len() as f64 * END) as usize;
        let is_late = |first: &Duration| trial.sent.get(end).is_some_and(|end| first >= end);
        let is_outside = missing.first().is_some_and(|first| *first < began || is_late(first));
        if trial.offered.behind() > MOST_BEHIND || is_outside {
            return None;
        }
        let before = trial.received.each_ref().map(|link| link.range(..began).count() as f64);
        let share = before[0] / (before[0] + before[1]);
        if share.is_nan() || share == 0.0 {
            return None;
        }
        let (lost, packet) = (missing.len() as u64, 1.0 / load);
        let span =
            missing.first().zip(missing.last()).map(|(first, last)| (*last - *first).as_secs_f64() + packet);
        let recovered = trial.sent[end..].iter().all(|due| trial.came_out(due));
        Some(Outage {
            sent: trial.sent.len() as u64,
            lost,
            share,
            outage_ms: lost as f64 * packet / share * 1e3,
            span_ms: span.unwrap_or(0.0) * 1e3,
            recovered,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::Offered;
    use super::*;

    /// A thousand packets a second for a tenth of a second, over one link or over two in turn, without those
    /// for which `is_lost`.
    fn trial(links: u64, is_lost: impl Fn(u64) -> bool) -> TracedTrial {
        let sent: Vec<Duration> = (0..100).map(Duration::from_millis).collect();
        let came = (0..100).filter(|number| !is_lost(*number));
        let (first, second): (Vec<u64>, Vec<u64>) =
            came.partition(|number| links == 1 || number % links == 0);
        let received = [first, second].map(|link| link.into_iter().map(Duration::from_millis).collect());
        TracedTrial { offered: Offered { planned: 100, sent: 100 }, sent, received }
    }

    fn outage(links: u64, is_lost: impl Fn(u64) -> bool) -> Option<Outage> {
        Outage::of(&trial(links, is_lost), Duration::from_millis(20), 1000.0)
    }

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-9
    }

    #[test]
    fn packets_that_are_lost_in_a_row_give_the_outage() {
        let found = outage(1, |number| (30..37).contains(&number)).unwrap();
        assert!(near(found.outage_ms, 7.0) && near(found.span_ms, 7.0) && found.recovered, "{found:?}");
    }

    #[test]
    fn the_outage_of_half_of_the_packets_is_as_long_as_that_of_all() {
        let found = outage(2, |number| (30..40).contains(&number) && number % 2 == 0).unwrap();
        assert!(near(found.outage_ms, 10.0) && near(found.span_ms, 9.0) && found.lost == 5, "{found:?}");
    }

    #[test]
    fn nothing_lost_is_no_outage_and_losses_at_the_end_are_a_longer_one() {
        let none = outage(1, |_| false).unwrap();
        assert!((none.lost, none.outage_ms, none.span_ms) == (0, 0.0, 0.0) && none.recovered, "{none:?}");
        assert!(!outage(1, |number| number >= 50).unwrap().recovered);
    }

    #[test]
    fn a_disturbed_trial_does_not_count() {
        assert_eq!(outage(1, |number| number == 19), None, "lost before the failure");
        assert_eq!(outage(1, |number| number >= 90), None, "it failed too late to see what follows");
        let [first, second] = trial(1, |_| false).received;
        let unused = TracedTrial { received: [second, first], ..trial(1, |_| false) };
        assert_eq!(Outage::of(&unused, Duration::from_millis(20), 1000.0), None, "the link was not in use");
        let late = TracedTrial { offered: Offered { planned: 101, sent: 100 }, ..trial(1, |_| false) };
        assert_eq!(Outage::of(&late, Duration::from_millis(20), 1000.0), None, "the generator fell behind");
    }
}
