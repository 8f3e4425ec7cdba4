//! What workers and programs in the kernel have counted, readable while they work.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use fullview_plane::counters::Counters;
use fullview_plane::report_time::ReportTime;
use fullview_plane::worker::PublishedCounters;

use super::engine_choice::EngineInUse;
use super::error::DaemonError;
use super::punts::PuntCounts;

/// The counters of a data path.
pub trait PathCounts {
    /// What each worker has counted, or each processor on which a program in the kernel runs.
    fn snapshots(&self) -> Result<Vec<CountSnapshot>, DaemonError>;

    /// What forwards the packets that come in by a port.
    fn engine(&self, _port: u16) -> EngineInUse {
        EngineInUse::threads("there is no kernel behind this router")
    }

    /// What a program in the kernel has counted. Empty if workers forward.
    fn program(&self) -> Result<NamedCounts, DaemonError> {
        Ok(Vec::new())
    }

    /// The packets that the kernel got instead of being forwarded, and those that it did not get because they were too many. Empty
    /// without a kernel.
    fn punts(&self) -> Result<PuntCounts, DaemonError> {
        Ok(PuntCounts::new())
    }

    /// Frames that a program in the kernel did not forward: for each interface they came in by, the count of each reason.
    fn program_by_interface(&self) -> Result<Vec<NamedCounts>, DaemonError> {
        Ok(Vec::new())
    }
}

/// A data path that another process can take over while it forwards. Workers cannot be: they end, and others begin.
pub trait HandOver: PathCounts {
    /// The link of a port's program, and the index of its interface. From now on the path leaves the links as they are, and only
    /// keeps its tables up to date.
    fn hand_over(&mut self, _port: u16) -> Result<Option<(u32, OwnedFd)>, DaemonError> {
        Ok(None)
    }

    /// The other process failed: the path is as it was.
    fn take_back(&mut self) -> Result<(), DaemonError> {
        Ok(())
    }

    /// Waits until the counters are final, as the other process forwards.
    fn settle(&mut self) -> Result<(), DaemonError> {
        Ok(())
    }
}

/// Counts, each with the name of what it counts.
pub type NamedCounts = Vec<(&'static str, u64)>;

/// What a worker has counted up to now.
#[derive(Clone)]
pub struct CountSnapshot {
    pub name: String,
    pub counters: Counters,
    /// How long the worker was not asleep for want of packets.
    pub awake: Duration,
    pub age: Duration,
}

impl CountSnapshot {
    /// What workers counted that have ended.
    pub fn of_ended(counters: Counters) -> CountSnapshot {
        CountSnapshot::timeless("ended".into(), counters)
    }

    /// A snapshot of something that has no times, such as a processor.
    pub fn timeless(name: String, counters: Counters) -> CountSnapshot {
        CountSnapshot { name, counters, awake: Duration::ZERO, age: Duration::ZERO }
    }
}

/// The sum over all snapshots.
pub fn total(snapshots: &[CountSnapshot]) -> Counters {
    let mut total = Counters::new(0);
    snapshots.iter().for_each(|snapshot| total.add(&snapshot.counters));
    total
}

/// The state that a worker's thread publishes. The worker writes it and other threads read it; neither waits.
pub struct WorkerState {
    began: Instant,
    /// In nanoseconds.
    asleep: AtomicU64,
    published: OnceLock<Arc<PublishedCounters>>,
}

impl Default for WorkerState {
    fn default() -> WorkerState {
        WorkerState { began: Instant::now(), asleep: AtomicU64::new(0), published: OnceLock::new() }
    }
}

impl WorkerState {
    /// Sets where the worker publishes its counters.
    pub fn publish(&self, published: Arc<PublishedCounters>) {
        // The worker's thread sets it once, as it begins.
        let _ = self.published.set(published);
    }

    /// Runs `sleep`, and adds the time it took to the time asleep.
    pub fn asleep(&self, sleep: impl FnOnce()) {
        let began = Instant::now();
        sleep();
        self.asleep.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }

    /// When the worker's last round began, if it has begun.
    pub fn round_began(&self) -> Option<ReportTime> {
        self.published.get().map(|published| published.round_began())
    }

    pub fn snapshot(&self, number: usize) -> CountSnapshot {
        let counters =
            self.published.get().map_or_else(|| Counters::new(0), |published| published.counters());
        let (age, asleep) = (self.began.elapsed(), Duration::from_nanos(self.asleep.load(Ordering::Relaxed)));
        CountSnapshot { name: number.to_string(), counters, awake: age.saturating_sub(asleep), age }
    }
}
