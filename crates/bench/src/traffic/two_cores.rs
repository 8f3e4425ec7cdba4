//! Generator and receiver on one core, the router on another.
//!
//! Nearer to a real test bed, and on a shared machine less steady: what passes between the cores costs more or less
//! with every move of the hypervisor. The generator offers what there are free slots for; a router that falls behind
//! slows it down instead of losing packets, which shows as a lower rate and, when paced, as lag.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::placement::{Placement, Role};
use fullview_plane::burst::{Arena, Burst};
use fullview_plane::port::memory::{Receiver, Sender, link};

use super::check::Passage;
use super::flow::FlowSet;
use super::frame::{Frames, Headers};
use super::free::Free;
use super::generator::Generator;
use super::load::{
    BURSTS_PER_CLOCK_READING, LoadConfig, LoadError, LoadResult, Router, Window, frames, passage, run_ends,
};
use super::pace::Pace;
use super::sink::Sink;

/// Offers the flows to the router, which runs in a thread of its own, for the length of the window. With
/// [`super::load::Unrouted`] as the router it measures what the test bed itself can do.
pub fn two_cores<A: Headers, R: Router + Send>(
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
        let (mut ends, links) = connect(config, flows, &frames, passage::<R>(config), &mut arena);
        let (stop, start) = (AtomicBool::new(false), Barrier::new(2));
        thread::scope(|scope| {
            let serve = || serve_pinned(links, router, config.placement, (&start, &stop));
            let thread = thread::Builder::new().name("router".into()).spawn_scoped(scope, serve);
            let thread = thread.map_err(LoadError::Thread)?;
            start.wait();
            let _ended = Ended(&stop);
            let result = ends.run(window, pace, &stop);
            thread.join().map_err(|_| LoadError::Panicked)??;
            Ok(result)
        })
    })
}

/// Stops the router's thread when generator and receiver have ended, also after a panic: the scope waits for that thread.
struct Ended<'s>(&'s AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// The router's thread. It owns its links: when it ends, for whatever reason, the other side sees them abandoned.
fn serve_pinned<R: Router>(
    mut links: Links<'_>,
    router: &mut R,
    placement: Option<Placement>,
    (start, stop): (&Barrier, &AtomicBool),
) -> Result<(), LoadError> {
    let pinned = placement.map_or(Ok(()), |placement| placement.pin(Role::Router));
    start.wait();
    pinned?;
    links.serve(router, stop);
    Ok(())
}

/// The router's side. Slots of packets it dropped go back to where they came from; those of packets it forwarded are
/// free when the receiver has seen them.
struct Links<'a> {
    arriving: Receiver<'a>,
    forwarded: Sender<'a>,
    /// A burst for each egress port, by port number.
    egress: Vec<Burst<'a>>,
    burst: usize,
}

impl Links<'_> {
    /// Routes what arrives until it is stopped and nothing is left.
    fn serve<R: Router>(&mut self, router: &mut R, stop: &AtomicBool) {
        let (mut burst, mut dropped) = (Burst::new(), Burst::new());
        let mut idle = Idle::default();
        loop {
            // Read before the ring: what was sent before the flag was set is then seen in the ring.
            let stopping = stop.load(Ordering::Acquire);
            self.arriving.receive(&mut burst, self.burst);
            if burst.is_empty() {
                if stopping {
                    return;
                }
                idle.wait();
                continue;
            }
            idle.over();
            router.route(&mut burst, &mut self.egress, &mut dropped);
            for forwarded in self.egress.iter_mut().filter(|burst| !burst.is_empty()) {
                self.forwarded.send(forwarded);
            }
            self.arriving.recycle(&mut dropped);
        }
    }
}

/// Waiting for the other core: at first by spinning, which costs no time to wake from, then by giving the core away
/// each time, so that the two threads get on even where they have to share one.
#[derive(Default)]
struct Idle(u32);

impl Idle {
    const SPINS: u32 = 10_000;

    fn wait(&mut self) {
        if self.0 < Self::SPINS {
            self.0 += 1;
            std::hint::spin_loop();
        } else {
            thread::yield_now();
        }
    }

    fn over(&mut self) {
        self.0 = 0;
    }
}

/// The other side: generator, receiver and the free slots between them.
struct Ends<'a, 'f, A> {
    generator: Generator<'f, A>,
    sink: Sink<'f, A>,
    free: Free<'a>,
    departing: Sender<'a>,
    forwarded: Receiver<'a>,
    buffer: Burst<'a>,
    burst: usize,
    counts: Counts,
    idle: Idle,
}

#[derive(Default)]
struct Counts {
    sent: u64,
    sent_bytes: u64,
    dropped: u64,
}

fn connect<'a, 'f, A: Headers>(
    config: &'f LoadConfig,
    flows: &'f FlowSet<A>,
    frames: &'f Frames<A>,
    passage: Passage<'f>,
    arena: &'a mut Arena,
) -> (Ends<'a, 'f, A>, Links<'a>) {
    let free = Free::new(arena, frames);
    let (departing, arriving) = link(config.packets);
    let (sender, receiver) = link(config.packets);
    let links = Links { arriving, forwarded: sender, egress: config.egress(), burst: config.burst };
    let ends = Ends {
        generator: Generator::new(flows, frames, config.ingress_port),
        sink: Sink::new(flows, frames, passage, config.check_one_in),
        free,
        departing,
        forwarded: receiver,
        buffer: Burst::new(),
        burst: config.burst,
        counts: Counts::default(),
        idle: Idle::default(),
    };
    (ends, links)
}

/// The schedule and the time it counts from.
struct Schedule {
    pace: Pace,
    origin: Instant,
}

impl<A: Headers> Ends<'_, '_, A> {
    fn run(&mut self, window: &Window<'_>, pace: Option<Pace>, stop: &AtomicBool) -> LoadResult {
        let mut schedule = pace.map(|pace| Schedule { pace, origin: Instant::now() });
        self.slice(window, window.warm_up, &mut schedule);
        let started = Instant::now();
        let slices = (0..window.slices).map_while(|_| self.slice(window, window.slice, &mut schedule));
        let rates: Vec<f64> = slices.collect();
        let (elapsed, interrupted) = (started.elapsed(), rates.len() < window.slices);
        let offered = schedule.as_ref().map(|s| s.pace.scheduled(s.origin.elapsed()));
        self.drain(window.drain);
        stop.store(true, Ordering::Release);
        let max_lag = schedule.map(|s| s.pace.max_lag());
        LoadResult { rates, elapsed, offered, max_lag, interrupted, ..self.result() }
    }

    /// Packets received per second over a stretch of time; `None` if it was cut short.
    fn slice(
        &mut self,
        window: &Window<'_>,
        length: Duration,
        schedule: &mut Option<Schedule>,
    ) -> Option<f64> {
        let (started, before) = (Instant::now(), self.sink.packets());
        loop {
            match schedule {
                Some(schedule) => self.scheduled(schedule),
                None => (0..BURSTS_PER_CLOCK_READING).for_each(|_| self.unscheduled()),
            }
            if window.stopped() || self.departing.is_abandoned() {
                return None;
            }
            let time = started.elapsed();
            if time >= length {
                return Some((self.sink.packets() - before) as f64 / time.as_secs_f64());
            }
        }
    }

    /// A whole burst, if there is one free; and what has come back.
    fn unscheduled(&mut self) {
        if self.free.len() >= self.burst {
            self.offer(self.burst);
        }
        self.collect();
    }

    /// What is due, as far as slots are free; and what has come back.
    fn scheduled(&mut self, schedule: &mut Schedule) {
        let due = schedule.pace.due(schedule.origin.elapsed(), self.burst);
        if due > 0 {
            schedule.pace.sent(self.offer(due));
        }
        self.collect();
    }

    fn offer(&mut self, count: usize) -> usize {
        self.free.take(&mut self.buffer, count);
        let sent = self.buffer.len();
        self.counts.sent += sent as u64;
        self.counts.sent_bytes += self.generator.fill(&mut self.buffer);
        self.departing.send(&mut self.buffer);
        sent
    }

    fn collect(&mut self) {
        let before = self.free.len();
        self.forwarded.receive(&mut self.buffer, self.burst);
        self.sink.receive(&self.buffer);
        self.free.recycle(&mut self.buffer);
        self.counts.dropped += self.departing.reclaim(&mut self.buffer) as u64;
        self.free.recycle(&mut self.buffer);
        if self.free.len() > before { self.idle.over() } else { self.idle.wait() }
    }

    /// Waits for the packets still on their way, but no longer than `limit`.
    fn drain(&mut self, limit: Duration) {
        let started = Instant::now();
        while self.are_packets_out() && started.elapsed() < limit && !self.departing.is_abandoned() {
            self.collect();
        }
    }

    fn are_packets_out(&self) -> bool {
        self.sink.packets() + self.counts.dropped < self.counts.sent
    }

    fn result(&self) -> LoadResult {
        LoadResult {
            sent: self.counts.sent,
            sent_bytes: self.counts.sent_bytes,
            dropped: self.counts.dropped,
            received: self.sink.tally(),
            ..LoadResult::default()
        }
    }
}
