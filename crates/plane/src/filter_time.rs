//! The time of a filter.

use rustix::time::{ClockId, clock_gettime};

/// The time of packets advances in steps of so many milliseconds. Timeouts are whole seconds, and pf itself counts in
/// seconds; a flow asks for its states once a step.
const RESOLUTION: u64 = 128;

/// The step in which a time lies, in milliseconds.
pub(crate) fn step_of(milliseconds: u64) -> u64 {
    milliseconds - milliseconds % RESOLUTION
}

/// The coarse clock: reading it costs a few nanoseconds a burst, and timeouts are whole seconds.
pub(crate) fn milliseconds() -> u64 {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / NANOS_PER_MILLISECOND
}

pub(crate) const NANOS_PER_MILLISECOND: u64 = 1_000_000;
