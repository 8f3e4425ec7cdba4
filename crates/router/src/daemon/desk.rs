//! Where the router's thread is asked things. It answers between its own work, so that nobody else ever holds, locks or
//! copies what it works on; whoever asks waits.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use super::Inside;

/// Questions that may wait.
const WAITING: usize = 32;
/// A router that has more to do than to answer for so long is loading a whole table; the client may ask again.
const PATIENCE: Duration = Duration::from_secs(5);

type Question = Box<dyn FnOnce(&mut Inside<'_>) + Send>;

/// The router's end.
pub struct Desk {
    questions: Receiver<Question>,
    woken: UnixStream,
}

/// The end of those who ask.
#[derive(Clone)]
pub struct Asker {
    questions: SyncSender<Question>,
    wake: Arc<UnixStream>,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// There are too many questions.
    #[error("the router is busy; ask again")]
    Busy,
    /// It ends.
    #[error("the router is ending")]
    Ended,
}

/// Both ends.
pub fn open() -> io::Result<(Desk, Asker)> {
    let (sender, questions) = sync_channel(WAITING);
    let (wake, woken) = UnixStream::pair()?;
    wake.set_nonblocking(true)?;
    woken.set_nonblocking(true)?;
    Ok((Desk { questions, woken }, Asker { questions: sender, wake: Arc::new(wake) }))
}

impl Desk {
    /// Can be read when somebody asks.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }

    /// Answers what was asked so far.
    pub fn serve(&self, inside: &mut Inside<'_>) {
        // Each question sends a byte; how many have come is told by the channel.
        let _ = (&self.woken).read(&mut [0; 4 * WAITING]);
        self.questions.try_iter().for_each(|question| question(inside));
    }
}

impl Asker {
    /// Has the router's thread do something, and waits for what comes out.
    pub fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Inside<'_>) -> T + Send + 'static,
    ) -> Result<T, NoAnswer> {
        let (tell, told) = sync_channel(1);
        // Taken once: by the router, which then answers, or by whoever asked and has lost patience, to whom nothing may
        // happen any more.
        let taken = Arc::<AtomicBool>::default();
        let by_router = Arc::clone(&taken);
        let question = move |inside: &mut Inside<'_>| {
            if !by_router.swap(true, Ordering::AcqRel) {
                // Nobody else has the other end, and it waits.
                let _ = tell.try_send(question(inside));
            }
        };
        self.questions.try_send(Box::new(question)).map_err(|error| match error {
            TrySendError::Full(_) => NoAnswer::Busy,
            TrySendError::Disconnected(_) => NoAnswer::Ended,
        })?;
        // If it cannot be woken it is awake: there are bytes it has not read yet.
        let _ = (&*self.wake).write(&[1]);
        match told.recv_timeout(PATIENCE) {
            Err(_) if !taken.swap(true, Ordering::AcqRel) => Err(NoAnswer::Busy),
            Err(_) => told.recv().map_err(|_| NoAnswer::Ended),
            Ok(answer) => Ok(answer),
        }
    }
}
