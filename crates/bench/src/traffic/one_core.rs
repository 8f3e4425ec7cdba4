//! Everything in one thread, run to completion: each burst goes from the generator through the router to the receiver
//! before the next one starts.
//!
//! The steadiest test bed there is on a shared machine: no placement of cores, no waiting, no loss in rings. Several
//! routers take turns on one [`Bed`], whose packet memory all of them share. The rate of a [`Flight`] includes generator
//! and receiver; the same flight with [`super::load::Unrouted`] in place of a router shows what those cost.

use std::time::{Duration, Instant};

use fullview_plane::burst::{Arena, Burst};
use fullview_plane::port::memory::{Receiver, Sender, link};

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

    /// Whether packets are sent by a schedule.
    pub fn is_paced(&self) -> bool {
        self.pps.is_some()
    }

    /// Everything counted so far.
    pub fn result(&self) -> LoadResult {
        LoadResult { received: self.sink.tally(), ..self.counts.clone() }
    }

    fn lap_since(&self, before: &Mark) -> Lap {
        Lap {
            offered: self.counts.sent - before.sent,
            sent: self.counts.sent - before.sent,
            received: self.sink.packets() - before.received,
            time: before.started.elapsed(),
        }
    }
}

/// The beginning of a lap.
struct Mark {
    started: Instant,
    sent: u64,
    received: u64,
}

impl Mark {
    fn of<A: Headers>(flight: &Flight<'_, A>) -> Self {
        Mark { started: Instant::now(), sent: flight.counts.sent, received: flight.sink.packets() }
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
            Some(pace) => self.paced(flight, router, length, pace),
        }
    }

    fn unpaced<A: Headers, R: Router>(
        &mut self,
        flight: &mut Flight<'_, A>,
        router: &mut R,
        length: Duration,
    ) -> Lap {
        let (begin, burst) = (Mark::of(flight), flight.burst);
        loop {
            for _ in 0..BURSTS_PER_CLOCK_READING {
                self.step(flight, router, burst);
            }
            if begin.started.elapsed() >= length {
                return flight.lap_since(&begin);
            }
        }
    }

    /// The clock is read once a burst, to know how many packets are due. What was due at the last look and was not sent is
    /// lost; what became due during the last burst is not.
    fn paced<A: Headers, R: Router>(
        &mut self,
        flight: &mut Flight<'_, A>,
        router: &mut R,
        length: Duration,
        mut pace: Pace,
    ) -> Lap {
        let begin = Mark::of(flight);
        let mut now = begin.started.elapsed();
        let mut looked = now;
        while now < length {
            looked = now;
            let due = pace.due(now, flight.burst);
            if due > 0 {
                self.step(flight, router, due);
                pace.sent(due);
            }
            now = begin.started.elapsed();
        }
        let offered = pace.scheduled(looked);
        *flight.counts.offered.get_or_insert(0) += offered;
        flight.counts.max_lag = flight.counts.max_lag.max(Some(pace.max_lag()));
        Lap { offered, time: now, ..flight.lap_since(&begin) }
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
