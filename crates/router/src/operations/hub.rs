//! Who watches packets, and the way of the notes from all workers to each of them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fullview_plane::trace::{TraceReceiver, TraceRequest, TraceRequests, TracedPacket, Tracer};

/// Notes kept for one who does not fetch them.
const MOST: usize = 256;
/// Watches at a time: each costs the workers a look at every packet.
const MOST_WATCHES: usize = 8;

/// Shared by workers, control clients and captures; no worker ever waits for it.
#[derive(Default)]
pub struct Hub(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    watchers: TraceRequests,
    collectors: Vec<TraceReceiver>,
    kept: HashMap<u64, Kept>,
}

#[derive(Default)]
struct Kept {
    notes: VecDeque<TracedPacket>,
    missed: u64,
}

/// One who watches, until this is dropped.
pub struct Session {
    hub: Arc<Hub>,
    watch: Arc<TraceRequest>,
    number: u64,
}

impl Hub {
    /// A worker's end.
    pub fn connect(&self) -> Tracer {
        let mut inner = self.inner();
        let (watched, collector) = inner.watchers.connect();
        inner.collectors.push(collector);
        watched
    }

    /// Begins to watch; `None` if too many do.
    pub fn watch(self: &Arc<Hub>, watch: Arc<TraceRequest>) -> Option<Session> {
        let mut inner = self.inner();
        if inner.kept.len() >= MOST_WATCHES {
            return None;
        }
        let number = inner.watchers.add(Arc::clone(&watch));
        inner.kept.insert(number, Kept::default());
        Some(Session { hub: Arc::clone(self), watch, number })
    }

    /// Every field is whole between two statements that could panic.
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// What was noted since the last time, and how many notes were lost meanwhile.
    pub fn fetch(&self) -> (Vec<TracedPacket>, u64) {
        let mut inner = self.hub.inner();
        inner.collect();
        let kept = inner.kept.entry(self.number).or_default();
        (kept.notes.drain(..).collect(), std::mem::take(&mut kept.missed))
    }

    /// What it watches for.
    pub fn watch(&self) -> &TraceRequest {
        &self.watch
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let mut inner = self.hub.inner();
        inner.watchers.remove(self.number);
        inner.kept.remove(&self.number);
    }
}

impl Inner {
    /// Takes the notes of all workers to those they are for. Notes whose watch is over are dropped.
    fn collect(&mut self) {
        for collector in &mut self.collectors {
            while let Some(note) = collector.pop() {
                let Some(kept) = self.kept.get_mut(&note.request) else { continue };
                if kept.notes.len() == MOST {
                    kept.missed += 1;
                } else {
                    kept.notes.push_back(note);
                }
            }
        }
        let missed: u64 = self.collectors.iter_mut().map(TraceReceiver::take_lost).sum();
        self.kept.values_mut().for_each(|kept| kept.missed += missed);
        self.collectors.retain(|collector| !collector.is_abandoned());
    }
}
