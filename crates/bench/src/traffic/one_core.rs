//! Everything in one thread, run to completion: each burst goes from the generator through the router to the receiver
//! before the next one starts.
//!
//! The steadiest test bed there is on a shared machine: no placement of cores, no waiting, no loss in rings. Several
//! routers take turns on one [`Bed`], whose packet memory all of them share. The rate of a [`Flight`] includes generator
//! and receiver; the same flight with [`super::load::Unrouted`] in place of a router shows what those cost.

use std::time::Duration;

use fullview_plane::burst::{Arena, Burst};
use fullview_plane::port::memory::{Receiver, Sender, link};

use crate::core_clock::{Clocks, CoreTime, ThreadClocks};

use super::check::Passage;
use super::flow::FlowSet;
use super::frame::{Frames, Headers};
use super::free::Free;
use super::generator::Generator;
use super::load::{BURSTS_PER_CLOCK_READING, LoadConfig, LoadError, LoadResult, Router, frames, passage};
use super::pace::Pace;
use super::sink::Sink;

/// Sends every packet of the set through the router once; all of them are checked, whatever the configured share is.
pub fn verify<A: Headers, R: Router>(
    config: &LoadConfig,
    flows: &FlowSet<A>,
    router: &mut R,
) -> Result<LoadResult, LoadError> {
    let config = LoadConfig { check_one_in: std::num::NonZeroU32::MIN, pps: None, ..config.clone() };
    let frames = frames(&config)?;
    let mut arena = Arena::new(config.packets);
    let mut bed = Bed::new(&mut arena, &frames, config.ports());
    let mut flight = Flight::new(&config, flows, &frames, passage::<R>(&config))?;
    let mut left = flows.packets().len();
    while left > 0 {
        let count = left.min(config.burst);
        bed.step(&mut flight, router, count);
        left -= count;
    }
    Ok(flight.result())
}

/// What went through the bed in a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lap {
    /// Packets that the schedule asked for; without a schedule those sent.
    pub offered: u64,
    /// Packets that were handed to the router.
    pub sent: u64,
    /// Packets that came out.
    pub received: u64,
    /// How long it took.
    pub time: Duration,
    /// The part of that time in which the thread did not have its core.
    pub lost_core: Duration,
}

/// Packet memory, and the links a burst goes through: what all flights share.
pub struct Bed<'a> {
    free: Free<'a>,
    to_router: (Sender<'a>, Receiver<'a>),
    from_router: (Sender<'a>, Receiver<'a>),
    burst: Burst<'a>,
    /// By port. Each is sent by itself, as by separate ports, but into one link; the port number in the slot keeps the
    /// packets of different ports apart.
    forwarded: Vec<Burst<'a>>,
    dropped: Burst<'a>,
}

/// The packets of one router: their generator, their schedule, and their receiver with its counts.
pub struct Flight<'f, A> {
    generator: Generator<'f, A>,
    sink: Sink<'f, A>,
    burst: usize,
    pps: Option<f64>,
    counts: LoadResult,
}

impl<'f, A: Headers> Flight<'f, A> {
    /// Packets as `config` says, which come out as `passage` says.
    pub fn new(
        config: &LoadConfig,
        flows: &'f FlowSet<A>,
        frames: &'f Frames<A>,
        passage: Passage<'f>,
    ) -> Result<Self, LoadError> {
        config.validate()?;
        config.pace()?;
        Ok(Flight {
            generator: Generator::new(flows, frames, config.ingress_port),
            sink: Sink::new(flows, frames, passage, config.check_one_in),
            burst: config.burst,
            pps: config.pps,
            counts: LoadResult::default(),
        })
    }

    /// Everything counted so far.
    pub fn result(&self) -> LoadResult {
        LoadResult { received: self.sink.tally(), ..self.counts.clone() }
    }

    fn lap_since(&self, before: &Mark) -> Lap {
        let sent = self.counts.sent - before.sent;
        Lap { offered: sent, sent, received: self.sink.packets() - before.received, ..Lap::default() }
    }
}

/// The counts at the beginning of a lap.
struct Mark {
    sent: u64,
    received: u64,
}

impl Mark {
    fn of<A: Headers>(flight: &Flight<'_, A>) -> Self {
        Mark { sent: flight.counts.sent, received: flight.sink.packets() }
    }
}

impl<'a> Bed<'a> {
    /// A bed with the slots of the arena, for packets that leave by one of so many ports.
    pub fn new<A: Headers>(arena: &'a mut Arena, frames: &Frames<A>, ports: usize) -> Self {
        let free = Free::new(arena, frames);
        let packets = free.len();
        let (to_router, from_router) = (link(packets), link(packets));
        let forwarded = (0..ports).map(|_| Burst::new()).collect();
        let (burst, dropped) = (Burst::new(), Burst::new());
        Bed { free, to_router, from_router, burst, forwarded, dropped }
    }

    /// Sends for about that long: as many packets as the router takes, or what its schedule asks for.
    pub fn run<A: Headers, R: Router>(
        &mut self,
        flight: &mut Flight<'_, A>,
        router: &mut R,
        length: Duration,
    ) -> Lap {
        match flight.pps.and_then(|pps| Pace::new(pps).ok()) {
            None => self.unpaced(flight, router, length),
            Some(pace) => self.paced(flight, router, length, (pace, ThreadClocks::start())),
        }
    }

    fn unpaced<A: Headers, R: Router>(
        &mut self,
        flight: &mut Flight<'_, A>,
        router: &mut R,
        length: Duration,
    ) -> Lap {
        let (begin, burst, clocks) = (Mark::of(flight), flight.burst, ThreadClocks::start());
        loop {
            for _ in 0..BURSTS_PER_CLOCK_READING {
                self.step(flight, router, burst);
            }
            let time = clocks.elapsed();
            if time >= length {
                return Lap { time, lost_core: clocks.lost_of(time), ..flight.lap_since(&begin) };
            }
        }
    }

    /// The clock is read once a burst, to know how many packets are due. What was due at the last look and was not sent is
    /// lost. The schedule stands still while the thread does not have its core: neither does the generator then, and what
    /// it could not offer says nothing about the router.
    fn paced<A: Headers, R: Router>(
        &mut self,
        flight: &mut Flight<'_, A>,
        router: &mut R,
        length: Duration,
        (mut pace, clocks): (Pace, impl Clocks),
    ) -> Lap {
        let (begin, mut core) = (Mark::of(flight), CoreTime::new(clocks));
        let mut now = core.now();
        let mut looked = now;
        while now < length {
            looked = now;
            let due = pace.due(now, flight.burst);
            if due > 0 {
                self.step(flight, router, due);
                pace.sent(due);
            }
            now = core.now();
        }
        let (offered, time) = pace.ended(looked, now);
        *flight.counts.offered.get_or_insert(0) += offered;
        flight.counts.max_lag = flight.counts.max_lag.max(Some(pace.max_lag()));
        let lost_core = core.lost();
        Lap { offered, time: time + lost_core, lost_core, ..flight.lap_since(&begin) }
    }

    /// One burst of `count` packets all the way. Its slots are free again afterwards.
    fn step<A: Headers, R: Router>(&mut self, flight: &mut Flight<'_, A>, router: &mut R, count: usize) {
        self.free.take(&mut self.burst, count);
        flight.counts.sent += self.burst.len() as u64;
        flight.counts.sent_bytes += flight.generator.fill(&mut self.burst);
        self.to_router.0.send(&mut self.burst);
        self.to_router.1.receive(&mut self.burst, count);
        router.route(&mut self.burst, &mut self.forwarded, &mut self.dropped);
        self.to_router.1.recycle(&mut self.dropped);
        for forwarded in self.forwarded.iter_mut().filter(|burst| !burst.is_empty()) {
            self.from_router.0.send(forwarded);
        }
        // Packets that the router left in the burst count as lost; their slots are used again.
        self.free.recycle(&mut self.burst);
        flight.counts.dropped += self.to_router.0.reclaim(&mut self.burst) as u64;
        self.free.recycle(&mut self.burst);
        self.from_router.1.receive(&mut self.burst, count);
        flight.sink.receive(&self.burst);
        self.free.recycle(&mut self.burst);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use fullview_plane::wire::ethernet::Mac;
    use fullview_table::{NextHop, Rib};

    use super::*;
    use crate::traffic::frame::{FrameSize, Macs};
    use crate::traffic::load::Unrouted;
    use crate::traffic::model::Model;

    /// Clocks that move on by the next of these times, in microseconds, at each look; the thread loses its core for what
    /// is beyond `longest` of it.
    struct Scripted {
        steps: RefCell<std::vec::IntoIter<u64>>,
        now: Cell<u64>,
        lost: Cell<u64>,
        longest: u64,
    }

    impl Scripted {
        fn new(steps: impl Into<Vec<u64>>, longest: u64) -> Self {
            let steps = RefCell::new(steps.into().into_iter());
            Scripted { steps, now: Cell::new(0), lost: Cell::new(0), longest }
        }
    }

    impl Clocks for Scripted {
        fn elapsed(&self) -> Duration {
            let step = self.steps.borrow_mut().next().expect("the lap ended before");
            self.now.set(self.now.get() + step);
            self.lost.set(self.lost.get() + step.saturating_sub(self.longest));
            Duration::from_micros(self.now.get())
        }

        fn lost_of(&self, _elapsed: Duration) -> Duration {
            Duration::from_micros(self.lost.get())
        }
    }

    /// A lap of 105 microseconds at a million packets per second, in bursts of at most 16.
    fn lap(clocks: Scripted) -> Lap {
        let mut rib = Rib::<u32>::default();
        rib.announce("198.18.0.0/15".parse().unwrap(), NextHop(1));
        let flows = Model::One.flows(&rib, 1).unwrap();
        let macs = Macs { source: Mac([2; 6]), destination: Mac([4; 6]) };
        let config = LoadConfig {
            burst: 16,
            pps: Some(1e6),
            ..LoadConfig::new(FrameSize::Smallest, macs, Vec::new())
        };
        let (frames, mut arena) = (frames::<u32>(&config).unwrap(), Arena::new(config.packets));
        let mut bed = Bed::new(&mut arena, &frames, 1);
        let mut flight = Flight::new(&config, &flows, &frames, Passage::Direct).unwrap();
        let pace = Pace::new(1e6).unwrap();
        bed.paced(&mut flight, &mut Unrouted, Duration::from_micros(105), (pace, clocks))
    }

    fn expected([offered, received]: [u64; 2], [time, lost_core]: [u64; 2]) -> Lap {
        let [time, lost_core] = [time, lost_core].map(Duration::from_micros);
        Lap { offered, sent: received, received, time, lost_core }
    }

    #[test]
    fn a_lap_that_sends_all_that_is_due_has_the_rate_of_its_schedule() {
        let steady = [0, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10];
        assert_eq!(lap(Scripted::new(steady, 10)), expected([101, 101], [101, 0]));
    }

    #[test]
    fn the_schedule_stands_still_while_the_thread_does_not_have_its_core() {
        let lost_in_between = [0, 10, 10, 5_010, 10, 10, 10, 10, 10, 10, 10, 10];
        assert_eq!(lap(Scripted::new(lost_in_between, 10)), expected([101, 101], [5_101, 5_000]));
        let lost_at_the_end = [0, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 7_010];
        assert_eq!(lap(Scripted::new(lost_at_the_end, 10)), expected([101, 101], [7_101, 7_000]));
    }

    #[test]
    fn what_a_slow_router_leaves_unsent_until_the_end_is_offered() {
        assert_eq!(lap(Scripted::new([0, 50, 50, 50], 50)), expected([151, 33], [150, 0]));
    }
}
