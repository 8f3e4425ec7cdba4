//! Waits until no program runs any more that may have found an entry before it ended.

use std::sync::atomic::{AtomicU64, Ordering};

/// What workers and the thread of barriers tell each other.
#[derive(Debug, Default)]
pub struct GracePeriods {
    /// How many times workers have asked.
    asked: AtomicU64,
    /// The number of the last question before a barrier.
    granted: AtomicU64,
}

impl GracePeriods {
    /// Asks for a barrier behind everything that this thread has done. Returns the number of the question.
    pub(super) fn ask(&self) -> u64 {
        self.asked.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// The last question that a barrier has answered, and all before.
    pub(super) fn granted(&self) -> u64 {
        self.granted.load(Ordering::Acquire)
    }

    /// Calls a barrier, which says whether it has waited for all programs, if a worker has asked for one.
    pub fn serve(&self, barrier: impl FnOnce() -> bool) {
        let asked = self.asked.load(Ordering::Acquire);
        if asked != self.granted() && barrier() {
            self.granted.store(asked, Ordering::Release);
        }
    }
}
