//! Wakes a worker for which packets lie in a ring.

#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, Ordering, fence};

#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, Ordering, fence};

/// Wakes a worker, also if it is about to sleep.
pub type WakeWorker = Box<dyn Fn() + Send + Sync>;

/// The bell of one worker. It falls asleep with [`Bell::sleep`]; a worker that has filled a ring for it calls [`Bell::ring`].
///
/// The worker says that it sleeps before it looks at its rings for the last time, and the others fill a ring before they look
/// whether it sleeps, each with a fence between the two. So one of both sees what the other one did, and no packet waits for a
/// sleeping worker.
pub(super) struct Bell {
    is_asleep: AtomicBool,
    wake: WakeWorker,
}

impl Bell {
    /// The bell of the worker that `wake` wakes.
    pub fn new(wake: WakeWorker) -> Bell {
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

/// The real code under loom: a worker sleeps only until something is in its ring.
#[cfg(all(test, loom))]
mod interleavings {
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicUsize;
    use loom::thread;

    use super::*;

    #[test]
    fn no_packet_waits_for_a_worker_that_sleeps() {
        loom::model(|| {
            let (ring, woken) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
            let wakes = Arc::clone(&woken);
            let bell = Arc::new(Bell::new(Box::new(move || wakes.store(true, Ordering::Release))));
            let (filled, rung) = (Arc::clone(&ring), Arc::clone(&bell));
            let other = thread::spawn(move || {
                filled.store(1, Ordering::Release);
                rung.ring();
            });
            let sleep = || {
                while !woken.load(Ordering::Acquire) {
                    thread::yield_now();
                }
            };
            bell.sleep(|| ring.load(Ordering::Acquire) == 0, sleep);
            assert_eq!(ring.load(Ordering::Acquire), 1);
            other.join().unwrap();
        });
    }
}
