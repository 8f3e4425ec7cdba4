//! What a worker has counted, where others can read it while it works.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use fullview_plane::counters::Counters;
use fullview_plane::worker::PublishedCounters;

/// Who forwards, and counts what.
pub trait Counting {
    /// What each worker has counted, or each processor in a program in the kernel.
    fn snapshots(&self) -> anyhow::Result<Vec<Snapshot>>;

    /// What a program in the kernel has counted, by name.
    fn named(&self) -> anyhow::Result<Named> {
        Ok(Vec::new())
    }

    /// What it did not forward of what came in by each interface, by reason.
    fn named_by_interface(&self) -> anyhow::Result<Vec<Named>> {
        Ok(Vec::new())
    }
}

/// Counts and what they are of.
pub type Named = Vec<(&'static str, u64)>;

/// What a worker has counted up to now.
#[derive(Clone)]
pub struct Snapshot {
    pub name: String,
    pub counters: Counters,
    /// Not asleep for want of packets.
    pub awake: Duration,
    pub age: Duration,
}

impl Snapshot {
    /// Of workers that have ended.
    pub fn of_earlier(counters: Counters) -> Snapshot {
        Snapshot::timeless("ended".into(), counters)
    }

    /// Of what is not awake or asleep by itself.
    pub fn timeless(name: String, counters: Counters) -> Snapshot {
        Snapshot { name, counters, awake: Duration::ZERO, age: Duration::ZERO }
    }
}

/// Written by the worker, read by others; nobody waits for anybody.
pub struct Shown {
    began: Instant,
    /// In nanoseconds.
    asleep: AtomicU64,
    published: OnceLock<Arc<PublishedCounters>>,
}

impl Default for Shown {
    fn default() -> Shown {
        Shown { began: Instant::now(), asleep: AtomicU64::new(0), published: OnceLock::new() }
    }
}

impl Shown {
    /// Where the worker publishes its counters.
    pub fn show(&self, published: Arc<PublishedCounters>) {
        // It is told once, by the worker's thread as it begins.
        let _ = self.published.set(published);
    }

    /// Sleeps, and counts how long.
    pub fn asleep(&self, sleep: impl FnOnce()) {
        let began = Instant::now();
        sleep();
        self.asleep.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }

    pub fn snapshot(&self, number: usize) -> Snapshot {
        let counters =
            self.published.get().map_or_else(|| Counters::new(0), |published| published.counters());
        let (age, asleep) = (self.began.elapsed(), Duration::from_nanos(self.asleep.load(Ordering::Relaxed)));
        Snapshot { name: number.to_string(), counters, awake: age.saturating_sub(asleep), age }
    }
}
