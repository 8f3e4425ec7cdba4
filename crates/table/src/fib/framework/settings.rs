//! What can be set about the framework; the defaults are FreeBSD's, under the names of its sysctls.

use std::time::Duration;

use crate::fib::preference::Preferences;

/// A moment: time since an origin that the caller chose and keeps to.
pub type Time = Duration;

/// Where a table is compiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compile {
    /// In the call that finds it due.
    #[default]
    Here,
    /// By whoever the caller hands the job to; only interface and static routes are compiled here, since they do not
    /// wait.
    Elsewhere,
}

/// One set of values for all tables that share it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `net.route.algo.bucket_time_ms`: the interval in which changes are counted.
    pub bucket_time: Duration,
    /// `net.route.algo.bucket_change_threshold_rate`: changes a second from which syncing is put off.
    pub bucket_change_threshold_rate: u32,
    /// `net.route.algo.fib_max_sync_delay_ms`: the longest a FIB may lag behind its RIB.
    pub max_sync_delay: Duration,
    /// The choice of algorithm is looked at again so long after the first change.
    pub evaluate_after: Duration,
    /// Or [`Self::evaluate_soon`] after this many changes.
    pub evaluate_after_changes: u64,
    /// See [`Self::evaluate_after_changes`].
    pub evaluate_soon: Duration,
    /// The n-th failure of a module to compile keeps it back for this, a millisecond at least, doubled n times,
    /// ten times at most.
    pub retry_delay: Duration,
    /// By which algorithms are chosen.
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
    /// Changes in one bucket from which syncing is put off: 25 by default.
    pub fn bucket_threshold(&self) -> u64 {
        let changes =
            u128::from(self.bucket_change_threshold_rate) * self.bucket_time.as_micros() / 1_000_000;
        u64::try_from(changes).unwrap_or(u64::MAX).max(1)
    }
}
