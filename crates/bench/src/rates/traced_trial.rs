//! A trial of which it is known which packets came out, and by which link.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use fullview_plane::burst::Slot;
use fullview_plane::port::timed::TimedCapture;

use super::bed::{HOST, RateBed};
use super::clock::ClockPair;
use super::error::RatesError;
use super::generator::{PacketMark, offer_marked};
use super::probe_trial::open_capture;
use super::probes::MOST;
use super::spare_link::SPARE_HOST;
use super::stamp;
use super::trial::Offered;

/// Packets that have not come out so long after the end of a trial are lost.
const SETTLE: Duration = Duration::from_millis(50);

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
struct PacketTimes {
    clocks: ClockPair,
    due: Vec<Duration>,
}

impl PacketMark for PacketTimes {
    fn mark(&mut self, slot: &mut Slot, due: impl FnOnce() -> Instant) {
        let due = self.clocks.real_at(due());
        stamp::write(slot, due);
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
    let open = |interface| bed.right.within(|| Ok(open_capture(interface)));
    let mut captures = [open(HOST)??, open(SPARE_HOST)??];
    let mut times = PacketTimes { clocks: ClockPair::now(), due: Vec::with_capacity(MOST) };
    let (offered, began) = thread::scope(|scope| {
        let working = scope.spawn(work);
        let offered = offer_marked(bed, load, duration, &mut times);
        let began = working.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok::<_, RatesError>((offered?, began?))
    })?;
    thread::sleep(SETTLE);
    let [first, second] = &mut captures;
    let received = [read(first)?, read(second)?];
    if times.clocks.was_set() {
        return Err(RatesError::ClockSet);
    }
    let (mut sent, began) = (times.due, times.clocks.real_at(began));
    // The link may not have taken the last ones.
    sent.truncate(offered.sent as usize);
    Ok((TracedTrial { offered, sent, received }, began))
}

fn read(capture: &mut TimedCapture) -> Result<BTreeSet<Duration>, RatesError> {
    let frames = std::iter::from_fn(|| capture.next_frame());
    let stamps = frames.map(|(_, frame)| stamp::read(&frame)).collect();
    match capture.overruns().map_err(RatesError::Capture)? {
        0 => Ok(stamps),
        probes => Err(RatesError::UnreadProbes { probes }),
    }
}
