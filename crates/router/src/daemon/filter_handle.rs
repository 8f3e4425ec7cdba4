//! What threads of clients use of a running filter. They ask its workers directly, so that the router's thread never waits.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use fullview_filter::ruleset::StateRecord;
use fullview_plane::forward::{FilterInspector, FilterPiece, PieceOf};

use super::wakeup::Wakeup;

/// How long the worker may take to fill a piece.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The pause between two looks for a filled piece.
const PAUSE: Duration = Duration::from_micros(100);

/// A worker of the filter has not answered in time, or too many clients wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a worker of the filter does not answer; ask again")]
pub struct FilterUnanswered;

/// A worker of the filter has not taken a change yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a worker of the filter has not taken the change in 5 s; it takes it when it runs again")]
pub struct FilterUnsettled;

/// A running filter, for threads that ask about it or change it.
pub struct FilterHandle {
    workers: Vec<WorkerLine>,
    changing: Mutex<()>,
}

/// How threads ask one worker.
struct WorkerLine {
    questions: Mutex<Questions>,
    wakeup: Wakeup,
}

struct Questions {
    inspector: FilterInspector,
    /// The number of the last one.
    last: u64,
}

impl FilterHandle {
    /// A handle of workers, each of which has such an end and is woken so.
    pub fn new(workers: impl IntoIterator<Item = (FilterInspector, Wakeup)>) -> FilterHandle {
        let line = |(inspector, wakeup)| {
            let questions = Mutex::new(Questions { inspector, last: 0 });
            WorkerLine { questions, wakeup }
        };
        FilterHandle { workers: workers.into_iter().map(line).collect(), changing: Mutex::new(()) }
    }

    /// The numbers of the workers, each of which has states of its own.
    pub fn workers(&self) -> Range<usize> {
        0..self.workers.len()
    }

    /// Lets one thread change rules or tables: what another one has read meanwhile would no longer be in force.
    pub fn lock_changes(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`Self::lock_changes`], for a thread that must not wait: `None` while another one changes them.
    pub fn try_lock_changes(&self) -> Option<MutexGuard<'_, ()>> {
        match self.changing.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Asks a worker for a piece of what it remembers.
    pub fn piece(&self, worker: usize, what: PieceOf) -> Result<Box<FilterPiece>, FilterUnanswered> {
        self.workers[worker].exchange(FilterPiece::of(what))
    }

    /// Has a worker remove these states; returns how many of them there still were.
    pub fn remove(&self, worker: usize, states: Vec<StateRecord>) -> Result<u32, FilterUnanswered> {
        self.workers[worker].exchange(FilterPiece::removal(states)).map(|piece| piece.removed)
    }

    /// Waits until all workers forward with the changes that were handed to them before.
    pub fn settle(&self) -> Result<(), FilterUnsettled> {
        let settle = |line: &WorkerLine| line.exchange(FilterPiece::removal(Vec::new())).map(drop);
        self.workers.iter().try_for_each(settle).map_err(|FilterUnanswered| FilterUnsettled)
    }
}

impl WorkerLine {
    fn exchange(&self, mut piece: FilterPiece) -> Result<Box<FilterPiece>, FilterUnanswered> {
        // A panic with the lock leaves both rings whole.
        let mut questions = self.questions.lock().unwrap_or_else(PoisonError::into_inner);
        let Questions { inspector, last } = &mut *questions;
        *last += 1;
        piece.number = *last;
        let asked = Instant::now();
        inspector.send(Box::new(piece)).map_err(|_| FilterUnanswered)?;
        self.wakeup.notify();
        while asked.elapsed() < TIMEOUT {
            match inspector.receive() {
                // Another one is the late answer to a thread that waits no longer.
                Some(piece) if piece.number == *last => return Ok(piece),
                Some(_) => {}
                None => std::thread::sleep(PAUSE),
            }
        }
        Err(FilterUnanswered)
    }
}
