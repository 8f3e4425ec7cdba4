//! The reports by which programs in the kernel notice that this process is stopped or hangs.
//!
//! A dead process has no program: the kernel removes it. A stopped process has one that forwards by tables that nothing keeps up
//! to date, or that takes packets for workers that do not run. So the process reports up to which time its tables were
//! complete; when the last report is older than a second, a program passes every packet to the kernel.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A time of the clock that programs in the kernel read too (`CLOCK_MONOTONIC`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReportTime(Duration);

/// A thread that is silent for longer was stopped, or hangs.
const LONGEST_SILENCE: Duration = Duration::from_secs(1);

impl ReportTime {
    /// The present time.
    pub fn now() -> ReportTime {
        ReportTime::read(ClockId::Monotonic)
    }

    /// The present time by the coarse clock, which is cheap to read and lags behind by a tick.
    pub fn coarse() -> ReportTime {
        ReportTime::read(ClockId::MonotonicCoarse)
    }

    fn read(clock: ClockId) -> ReportTime {
        let now = clock_gettime(clock);
        ReportTime(Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32))
    }

    /// Whether a thread that reported at this time, and then not before `now`, was silent for so long that programs in the kernel
    /// no longer count on it.
    pub fn is_silence_until(self, now: ReportTime) -> bool {
        now.0.saturating_sub(self.0) > LONGEST_SILENCE
    }

    /// The time in nanoseconds.
    pub(crate) fn nanos(self) -> u64 {
        self.0.as_nanos() as u64
    }

    /// The time of which [`Self::nanos`] are these nanoseconds.
    pub(crate) fn from_nanos(nanos: u64) -> ReportTime {
        ReportTime(Duration::from_nanos(nanos))
    }

    /// The time as a word of an engine's generation; 0 would mean that there are no reports. The word overflows after 52
    /// days, and the program uses differences.
    #[cfg(all(feature = "bpf", target_os = "linux"))]
    pub(crate) fn ticks(self) -> u32 {
        ((self.0.as_nanos() >> 20) as u32).max(1)
    }
}

/// What a thread that takes in changes turn by turn reports.
#[derive(Debug)]
pub struct ReportClock {
    /// When the last turn ended.
    ended: ReportTime,
    reported: ReportTime,
    /// What waited when the thread was silent is not all taken in.
    is_behind: bool,
}

impl ReportClock {
    /// A clock of a thread that has taken in everything.
    pub fn start() -> ReportClock {
        let now = ReportTime::now();
        ReportClock { ended: now, reported: now, is_behind: false }
    }

    /// The time to report as a turn ends: when the turn before ended, since what had happened by then has been taken in. After
    /// a silence much may wait, and programs forward only when a turn `has_all` of it.
    pub fn end_turn(&mut self, has_all: bool) -> ReportTime {
        self.end_turn_at(ReportTime::now(), has_all)
    }

    fn end_turn_at(&mut self, now: ReportTime, has_all: bool) -> ReportTime {
        let before = std::mem::replace(&mut self.ended, now);
        self.is_behind = before.is_silence_until(now) || self.is_behind && !has_all;
        if !self.is_behind {
            self.reported = before;
        }
        self.reported
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_silence_nothing_is_reported_before_all_is_taken_in() {
        let at = |milliseconds| ReportTime(Duration::from_millis(milliseconds));
        let mut clock = ReportClock { ended: at(0), reported: at(0), is_behind: false };
        let turns = [
            // A storm: there is always more.
            (100, false, 0),
            (900, false, 100),
            (1900, false, 900),
            // A stop.
            (5000, true, 900),
            (5005, false, 900),
            (5010, false, 900),
            (5015, true, 5010),
            (5020, false, 5015),
            // A long turn.
            (6021, true, 5015),
            (6022, true, 6021),
        ];
        for (now, has_all, reported) in turns {
            assert_eq!(clock.end_turn_at(at(now), has_all), at(reported), "at {now}");
        }
    }
}
