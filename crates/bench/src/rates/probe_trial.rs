//! A trial in which the delays of probes are measured.

use std::time::Duration;

use fullview_plane::port::timed::TimedCapture;
use fullview_table::Family;

use super::bed::RateBed;
use super::delays::Delays;
use super::error::RatesError;
use super::generator::offer_marked;
use super::probes::{MOST, ProbeMarker};
use super::receiver::{received, settled};
use super::stamp::StampPlace;
use super::trial::RateTrial;

/// What one trial with probes counted.
#[derive(Clone, Debug)]
pub struct ProbeTrial {
    pub trial: RateTrial,
    /// Packets with a stamp.
    pub probes: u64,
    /// Those of the probes that came out.
    pub delays: Delays,
}

impl ProbeTrial {
    /// The probes that did not come out.
    pub fn lost(&self) -> u64 {
        self.probes.saturating_sub(self.delays.count())
    }
}

/// Offers a load with probes. They are read after the trial, so that no program takes the device's core meanwhile.
pub fn probe(bed: &RateBed, load: f64, seconds: f64, seed: u64) -> Result<ProbeTrial, RatesError> {
    let opened = bed.right.within(|| Ok(open_capture(bed.counted(), bed.family)))?;
    let mut capture = opened?;
    let before = received(bed)?;
    let mut marker = ProbeMarker::new(bed.family, load * seconds, seed);
    let offered = offer_marked(bed, load, Duration::from_secs_f64(seconds), &mut marker)?;
    let trial = RateTrial::new(offered, settled(bed, before, offered.sent)?)?;
    if marker.clocks().was_set() {
        return Err(RatesError::ClockSet);
    }
    let delays = read_delays(&mut capture, bed.family)?;
    Ok(ProbeTrial { trial, probes: marker.marked(), delays })
}

/// Begins to keep the probes that arrive at an interface.
pub fn open_capture(interface: &str, family: Family) -> Result<TimedCapture, RatesError> {
    TimedCapture::open(interface, MOST, StampPlace::of(family).probes()).map_err(RatesError::Capture)
}

/// The delays of the probes that have arrived.
pub fn read_delays(capture: &mut TimedCapture, family: Family) -> Result<Delays, RatesError> {
    let (place, mut delays) = (StampPlace::of(family), Delays::default());
    while let Some((received, frame)) = capture.next_frame() {
        let delay = received.checked_sub(place.read(&frame)).ok_or(RatesError::ClockSet)?;
        delays.record(delay);
    }
    match capture.overruns().map_err(RatesError::Capture)? {
        0 => Ok(delays),
        probes => Err(RatesError::UnreadProbes { probes }),
    }
}
