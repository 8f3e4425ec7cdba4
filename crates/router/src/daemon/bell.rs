//! Wakes a thread that waits by poll.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

/// Both ends of it: clones ring the same.
#[derive(Clone)]
pub struct Bell(Arc<OwnedFd>);

impl Bell {
    pub fn new() -> io::Result<Bell> {
        Ok(Bell(Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?)))
    }

    /// Whoever waits, or will wait, goes on.
    pub fn ring(&self) {
        // It fails only when it has been rung 2^64 times unheard.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// To be called before looking at what it may have been rung for.
    pub fn quiet(&self) {
        // There is nothing to read if nobody rang.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
