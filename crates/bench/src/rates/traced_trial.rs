//! A trial of which it is known which packets came out, and by which link.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use fullview_plane::burst::Slot;
use fullview_plane::port::timed::TimedCapture;
use fullview_table::Family;

use super::bed::{HOST, RateBed};
use super::clock::ClockPair;
use super::error::RatesError;
use super::generator::{PacketMark, offer_marked};
use super::probe_trial::open_capture;
use super::probes::MOST;
use super::spare_link::SPARE_HOST;
use super::stamp::StampPlace;
use super::trial::Offered;

/// Packets that have not come out so long after the end of a trial are lost.
pub const SETTLE: Duration = Duration::from_millis(50);

/// What became of each packet. The time at which it was due is its number.
#[derive(Clone, Debug, Default)]
pub struct TracedTrial {
    pub offered: Offered,
    /// In order.
    pub sent: Vec<Duration>,
    /// By the first and by the second link.
    pub received: [BTreeSet<Duration>; 2],
}

impl TracedTrial {
    /// Packets that did not come out, in order.
    pub fn missing(&self) -> Vec<Duration> {
        self.sent.iter().filter(|due| !self.came_out(due)).copied().collect()
    }

    pub fn came_out(&self, due: &Duration) -> bool {
        self.received.iter().any(|link| link.contains(due))
    }
}

/// Stamps every packet, and keeps the stamps.
pub struct PacketTimes {
    place: StampPlace,
    clocks: ClockPair,
    due: Vec<Duration>,
}

impl PacketTimes {
    pub fn new(family: Family) -> PacketTimes {
        let (place, clocks) = (StampPlace::of(family), ClockPair::now());
        PacketTimes { place, clocks, due: Vec::with_capacity(MOST) }
    }

    /// The stamps of the packets that the link took: it may not have taken the last ones.
    pub fn sent(mut self, offered: Offered) -> Result<Vec<Duration>, RatesError> {
        self.due.truncate(offered.sent as usize);
        if self.clocks.was_set() { Err(RatesError::ClockSet) } else { Ok(self.due) }
    }
}

impl PacketMark for PacketTimes {
    fn mark(&mut self, slot: &mut Slot, due: impl FnOnce() -> Instant) {
        let due = self.clocks.real_at(due());
        self.place.write(slot, due);
        self.due.push(due);
    }
}

/// Offers a load of no more packets than the receiver has room for, while a thread does some work; returns when that work
/// began, too, in the time of the packets.
pub fn trace(
    bed: &RateBed,
    load: f64,
    duration: Duration,
    work: impl FnOnce() -> Result<Instant, RatesError> + Send,
) -> Result<(TracedTrial, Duration), RatesError> {
    let open = |interface| bed.right.within(|| Ok(open_capture(interface, bed.family)));
    let mut captures = [open(HOST)??, open(SPARE_HOST)??];
    let mut times = PacketTimes::new(bed.family);
    let (offered, began) = thread::scope(|scope| {
        let working = scope.spawn(work);
        let offered = offer_marked(bed, load, duration, &mut times);
        let began = working.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok::<_, RatesError>((offered?, began?))
    })?;
    thread::sleep(SETTLE);
    let [first, second] = &mut captures;
    let received = [read_stamps(first, bed.family)?, read_stamps(second, bed.family)?];
    let began = times.clocks.real_at(began);
    let sent = times.sent(offered)?;
    Ok((TracedTrial { offered, sent, received }, began))
}

/// The stamps of the packets that have arrived.
pub fn read_stamps(capture: &mut TimedCapture, family: Family) -> Result<BTreeSet<Duration>, RatesError> {
    let place = StampPlace::of(family);
    let frames = std::iter::from_fn(|| capture.next_frame());
    let stamps = frames.map(|(_, frame)| place.read(&frame)).collect();
    match capture.overruns().map_err(RatesError::Capture)? {
        0 => Ok(stamps),
        probes => Err(RatesError::UnreadProbes { probes }),
    }
}
