//! What a worker has counted, where others can read it while it works.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fullview_plane::counters::Counters;

/// A worker shows what it has counted after so many rounds, and before it sleeps.
const ROUNDS: u32 = 256;

/// What a worker showed last.
#[derive(Clone)]
pub struct Snapshot {
    pub name: String,
    pub counters: Counters,
    /// Not asleep for want of packets.
    pub awake: Duration,
    pub age: Duration,
}

impl Snapshot {
    pub fn new(name: String) -> Snapshot {
        Snapshot { name, counters: Counters::new(0), awake: Duration::ZERO, age: Duration::ZERO }
    }
}

/// The readers' end.
#[derive(Clone)]
pub struct Shown(Arc<Mutex<Snapshot>>);

impl Shown {
    pub fn new(name: String) -> Shown {
        Shown(Arc::new(Mutex::new(Snapshot::new(name))))
    }

    pub fn get(&self) -> Snapshot {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The worker's end.
    pub fn begin(&self) -> Show {
        Show { shown: self.clone(), began: Instant::now(), asleep: Duration::ZERO, rounds: 0 }
    }
}

/// The worker's end.
pub struct Show {
    shown: Shown,
    began: Instant,
    asleep: Duration,
    rounds: u32,
}

impl Show {
    /// To be called once a round.
    #[inline]
    pub fn round(&mut self, counters: &Counters) {
        self.rounds += 1;
        if self.rounds >= ROUNDS {
            self.show(counters);
        }
    }

    /// Sleeps, and notes how long.
    pub fn sleep(&mut self, counters: &Counters, sleep: impl FnOnce()) {
        self.show(counters);
        let began = Instant::now();
        sleep();
        self.asleep += began.elapsed();
    }

    /// Never waits: while somebody reads, the worker goes on and shows more the next time.
    fn show(&mut self, counters: &Counters) {
        self.rounds = 0;
        let Ok(mut shown) = self.shown.0.try_lock() else { return };
        shown.counters.clone_from(counters);
        shown.age = self.began.elapsed();
        shown.awake = shown.age.saturating_sub(self.asleep);
    }
}
