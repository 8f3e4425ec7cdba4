//! The time in which a thread has its core, beside the time that passes.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// The processor time of a thread from a moment on.
pub struct CoreClock {
    at_start: Duration,
}

impl CoreClock {
    /// Starts now, in the calling thread.
    pub fn start() -> Self {
        CoreClock { at_start: thread_time() }
    }

    /// The part of `elapsed`, the time since the start by the clock on the wall, in which the thread did not have its
    /// core. What passes between the readings of the two clocks is not part of it.
    pub fn lost_of(&self, elapsed: Duration) -> Duration {
        elapsed.saturating_sub(thread_time().saturating_sub(self.at_start))
    }
}

fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// What [`CoreTime`] reads.
pub trait Clocks {
    /// The time since the start.
    fn elapsed(&self) -> Duration;
    /// See [`CoreClock::lost_of`].
    fn lost_of(&self, elapsed: Duration) -> Duration;
}

/// The clocks of the calling thread.
pub struct ThreadClocks {
    core: CoreClock,
    started: Instant,
}

impl ThreadClocks {
    /// Starts now.
    pub fn start() -> Self {
        let core = CoreClock::start();
        ThreadClocks { core, started: Instant::now() }
    }
}

impl Clocks for ThreadClocks {
    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn lost_of(&self, elapsed: Duration) -> Duration {
        self.core.lost_of(elapsed)
    }
}

/// A clock that stands still while its thread does not have its core.
pub struct CoreTime<C> {
    clocks: C,
    looked: Duration,
    lost: Duration,
}

/// The processor time costs a system call, so it is read only where the thread may have lost its core for as long as a
/// switch to another thread takes: after so much time between two looks.
const GAP: Duration = Duration::from_micros(20);

impl<C: Clocks> CoreTime<C> {
    /// Starts with the clocks.
    pub fn new(clocks: C) -> Self {
        CoreTime { clocks, looked: Duration::ZERO, lost: Duration::ZERO }
    }

    /// The time since the start in which the thread had its core.
    pub fn now(&mut self) -> Duration {
        let elapsed = self.clocks.elapsed();
        if elapsed.saturating_sub(self.looked) > GAP {
            self.lost = self.clocks.lost_of(elapsed);
        }
        self.looked = elapsed;
        elapsed.saturating_sub(self.lost)
    }

    /// The time until the last look in which the thread did not have its core.
    pub fn lost(&self) -> Duration {
        self.lost
    }
}
