//! Everything in one thread, run to completion: each burst goes from the generator through the router to the receiver
//! before the next one starts.
//!
//! The steadiest test bed there is on a shared machine: no placement of cores, no waiting, no loss in rings. Its rate
//! includes generator and receiver; so the same loop without the router runs in turns with it, a few milliseconds
//! each, and whatever slows the machine down hits both. [`super::load::LoadResult::router_rates`] takes the one from
//! the other.

use std::time::{Duration, Instant};

use fullview_plane::burst::{Arena, Burst};
use fullview_plane::port::memory::{Receiver, Sender, link};

use super::check::Passage;
use super::flow::FlowSet;
use super::frame::{Frames, Headers};
use super::free::Free;
use super::generator::Generator;
use super::load::{
    BURSTS_PER_CLOCK_READING, LoadConfig, LoadError, LoadResult, Router, Unrouted, Window, frames, passage,
    run_ends,
};
use super::pace::Pace;
use super::sink::Sink;

/// Offers the flows to the router for the length of the window.
pub fn one_core<A: Headers, R: Router + Send>(
    config: &LoadConfig,
    flows: &FlowSet<A>,
    router: &mut R,
    window: &Window<'_>,
) -> Result<LoadResult, LoadError> {
    config.validate()?;
    window.validate()?;
    let (frames, pace) = (frames(config)?, config.pace()?);
    run_ends(config.placement, || {
        let mut arena = Arena::new(config.packets);
        let mut bench = Bench::new(config, flows, &frames, passage::<R>(config), &mut arena);
        Ok(match pace {
            Some(pace) => bench.run_paced(router, window, pace),
            None => bench.run_unpaced(router, window, config.control),
        })
    })
}

/// Sends every packet of the set through the router once; all of them are checked, whatever the configured share is.
pub fn verify<A: Headers, R: Router>(
    config: &LoadConfig,
    flows: &FlowSet<A>,
    router: &mut R,
) -> Result<LoadResult, LoadError> {
    let config = LoadConfig { check_one_in: std::num::NonZeroU32::MIN, ..config.clone() };
    config.validate()?;
    let frames = frames(&config)?;
    let mut arena = Arena::new(config.packets);
    let mut bench = Bench::new(&config, flows, &frames, passage::<R>(&config), &mut arena);
    let mut left = flows.packets().len();
    while left > 0 {
        let count = left.min(config.burst);
        bench.path.step(&mut bench.generator, &mut bench.routed, router, count);
        left -= count;
    }
    Ok(bench.result(Laps::default()))
}

/// Packets sent and received in a stretch of time.
#[derive(Clone, Copy, Default)]
struct Lap {
    sent: u64,
    packets: u64,
    time: Duration,
}

impl Lap {
    fn add(&mut self, other: Lap) {
        self.sent += other.sent;
        self.packets += other.packets;
        self.time += other.time;
    }

    fn rate(&self) -> f64 {
        self.packets as f64 / self.time.as_secs_f64()
    }

    fn sent_rate(&self) -> f64 {
        self.sent as f64 / self.time.as_secs_f64()
    }
}

/// The slices of a run, as far as it came.
#[derive(Default)]
struct Laps {
    slices: usize,
    rates: Vec<f64>,
    sent_rates: Vec<f64>,
    loop_rates: Vec<f64>,
    elapsed: Duration,
}

impl Laps {
    fn new(window: &Window<'_>) -> Self {
        let room = || Vec::with_capacity(window.slices);
        let (rates, sent_rates, loop_rates) = (room(), room(), room());
        Laps { slices: window.slices, rates, sent_rates, loop_rates, elapsed: Duration::ZERO }
    }

    /// Runs the next slice, if there is one left.
    fn next<T>(&self, slice: impl FnOnce() -> Option<T>) -> Option<T> {
        if self.are_incomplete() { slice() } else { None }
    }

    /// Whether there are fewer rates than slices: at the end that means that the run was stopped.
    fn are_incomplete(&self) -> bool {
        self.rates.len() < self.slices
    }
}

/// One way from generator to receiver, with its own counts.
struct CountedPath<'f, A> {
    sink: Sink<'f, A>,
    sent: u64,
    sent_bytes: u64,
    dropped: u64,
}

impl<'f, A: Headers> CountedPath<'f, A> {
    fn new(config: &LoadConfig, flows: &'f FlowSet<A>, frames: &'f Frames<A>, passage: Passage<'f>) -> Self {
        let sink = Sink::new(flows, frames, passage, config.check_one_in);
        CountedPath { sink, sent: 0, sent_bytes: 0, dropped: 0 }
    }
}

/// Packet memory, and the links a burst goes through.
struct Path<'a> {
    free: Free<'a>,
    to_router: (Sender<'a>, Receiver<'a>),
    from_router: (Sender<'a>, Receiver<'a>),
    burst: Burst<'a>,
    /// By port. Each is sent by itself, as by separate ports, but into one link; the port number in the slot keeps the
    /// packets of different ports apart.
    forwarded: Vec<Burst<'a>>,
    dropped: Burst<'a>,
}

impl<'a> Path<'a> {
    fn new(free: Free<'a>, forwarded: Vec<Burst<'a>>) -> Self {
        let packets = free.len();
        let (to_router, from_router) = (link(packets), link(packets));
        let (burst, dropped) = (Burst::new(), Burst::new());
        Path { free, to_router, from_router, burst, forwarded, dropped }
    }

    /// One burst of `count` packets all the way. Its slots are free again afterwards.
    fn step<A: Headers, R: Router>(
        &mut self,
        generator: &mut Generator<'_, A>,
        arm: &mut CountedPath<'_, A>,
        router: &mut R,
        count: usize,
    ) {
        self.free.take(&mut self.burst, count);
        arm.sent += self.burst.len() as u64;
        arm.sent_bytes += generator.fill(&mut self.burst);
        self.to_router.0.send(&mut self.burst);
        self.to_router.1.receive(&mut self.burst, count);
        router.route(&mut self.burst, &mut self.forwarded, &mut self.dropped);
        self.to_router.1.recycle(&mut self.dropped);
        for forwarded in self.forwarded.iter_mut().filter(|burst| !burst.is_empty()) {
            self.from_router.0.send(forwarded);
        }
        // Packets that the router left in the burst count as lost; their slots are used again.
        self.free.recycle(&mut self.burst);
        arm.dropped += self.to_router.0.reclaim(&mut self.burst) as u64;
        self.free.recycle(&mut self.burst);
        self.from_router.1.receive(&mut self.burst, count);
        arm.sink.receive(&self.burst);
        self.free.recycle(&mut self.burst);
    }
}

/// The test bed: one generator, and the two ways its packets can go.
struct Bench<'a, 'f, A> {
    burst: usize,
    generator: Generator<'f, A>,
    path: Path<'a>,
    routed: CountedPath<'f, A>,
    direct: CountedPath<'f, A>,
}

impl<'a, 'f, A: Headers> Bench<'a, 'f, A> {
    fn new(
        config: &'f LoadConfig,
        flows: &'f FlowSet<A>,
        frames: &'f Frames<A>,
        passage: Passage<'f>,
        arena: &'a mut Arena,
    ) -> Self {
        Bench {
            burst: config.burst,
            generator: Generator::new(flows, frames, config.ingress_port),
            path: Path::new(Free::new(arena, frames), config.egress()),
            routed: CountedPath::new(config, flows, frames, passage),
            direct: CountedPath::new(config, flows, frames, Passage::Direct),
        }
    }

    fn run_unpaced<R: Router>(&mut self, router: &mut R, window: &Window<'_>, control: bool) -> LoadResult {
        self.slice(router, window, window.warm_up, control);
        let (started, mut laps) = (Instant::now(), Laps::new(window));
        while let Some((routed, direct)) = laps.next(|| self.slice(router, window, window.slice, control)) {
            laps.rates.push(routed.rate());
            laps.sent_rates.push(routed.sent_rate());
            laps.loop_rates.extend(control.then(|| direct.rate()));
        }
        laps.elapsed = started.elapsed();
        let control = control.then(|| self.direct.sink.tally());
        LoadResult { control, interrupted: laps.are_incomplete(), ..self.result(laps) }
    }

    /// A stretch of time, with control shared by the two arms in turns; `None` if it was cut short.
    fn slice<R: Router>(
        &mut self,
        router: &mut R,
        window: &Window<'_>,
        length: Duration,
        control: bool,
    ) -> Option<(Lap, Lap)> {
        let (mut routed, mut direct) = (Lap::default(), Lap::default());
        let part = (self.burst, if control { window.part.min(length) } else { length });
        while routed.time + direct.time < length {
            if window.stopped() {
                return None;
            }
            routed.add(self.path.lap(&mut self.generator, &mut self.routed, router, part));
            if control {
                direct.add(self.path.lap(&mut self.generator, &mut self.direct, &mut Unrouted, part));
            }
        }
        Some((routed, direct))
    }

    fn run_paced<R: Router>(&mut self, router: &mut R, window: &Window<'_>, mut pace: Pace) -> LoadResult {
        let origin = Instant::now();
        self.paced(router, window, &mut pace, (origin, window.warm_up));
        let (started, mut laps) = (Instant::now(), Laps::new(window));
        while let Some(lap) = laps.next(|| self.paced(router, window, &mut pace, (origin, window.slice))) {
            laps.rates.push(lap.rate());
            laps.sent_rates.push(lap.sent_rate());
        }
        laps.elapsed = started.elapsed();
        let offered = Some(pace.scheduled(origin.elapsed()));
        let (max_lag, interrupted) = (Some(pace.max_lag()), laps.are_incomplete());
        LoadResult { offered, max_lag, interrupted, ..self.result(laps) }
    }

    /// Sends what is due, for a stretch of time; `None` if it was cut short. The clock is read once a burst, to
    /// know how many packets are due.
    fn paced<R: Router>(
        &mut self,
        router: &mut R,
        window: &Window<'_>,
        pace: &mut Pace,
        (origin, length): (Instant, Duration),
    ) -> Option<Lap> {
        let (started, before, sent) = (Instant::now(), self.routed.sink.packets(), self.routed.sent);
        let mut now = started;
        while now - started < length {
            if window.stopped() {
                return None;
            }
            let due = pace.due(now - origin, self.burst);
            if due > 0 {
                self.path.step(&mut self.generator, &mut self.routed, router, due);
                pace.sent(due);
            }
            now = Instant::now();
        }
        let (sent, packets) = (self.routed.sent - sent, self.routed.sink.packets() - before);
        Some(Lap { sent, packets, time: now - started })
    }

    fn result(&self, laps: Laps) -> LoadResult {
        LoadResult {
            sent: self.routed.sent,
            sent_bytes: self.routed.sent_bytes,
            dropped: self.routed.dropped,
            received: self.routed.sink.tally(),
            rates: laps.rates,
            sent_rates: laps.sent_rates,
            loop_rates: laps.loop_rates,
            elapsed: laps.elapsed,
            ..LoadResult::default()
        }
    }
}

impl Path<'_> {
    /// Bursts of that many packets, one after the other, for about that long.
    fn lap<A: Headers, R: Router>(
        &mut self,
        generator: &mut Generator<'_, A>,
        arm: &mut CountedPath<'_, A>,
        router: &mut R,
        (burst, length): (usize, Duration),
    ) -> Lap {
        let (started, before, sent) = (Instant::now(), arm.sink.packets(), arm.sent);
        loop {
            for _ in 0..BURSTS_PER_CLOCK_READING {
                self.step(generator, arm, router, burst);
            }
            let time = started.elapsed();
            if time >= length {
                return Lap { sent: arm.sent - sent, packets: arm.sink.packets() - before, time };
            }
        }
    }
}
