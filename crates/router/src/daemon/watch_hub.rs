//! Carries notes about packets from the workers to the clients that watch packets, and samples to the flow export.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fullview_plane::forward::Forwarder;
use fullview_plane::sample::{PacketSample, sampler};
use fullview_plane::trace::{TraceReceiver, TraceRequest, TraceRequests, TracedPacket};

/// Notes kept for a client that does not fetch them.
const MAX_NOTES: usize = 256;
/// Watches at a time: each costs the workers a look at every packet.
const MAX_WATCHES: usize = 8;

/// Shared by workers, control clients and captures. No worker ever waits for its lock.
#[derive(Default)]
pub struct WatchHub(Mutex<HubState>);

#[derive(Default)]
struct HubState {
    watchers: TraceRequests,
    collectors: Vec<TraceReceiver>,
    pending: HashMap<u64, PendingNotes>,
    /// Workers sample one packet in so many, if any.
    sample: Option<NonZeroU32>,
    samples: Vec<rtrb::Consumer<PacketSample>>,
}

/// Notes that a client has not yet fetched.
#[derive(Default)]
struct PendingNotes {
    notes: VecDeque<TracedPacket>,
    missed: u64,
}

/// A watch; it ends when this is dropped.
pub struct WatchSession {
    hub: Arc<WatchHub>,
    watch: Arc<TraceRequest>,
    number: u64,
}

impl WatchHub {
    /// A hub whose workers sample one packet in `sample`.
    pub fn sampling(sample: Option<NonZeroU32>) -> WatchHub {
        WatchHub(Mutex::new(HubState { sample, ..HubState::default() }))
    }

    /// Whether workers sample packets.
    pub fn is_sampling(&self) -> bool {
        self.state().sample.is_some()
    }

    /// Makes a worker with that many ports write notes and samples.
    pub fn connect(&self, forwarder: &mut Forwarder, ports: usize) {
        let mut state = self.state();
        let (watched, collector) = state.watchers.connect();
        state.collectors.push(collector);
        forwarder.set_tracer(watched);
        if let Some(rate) = state.sample {
            let (sampler, samples) = sampler(rate, ports);
            state.samples.push(samples);
            forwarder.set_sampler(sampler);
        }
    }

    /// The samples of all workers since the last call.
    pub fn take_samples(&self) -> Vec<PacketSample> {
        let mut state = self.state();
        let rings = state.samples.iter_mut();
        let taken = rings.flat_map(|ring| std::iter::from_fn(|| ring.pop().ok())).collect();
        state.samples.retain(|ring| !ring.is_abandoned() || !ring.is_empty());
        taken
    }

    /// Begins to watch. `None` if there are as many watches as there may be.
    pub fn watch(self: &Arc<WatchHub>, watch: Arc<TraceRequest>) -> Option<WatchSession> {
        let mut state = self.state();
        if state.pending.len() >= MAX_WATCHES {
            return None;
        }
        let number = state.watchers.add(Arc::clone(&watch));
        state.pending.insert(number, PendingNotes::default());
        Some(WatchSession { hub: Arc::clone(self), watch, number })
    }

    /// A poisoned lock is used on: every field is whole between two statements that could panic.
    fn state(&self) -> MutexGuard<'_, HubState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WatchSession {
    /// The notes since the last call, and how many notes were lost meanwhile.
    pub fn fetch(&self) -> (Vec<TracedPacket>, u64) {
        let mut state = self.hub.state();
        state.collect();
        let pending = state.pending.entry(self.number).or_default();
        (pending.notes.drain(..).collect(), std::mem::take(&mut pending.missed))
    }

    /// Which packets are noted, and how many more.
    pub fn watch(&self) -> &TraceRequest {
        &self.watch
    }
}

impl Drop for WatchSession {
    fn drop(&mut self) {
        let mut state = self.hub.state();
        state.watchers.remove(self.number);
        state.pending.remove(&self.number);
    }
}

impl HubState {
    /// Moves the notes of all workers to the watches they are for. Notes whose watch has ended are dropped.
    fn collect(&mut self) {
        for collector in &mut self.collectors {
            while let Some(note) = collector.pop() {
                let Some(pending) = self.pending.get_mut(&note.request) else { continue };
                if pending.notes.len() == MAX_NOTES {
                    pending.missed += 1;
                } else {
                    pending.notes.push_back(note);
                }
            }
        }
        let missed: u64 = self.collectors.iter_mut().map(TraceReceiver::take_lost).sum();
        self.pending.values_mut().for_each(|pending| pending.missed += missed);
        self.collectors.retain(|collector| !collector.is_abandoned());
    }
}
