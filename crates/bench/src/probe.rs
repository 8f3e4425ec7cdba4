//! How far apart two cores are: the time a cache line takes from one to the other and back.
//!
//! In a virtual machine the answer changes while it runs, as the hypervisor moves the virtual cores about, and nothing
//! else shows it. A ring between two cores is worth half as much when they are far, so a measurement on two cores is
//! bracketed by probes.

use std::fmt::{self, Display};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::placement::{PlacementError, pin};

/// Round trips timed together: enough that reading the clock does not count.
const BATCH: u64 = 64;
/// The value that stops the echoing thread.
const STOP: u64 = u64::MAX;
/// Spins before giving the core away, so that a probe ends even where both threads share one.
const SPINS_BEFORE_YIELD: u32 = 1 << 14;

/// The limit between near and far. It lies between the round trips of cores that share a last-level cache (about 100 ns)
/// and of cores that do not (500 ns and more), nearer to the former on a scale of ratios.
pub const NEAR_BELOW_NS: f64 = 200.0;

/// What a probe found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundTrip {
    /// Median over all batches, in nanoseconds.
    pub median_ns: f64,
    /// Round trips made.
    pub count: u64,
}

impl RoundTrip {
    /// Whether the cores are near enough for a measurement on both.
    pub fn is_near(&self) -> bool {
        self.median_ns < NEAR_BELOW_NS
    }
}

impl Display for RoundTrip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let distance = if self.is_near() { "near" } else { "far" };
        write!(f, "{:.0} ns round trip ({distance})", self.median_ns)
    }
}

/// A line of its own, and the next one too, which some processors fetch along with it.
#[repr(align(128))]
struct Line(AtomicU64);

/// Sends a cache line back and forth between two cores for `duration`; 0.1 s is enough.
pub fn probe(first: usize, second: usize, duration: Duration) -> Result<RoundTrip, PlacementError> {
    let (ping, pong) = (Line(AtomicU64::new(0)), Line(AtomicU64::new(0)));
    thread::scope(|scope| {
        let echoing = scope.spawn(|| {
            // Echo even if pinning failed: the other side waits for it.
            let pinned = pin(second);
            echo(&ping, &pong);
            pinned
        });
        let timing = scope.spawn(|| {
            let pinned = pin(first);
            let batches = time_batches(&ping, &pong, duration);
            ping.0.store(STOP, Ordering::Release);
            pinned.map(|()| batches)
        });
        let (batches, pinned) = (timing.join(), echoing.join());
        // Neither thread can panic; if one did, so does this one.
        let pinned = pinned.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let batches = batches.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        pinned.map(|()| summarise(batches))
    })
}

/// Repeats on `pong` what comes on `ping`.
fn echo(ping: &Line, pong: &Line) {
    let mut seen = 0;
    while seen != STOP {
        seen = wait(|| ping.0.load(Ordering::Acquire), |value| value != seen);
        pong.0.store(seen, Ordering::Release);
    }
}

/// Nanoseconds of each batch; at least one, however short the time.
fn time_batches(ping: &Line, pong: &Line, duration: Duration) -> Vec<u64> {
    let begin = Instant::now();
    let mut batches = Vec::new();
    let mut turn = 0;
    while batches.is_empty() || begin.elapsed() < duration {
        let start = Instant::now();
        for _ in 0..BATCH {
            turn += 1;
            ping.0.store(turn, Ordering::Release);
            wait(|| pong.0.load(Ordering::Acquire), |value| value == turn);
        }
        batches.push(start.elapsed().as_nanos() as u64);
    }
    batches
}

fn summarise(mut batches: Vec<u64>) -> RoundTrip {
    batches.sort_unstable();
    let median_ns = batches[batches.len() / 2] as f64 / BATCH as f64;
    RoundTrip { median_ns, count: batches.len() as u64 * BATCH }
}

/// Spins until the value is as wanted.
fn wait(load: impl Fn() -> u64, wanted: impl Fn(u64) -> bool) -> u64 {
    let mut spins = 0;
    loop {
        let value = load();
        if wanted(value) {
            return value;
        }
        spins += 1;
        if spins % SPINS_BEFORE_YIELD == 0 { thread::yield_now() } else { std::hint::spin_loop() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::{Placement, Role};

    #[test]
    fn a_line_goes_back_and_forth_even_on_one_core() {
        let core = Placement::one_core().unwrap().core(Role::Ends);
        let trip = probe(core, core, Duration::from_millis(1)).unwrap();
        assert!(trip.count >= BATCH && trip.median_ns > 0.0, "{trip:?}");
    }

    #[test]
    fn a_core_that_does_not_exist_is_an_error_and_not_a_hang() {
        let core = Placement::one_core().unwrap().core(Role::Ends);
        let missing = 1023;
        for (first, second) in [(core, missing), (missing, core)] {
            let error = probe(first, second, Duration::ZERO).unwrap_err();
            assert_eq!(error, PlacementError::Refused { core: missing });
        }
    }

    #[test]
    fn the_median_tells_near_from_far() {
        let near = summarise(vec![500 * BATCH, 100 * BATCH, 110 * BATCH]);
        assert_eq!((near.median_ns, near.count, near.is_near()), (110.0, 3 * BATCH, true));
        assert_eq!(near.to_string(), "110 ns round trip (near)");
        assert_eq!(summarise(vec![520 * BATCH]).to_string(), "520 ns round trip (far)");
    }
}
