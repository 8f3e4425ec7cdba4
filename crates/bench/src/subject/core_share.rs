//! The share of the time during which a run had its cores to itself.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// With a smaller share of the time, other work ran on the core, and the rate measures that work too.
const ENOUGH: f64 = 0.98;

/// The process's time on its cores since a moment, of which `threads` threads are busy without a pause.
pub struct CoreShare {
    wall: Instant,
    on_cores: f64,
    threads: f64,
}

impl CoreShare {
    pub fn start(threads: u8) -> Self {
        CoreShare { wall: Instant::now(), on_cores: process_seconds(), threads: threads.into() }
    }

    /// The share of the time since the start during which the threads had their cores, 0 to 1.
    pub fn share(&self) -> f64 {
        let wanted = self.wall.elapsed().as_secs_f64() * self.threads;
        ((process_seconds() - self.on_cores) / wanted).clamp(0.0, 1.0)
    }

    /// Whether a share leaves the run usable.
    pub fn is_enough(share: f64) -> bool {
        share >= ENOUGH
    }
}

fn process_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
