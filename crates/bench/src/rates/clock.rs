//! The relation of the generator's clock to the one of the kernel's receive times.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Readings of which the closest pair is taken.
const READINGS: usize = 20;
/// A larger change of the relation is a clock that was set, not an error of reading.
const MOST_STEP: Duration = Duration::from_micros(2);

/// The same moment in both clocks: CLOCK_MONOTONIC, and CLOCK_REALTIME since 1970. NTP changes the speed of both alike.
#[derive(Clone, Copy, Debug)]
pub struct ClockPair {
    monotonic: Instant,
    real: Duration,
}

impl ClockPair {
    pub fn now() -> ClockPair {
        let read = || {
            let before = Instant::now();
            let real = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let took = before.elapsed();
            (took, ClockPair { monotonic: before + took / 2, real })
        };
        let mut closest = read();
        for reading in (1..READINGS).map(|_| read()) {
            if reading.0 < closest.0 {
                closest = reading;
            }
        }
        closest.1
    }

    /// The time of day at a moment.
    pub fn real_at(&self, moment: Instant) -> Duration {
        // A moment may be earlier than this pair.
        match moment.checked_duration_since(self.monotonic) {
            Some(later) => self.real + later,
            None => self.real.saturating_sub(self.monotonic - moment),
        }
    }

    /// Whether the time of day was set since this pair was read.
    pub fn was_set(&self) -> bool {
        let now = ClockPair::now();
        self.real_at(now.monotonic).abs_diff(now.real) > MOST_STEP
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_before_and_after_have_their_times() {
        let pair = ClockPair { monotonic: Instant::now(), real: Duration::from_secs(100) };
        let second = Duration::from_secs(1);
        assert_eq!(pair.real_at(pair.monotonic + second), Duration::from_secs(101));
        assert_eq!(pair.real_at(pair.monotonic - second), Duration::from_secs(99));
    }

    #[test]
    fn a_clock_that_was_set_is_seen() {
        let pair = ClockPair::now();
        assert!(ClockPair { real: pair.real + Duration::from_millis(1), ..pair }.was_set());
    }
}
