//! The settings of the framework. The defaults are FreeBSD's, and the documentation names its sysctls.

use std::time::Duration;

use crate::fib::preference::Preferences;

/// A moment, as the time since an origin that the caller chooses once.
pub type Time = Duration;

/// Where a table is compiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compile {
    /// In the call that finds the compile due.
    #[default]
    Here,
    /// In a thread of the caller's choice, as a [`Job`](super::Job). Only for interface and static routes the table is
    /// compiled in the call, because these do not wait.
    Elsewhere,
}

/// The settings that one or more tables share.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `net.route.algo.bucket_time_ms`: the interval in which changes are counted.
    pub bucket_time: Duration,
    /// `net.route.algo.bucket_change_threshold_rate`: changes a second from which a sync is delayed.
    pub bucket_change_threshold_rate: u32,
    /// `net.route.algo.fib_max_sync_delay_ms`: the longest a FIB may lag behind its RIB.
    pub max_sync_delay: Duration,
    /// The algorithm is evaluated again so long after the first change.
    pub evaluate_after: Duration,
    /// The algorithm is evaluated again [`Self::evaluate_soon`] after this many changes.
    pub evaluate_after_changes: u64,
    /// See [`Self::evaluate_after_changes`].
    pub evaluate_soon: Duration,
    /// The n-th failed compile holds a module back for this time, at least a millisecond, doubled n times, at most ten
    /// times.
    pub retry_delay: Duration,
    /// The preferences that decide which algorithm is chosen.
    pub preferences: Preferences,
    /// Where tables are compiled.
    pub compile: Compile,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            bucket_time: Duration::from_millis(50),
            bucket_change_threshold_rate: 500,
            max_sync_delay: Duration::from_millis(1_000),
            evaluate_after: Duration::from_secs(30),
            evaluate_after_changes: 100,
            evaluate_soon: Duration::from_millis(1),
            retry_delay: Duration::from_millis(50),
            preferences: Preferences::default(),
            compile: Compile::default(),
        }
    }
}

impl Settings {
    /// The number of changes in one bucket from which a sync is delayed: 25 by default.
    pub fn bucket_threshold(&self) -> u64 {
        let changes =
            u128::from(self.bucket_change_threshold_rate) * self.bucket_time.as_micros() / 1_000_000;
        u64::try_from(changes).unwrap_or(u64::MAX).max(1)
    }
}
