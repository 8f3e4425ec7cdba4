//! Queries to the router's thread. The thread answers them between its other work, so that no other thread holds, locks or
//! copies the router's state; the thread that asks waits.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use super::state::RouterState;

/// How many queries may wait.
const MAX_WAITING: usize = 32;
/// How long a query may wait for the router's thread. A router that needs longer is loading a whole table; the client may
/// ask again.
const TIMEOUT: Duration = Duration::from_secs(5);

type Query = Box<dyn FnOnce(&mut RouterState<'_>) + Send>;

/// The router's end of the queue.
pub struct QueryQueue {
    queries: Receiver<Query>,
    woken: UnixStream,
}

/// The end of the queue for threads that ask.
#[derive(Clone)]
pub struct QueryHandle {
    queries: SyncSender<Query>,
    wake: Arc<UnixStream>,
}

/// Why a query was not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// Too many queries wait, or the router did not answer in time.
    #[error("the router is busy; ask again")]
    Busy,
    #[error("the router is ending")]
    Ended,
}

/// Makes both ends of a queue.
pub fn open() -> io::Result<(QueryQueue, QueryHandle)> {
    let (sender, queries) = sync_channel(MAX_WAITING);
    let (wake, woken) = UnixStream::pair()?;
    wake.set_nonblocking(true)?;
    woken.set_nonblocking(true)?;
    Ok((QueryQueue { queries, woken }, QueryHandle { queries: sender, wake: Arc::new(wake) }))
}

impl QueryQueue {
    /// Readable when a query waits.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }

    /// Answers the queries that wait.
    pub fn serve(&self, state: &mut RouterState<'_>) {
        // Each query sends a byte, which only wakes the thread; the channel knows how many queries wait.
        let _ = (&self.woken).read(&mut [0; 4 * MAX_WAITING]);
        self.queries.try_iter().for_each(|query| query(state));
    }
}

impl QueryHandle {
    /// Has the router's thread run `query`, and waits for its result.
    pub fn ask<T: Send + 'static>(
        &self,
        query: impl FnOnce(&mut RouterState<'_>) -> T + Send + 'static,
    ) -> Result<T, QueryError> {
        let (sender, result) = sync_channel(1);
        // Set once: by the router's thread, which then runs the query, or by this thread when its time is up. In the latter
        // case the query must not run any more, for it may change the router.
        let taken = Arc::<AtomicBool>::default();
        let by_router = Arc::clone(&taken);
        let query = move |state: &mut RouterState<'_>| {
            if !by_router.swap(true, Ordering::AcqRel) {
                // The channel has room for the one result, and this thread waits for it.
                let _ = sender.try_send(query(state));
            }
        };
        self.queries.try_send(Box::new(query)).map_err(|error| match error {
            TrySendError::Full(_) => QueryError::Busy,
            TrySendError::Disconnected(_) => QueryError::Ended,
        })?;
        // The write fails if the socket is full of bytes that the router's thread has not read: then it wakes anyway.
        let _ = (&*self.wake).write(&[1]);
        match result.recv_timeout(TIMEOUT) {
            // The router's thread has left its queue.
            Err(RecvTimeoutError::Disconnected) => Err(QueryError::Ended),
            Err(_) if !taken.swap(true, Ordering::AcqRel) => Err(QueryError::Busy),
            Err(_) => result.recv().map_err(|_| QueryError::Ended),
            Ok(answer) => Ok(answer),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]
mod tests {
    use super::*;

    #[test]
    fn a_router_that_ends_is_not_busy() {
        let (queue, handle) = open().unwrap();
        let asking = std::thread::spawn(move || handle.ask(|_| ()));
        // Until the query waits.
        while (&queue.woken).read(&mut [0]).is_err() {
            std::thread::yield_now();
        }
        drop(queue);
        assert_eq!(asking.join().unwrap(), Err(QueryError::Ended));
    }
}
