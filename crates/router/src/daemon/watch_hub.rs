//! Carries notes about packets from the workers, or from the program in the kernel, to the clients that watch packets, and
//! samples to the flow export.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fullview_plane::forward::Forwarder;
use fullview_plane::observed::{ObservedPacket, PacketObserver};
use fullview_plane::sample::{PacketSample, sampler};
use fullview_plane::sample_backlog::SampleBacklog;
use fullview_plane::trace::{TraceReceiver, TraceRequest, TraceRequests, TracedPacket, Tracer};

/// Notes kept for a client that does not fetch them.
const MAX_NOTES: usize = 256;
/// Watches at a time: each costs the workers a look at every packet.
const MAX_WATCHES: usize = 8;

/// A packet that a client watches.
pub enum WatchedPacket {
    /// A worker copied it.
    Loop(Box<TracedPacket>),
    /// The program in the kernel copied it.
    Program(Box<ObservedPacket>),
}

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
    /// Reads what the program in the kernel copies, if one forwards.
    program: Option<Box<dyn PacketObserver>>,
    /// Its samples.
    backlog: SampleBacklog,
}

/// Notes that a client has not yet fetched.
#[derive(Default)]
struct PendingNotes {
    notes: VecDeque<WatchedPacket>,
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
        forwarder.set_tracer(state.tracer());
        if let Some(rate) = state.sample {
            let (sampler, samples) = sampler(rate, ports);
            state.samples.push(samples);
            forwarder.set_sampler(sampler);
        }
    }

    /// One packet in so many is to be sampled, if any.
    pub fn sample(&self) -> Option<NonZeroU32> {
        self.state().sample
    }

    /// Reads the copies of a program from now on. Those of the program before are read to their end.
    pub fn observe(&self, program: Box<dyn PacketObserver>) {
        let mut state = self.state();
        state.read_program();
        state.program = Some(program);
        state.change_watches();
    }

    /// The ports have these devices from now on, for the program in the kernel.
    pub fn follow_devices(&self, devices: Vec<u32>) {
        let mut state = self.state();
        state.read_program();
        state.program.iter_mut().for_each(|program| program.follow_devices(devices.clone()));
        state.change_watches();
    }

    /// Whether the program in the kernel has to copy packets.
    pub fn is_observing(&self) -> bool {
        let state = self.state();
        state.sample.is_some() || !state.pending.is_empty()
    }

    /// The samples of all workers, or of the program, since the last call.
    pub fn take_samples(&self) -> Vec<PacketSample> {
        let mut state = self.state();
        state.read_program();
        let of_program = state.backlog.take();
        let rings = state.samples.iter_mut();
        let of_workers = rings.flat_map(|ring| std::iter::from_fn(|| ring.pop().ok()));
        let taken = of_program.into_iter().chain(of_workers).collect();
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
        state.change_watches();
        Some(WatchSession { hub: Arc::clone(self), watch, number })
    }

    /// A poisoned lock is used on: every field is whole between two statements that could panic.
    fn state(&self) -> MutexGuard<'_, HubState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WatchSession {
    /// The notes since the last call, and how many notes were lost meanwhile.
    pub fn fetch(&self) -> (Vec<WatchedPacket>, u64) {
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
        state.change_watches();
    }
}

impl PendingNotes {
    fn add(&mut self, note: WatchedPacket) {
        if self.notes.len() == MAX_NOTES {
            self.missed += 1;
        } else {
            self.notes.push_back(note);
        }
    }
}

impl HubState {
    /// The end of another worker. Nothing but its start forgets workers that have ended while no client watches.
    fn tracer(&mut self) -> Tracer {
        self.collect();
        let (tracer, collector) = self.watchers.connect();
        self.collectors.push(collector);
        tracer
    }

    /// Has the program copy what clients watch now.
    fn change_watches(&mut self) {
        let watched: Vec<_> = self.watchers.active().into_iter().map(|(_, watch)| watch).collect();
        self.program.iter_mut().for_each(|program| program.watch(&watched));
    }

    /// Takes what the program has copied: samples, and notes for the watches that they match.
    fn read_program(&mut self) {
        let Some(program) = &mut self.program else { return };
        let observed = program.read(&mut self.backlog);
        for (number, watch) in self.watchers.active() {
            let Some(pending) = self.pending.get_mut(&number) else { continue };
            pending.missed += observed.missed;
            for packet in observed.packets.iter().filter(|packet| is_for(&watch, packet)) {
                if watch.take() {
                    pending.add(WatchedPacket::Program(Box::new(packet.clone())));
                } else {
                    pending.missed += u64::from(watch.drops_only);
                }
            }
        }
    }

    /// Moves the notes of all workers and of the program to the watches they are for. Notes whose watch has ended are
    /// dropped.
    fn collect(&mut self) {
        self.read_program();
        for collector in &mut self.collectors {
            while let Some(note) = collector.pop() {
                let Some(pending) = self.pending.get_mut(&note.request) else { continue };
                pending.add(WatchedPacket::Loop(Box::new(note)));
            }
        }
        let missed: u64 = self.collectors.iter_mut().map(TraceReceiver::take_lost).sum();
        self.pending.values_mut().for_each(|pending| pending.missed += missed);
        self.collectors.retain(|collector| !collector.is_abandoned());
    }
}

fn is_for(watch: &TraceRequest, packet: &ObservedPacket) -> bool {
    let has_fate = !watch.drops_only || packet.verdict.discard().is_some();
    has_fate && watch.filter.matches(packet.port, &packet.frame)
}

#[cfg(test)]
mod tests {
    use fullview_plane::observed::Observed;

    use super::*;

    /// Writes down what it is asked for.
    struct NotingObserver(Arc<Mutex<Vec<String>>>);

    impl NotingObserver {
        fn note(&self, call: String) {
            self.0.lock().unwrap().push(call);
        }
    }

    impl PacketObserver for NotingObserver {
        fn watch(&mut self, requests: &[Arc<TraceRequest>]) {
            self.note(format!("watch {}", requests.len()));
        }

        fn follow_devices(&mut self, devices: Vec<u32>) {
            self.note(format!("follow {devices:?}"));
        }

        fn read(&mut self, _samples: &mut SampleBacklog) -> Observed {
            self.note("read".into());
            Observed::default()
        }
    }

    /// The copies of before are read with the devices of before, and a port that is watched is on another one now.
    #[test]
    fn other_devices_are_for_what_is_copied_from_now_on() {
        let (hub, calls) = (Arc::<WatchHub>::default(), Arc::default());
        hub.observe(Box::new(NotingObserver(Arc::clone(&calls))));
        let _session = hub.watch(Arc::new(TraceRequest::new("".parse().unwrap(), false, 1))).unwrap();
        calls.lock().unwrap().clear();
        hub.follow_devices(vec![3, 0]);
        assert_eq!(*calls.lock().unwrap(), ["read", "follow [3, 0]", "watch 1"]);
    }

    #[test]
    fn workers_that_ended_are_forgotten_while_no_client_watches() {
        let mut state = HubState::default();
        (0..3).for_each(|_| drop(state.tracer()));
        let _running = state.tracer();
        assert_eq!(state.collectors.len(), 1);
    }
}
