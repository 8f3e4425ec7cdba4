//! The thread that waits for programs, as the worker must not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::thread::{MembarrierCommand, MembarrierQuery, membarrier, membarrier_query};

use super::grace::GracePeriods;

/// The pause between two barriers. Entries that have ended are not needed sooner.
const PAUSE: Duration = Duration::from_millis(50);

/// The kernel has no barrier that waits for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the kernel has no global membarrier(2), as with nohz_full")]
pub struct NoBarrier;

/// The running thread. It ends when this is dropped.
#[derive(Debug)]
pub struct GraceThread {
    periods: Arc<GracePeriods>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl GraceThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// Fails if the kernel has no such barrier.
    pub fn start() -> Result<GraceThread, NoBarrier> {
        if !membarrier_query().contains(MembarrierQuery::GLOBAL) {
            return Err(NoBarrier);
        }
        let (periods, stop) = (Arc::<GracePeriods>::default(), Arc::<AtomicBool>::default());
        let (served, stopped) = (Arc::clone(&periods), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                served.serve(barrier);
                std::thread::park_timeout(PAUSE);
            }
        });
        Ok(GraceThread { periods, stop, thread: Some(thread) })
    }

    /// What the thread serves.
    pub fn periods(&self) -> Arc<GracePeriods> {
        Arc::clone(&self.periods)
    }
}

/// The global barrier waits for a grace period of RCU: programs at tc and in XDP run inside of read-side sections.
fn barrier() -> bool {
    membarrier(MembarrierCommand::Global).is_ok()
}

impl Drop for GraceThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It cannot have panicked: it makes no call that does.
            let _ = thread.join();
        }
    }
}
