//! Two threads on two cores: their placement, the distance of the cores, and whether the threads had their cores.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Pins this thread to a core, if one is given.
pub fn pin(core: Option<&usize>) {
    if let Some(&id) = core {
        core_affinity::set_for_current(core_affinity::CoreId { id });
    }
}

/// A value on a cache line of its own, and on the next one too, which some processors fetch together with it.
#[repr(align(128))]
#[derive(Default)]
struct Line(AtomicU64);

impl Line {
    fn wait_for(&self, value: u64) {
        while self.0.load(Ordering::Acquire) != value {
            std::hint::spin_loop();
        }
    }
}

/// The number of round trips of a probe, which take a few milliseconds.
const TRIPS: u64 = 10_000;

/// Two cache lines that move between two threads.
#[derive(Default)]
pub struct Distance {
    ping: Line,
    pong: Line,
}

impl Distance {
    /// One side: answers all trips of one probe.
    pub fn echo(&self) {
        let before = self.pong.0.load(Ordering::Relaxed);
        for trip in before + 1..=before + TRIPS {
            self.ping.wait_for(trip);
            self.pong.0.store(trip, Ordering::Release);
        }
    }

    /// The other side: the average time that a cache line takes from one core to the other and back. `there` is called
    /// when the echo has begun.
    pub fn probe(&self, there: impl FnOnce()) -> Duration {
        let first = self.ping.0.load(Ordering::Relaxed) + 1;
        self.trip(first);
        there();
        let start = Instant::now();
        (first + 1..first + TRIPS).for_each(|trip| self.trip(trip));
        start.elapsed() / (TRIPS - 1) as u32
    }

    fn trip(&self, trip: u64) {
        self.ping.0.store(trip, Ordering::Release);
        self.pong.wait_for(trip);
    }
}

/// The time that a thread was ready to run but did not run, as Linux counts it.
pub struct Waiting(Option<PathBuf>);

impl Waiting {
    pub fn of_this_thread() -> Self {
        let thread = std::fs::read_link("/proc/thread-self");
        Waiting(thread.ok().map(|thread| PathBuf::from("/proc").join(thread).join("schedstat")))
    }

    /// The time so far; zero if the system does not count it.
    pub fn so_far(&self) -> Duration {
        let text = self.0.as_ref().and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
        let nanos = text.split(' ').nth(1).and_then(|nanos| nanos.parse().ok());
        Duration::from_nanos(nanos.unwrap_or(0))
    }
}
