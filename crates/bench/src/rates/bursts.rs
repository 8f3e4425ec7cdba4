//! The longest burst at the largest load that a device forwards without loss: back-to-back frames of RFC 9004.

use fullview_lab::search::{Measurer, TrialPurpose, TrialRequest};
use serde::{Deserialize, Serialize};

use super::parts::LONGEST;

/// Bounds of a burst are as near as this share of the upper one at the end, or a packet.
const WIDTH: f64 = 0.005;

/// The bursts of one repetition.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LongestBurst {
    /// Packets a second in each burst.
    pub load: f64,
    /// Packets of the longest burst of which none was lost; 0 if there is none.
    pub packets: u64,
    /// Packets of the shortest burst above it of which some were lost, twice in a row. Nothing if there is none: the device
    /// carries the load, as far as bursts are tried.
    pub lost: Option<u64>,
    /// What the burst says about the device's buffer, if it ended where packets were lost.
    pub buffer: Option<BufferTime>,
}

/// For how long a buffer takes the packets of the load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BufferTime {
    /// The time of the longest burst.
    pub implied_seconds: f64,
    /// The same without the packets that the device forwards meanwhile, by its NDR. Nothing if that is not known.
    pub corrected_seconds: Option<f64>,
    /// The packets of that time.
    pub corrected_packets: Option<f64>,
}

/// What bursts are tried.
#[derive(Clone, Copy, Debug)]
pub struct BurstPlan {
    /// Packets a second.
    pub load: f64,
    /// Packets of the longest burst.
    pub most: u64,
    /// The no drop rate of the device, if it was found.
    pub ndr: Option<f64>,
}

impl BurstPlan {
    /// Bursts up to a trial of the search, or up to one part: queues become empty in the pause after it.
    pub fn new(load: f64, trial_seconds: f64, ndr: Option<f64>) -> BurstPlan {
        // A packet less, because a burst takes half a packet longer than its packets.
        let in_a_part = ((load * LONGEST.as_secs_f64()) as u64).saturating_sub(1);
        BurstPlan { load, most: ((load * trial_seconds) as u64).min(in_a_part), ndr }
    }

    /// Half a packet more, because the generator rounds down.
    fn seconds(&self, packets: u64) -> f64 {
        (packets as f64 + 0.5) / self.load
    }
}

/// Finds the longest burst by bisection. A burst that loses packets is sent again, and counts if it loses some again: one
/// packet that other work lost would decide about all longer bursts otherwise.
pub fn longest_burst<M: Measurer>(plan: BurstPlan, measurer: &mut M) -> Result<LongestBurst, M::Error> {
    let BurstPlan { load, most, ndr } = plan;
    if !is_lost(plan, most, measurer)? {
        return Ok(LongestBurst { load, packets: most, lost: None, buffer: None });
    }
    let (mut packets, mut lost) = (0, most);
    while (lost - packets) as f64 > (WIDTH * lost as f64).max(1.0) {
        let middle = packets.midpoint(lost);
        if is_lost(plan, middle, measurer)? {
            lost = middle;
        } else {
            packets = middle;
        }
    }
    let buffer = BufferTime::new(packets as f64 / load, load, ndr);
    Ok(LongestBurst { load, packets, lost: Some(lost), buffer: Some(buffer) })
}

fn is_lost<M: Measurer>(plan: BurstPlan, packets: u64, measurer: &mut M) -> Result<bool, M::Error> {
    let (load, duration) = (plan.load, plan.seconds(packets));
    let mut loses = || {
        let request = TrialRequest { load, duration, purpose: TrialPurpose::Burst };
        Ok(measurer.measure(request)?.loss_ratio > 0.0)
    };
    Ok(loses()? && loses()?)
}

impl BufferTime {
    fn new(implied_seconds: f64, load: f64, ndr: Option<f64>) -> BufferTime {
        let corrected = ndr.filter(|ndr| *ndr < load).map(|ndr| implied_seconds * (1.0 - ndr / load));
        BufferTime {
            implied_seconds,
            corrected_seconds: corrected,
            corrected_packets: corrected.map(|seconds| seconds * load),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use fullview_lab::search::TrialResult;

    use super::super::parts::parts;
    use super::*;

    /// A device that takes `buffer` packets while it forwards `rate` a second, and loses one of the first trial besides.
    struct Buffer {
        buffer: f64,
        rate: f64,
        trials: u32,
    }

    impl Measurer for Buffer {
        type Error = Infallible;

        fn measure(&mut self, request: TrialRequest) -> Result<TrialResult, Infallible> {
            self.trials += 1;
            let sent = (request.load * request.duration).floor();
            let lost = (sent - self.buffer - self.rate * request.duration).max(0.0).floor();
            let lost = if self.trials == 1 { 1.0 } else { lost };
            Ok(TrialResult { loss_ratio: lost / sent, effective_duration: request.duration })
        }
    }

    fn longest(buffer: f64, rate: f64, ndr: Option<f64>) -> LongestBurst {
        let plan = BurstPlan { load: 1e6, most: 100_000, ndr };
        longest_burst(plan, &mut Buffer { buffer, rate, trials: 0 }).unwrap()
    }

    #[test]
    fn the_buffer_follows_from_the_burst_and_the_rate() {
        let burst = longest(256.0, 6e5, Some(6e5));
        assert!(
            (637..=643).contains(&burst.packets) && burst.lost.unwrap() - burst.packets <= 4,
            "{burst:?}"
        );
        let packets = burst.buffer.unwrap().corrected_packets.unwrap();
        assert!((254.0..=258.0).contains(&packets), "{burst:?}");
    }

    #[test]
    fn a_device_that_carries_the_load_has_no_longest_burst() {
        let burst = longest(256.0, 1e6, Some(1e6));
        assert_eq!(
            (burst.packets, burst.lost, burst.buffer),
            (100_000, None, None),
            "one loss is not verified"
        );
    }

    #[test]
    fn without_a_rate_the_time_of_the_buffer_stays_uncorrected() {
        let buffer = longest(256.0, 6e5, None).buffer.unwrap();
        assert!(buffer.implied_seconds > 0.0 && buffer.corrected_seconds.is_none());
    }

    #[test]
    fn the_longest_burst_of_a_long_trial_has_no_pause() {
        for load in [1000.0, 123_456.7, 14.88e6] {
            let plan = BurstPlan::new(load, 10.0, None);
            let burst = Duration::from_secs_f64(plan.seconds(plan.most));
            assert_eq!(parts(burst).count(), 1, "{plan:?}");
            assert!(burst.as_secs_f64() > 0.448, "{plan:?}");
        }
        assert_eq!(BurstPlan::new(1e6, 0.2, None).most, 200_000);
    }
}
