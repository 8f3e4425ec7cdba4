//! Wakes a thread that waits in `poll`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

/// An eventfd. Clones share it: any clone may notify, and the thread that polls [`Wakeup::fd`] wakes.
#[derive(Clone)]
pub struct Wakeup(Arc<OwnedFd>);

impl Wakeup {
    pub fn new() -> io::Result<Wakeup> {
        Ok(Wakeup(Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?)))
    }

    /// Wakes the thread that polls, or makes its next `poll` return at once.
    pub fn notify(&self) {
        // The write fails only after 2^64 notifications that were not cleared.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Resets the eventfd. The thread calls this before it looks at the work: a notification that comes later wakes it
    /// again.
    pub fn clear(&self) {
        // The read fails if there was no notification.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
