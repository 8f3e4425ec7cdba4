//! Wakes a worker for which packets lie in a ring.

use std::sync::atomic::{AtomicBool, Ordering, fence};

/// The bell of one worker. It falls asleep with [`Bell::sleep`]; whoever has filled a ring calls [`Bell::ring`].
///
/// The worker says that it sleeps before it looks at its rings for the last time, and the others fill a ring before they look
/// whether it sleeps, each with a fence between the two. So one of both sees what the other one did, and no packet waits for a
/// sleeping worker.
pub(super) struct Bell {
    is_asleep: AtomicBool,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl Bell {
    /// The bell of a worker that `wake` wakes, also if it is about to sleep.
    pub fn new(wake: Box<dyn Fn() + Send + Sync>) -> Bell {
        Bell { is_asleep: AtomicBool::new(false), wake }
    }

    /// Wakes the worker if it sleeps, after a ring was filled.
    #[inline]
    pub fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.is_asleep.load(Ordering::Relaxed) && self.is_asleep.swap(false, Ordering::Relaxed) {
            (self.wake)();
        }
    }

    /// Sleeps by `wait`, unless there is something in a ring.
    pub fn sleep(&self, is_empty: impl FnOnce() -> bool, wait: impl FnOnce()) {
        self.is_asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if is_empty() {
            wait();
        }
        self.is_asleep.store(false, Ordering::Relaxed);
    }
}
