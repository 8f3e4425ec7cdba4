//! The reports by which programs in the kernel notice that this process is stopped or hangs.
//!
//! A dead process has no program: the kernel removes it. A stopped process has one that forwards by tables that nothing keeps up
//! to date, or that takes packets for workers that do not run. So the process reports up to which time its tables were
//! complete; when the last report is older than a second, a program passes every packet to the kernel.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A time of the clock that programs in the kernel read too (`CLOCK_MONOTONIC`).
#[derive(Clone, Copy, Debug)]
pub struct ReportTime(Duration);

impl ReportTime {
    /// The present time.
    pub fn now() -> ReportTime {
        let now = clock_gettime(ClockId::Monotonic);
        ReportTime(Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32))
    }

    /// The time in nanoseconds.
    pub(crate) fn nanos(self) -> u64 {
        self.0.as_nanos() as u64
    }

    /// The time as a word of an engine's generation; 0 would mean that there are no reports. The word overflows after 52
    /// days, and the program uses differences.
    pub(crate) fn ticks(self) -> u32 {
        ((self.0.as_nanos() >> 20) as u32).max(1)
    }
}
