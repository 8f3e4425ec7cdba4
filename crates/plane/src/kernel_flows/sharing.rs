//! The worker's end: it shares flows, takes their counts, and uses entries again that have ended.

use std::collections::VecDeque;
use std::sync::Arc;

use fullview_filter::address::Family;
use fullview_filter::ruleset::{
    RuleSet, comparison, flow_lifetime, follow_offloaded, recall_flow, share_windows,
};
use fullview_filter::state::flow::{FamilyFlows, FlowOffload, FlowWords, Inet6Addresses, InetAddresses};
use fullview_filter::state::{Comparison, FilterWorker, FlowWindows};
use fullview_table::NextHop;

use super::entry::{FlowPath, PortDevice, WindowsOfFlow};
use super::grace::GracePeriods;
use super::memory::{FlowMemory, LONGEST_SILENCE};
use super::traffic::MOST_INTERFACES;
use super::windows::WindowRecords;
use super::worker_flows::WorkerFlows;
use crate::adjacency::AdjacencyKind;
use crate::counters::Counters;
use crate::filter_time::{NANOS_PER_MILLISECOND, step_of};
use crate::view::View;

/// Each entry is visited once in so many milliseconds.
const INTERVAL: u64 = 128;
/// A round visits so many at most.
const VISITED: usize = 8192;
/// The worker reports at most once in so many milliseconds.
const REPORT: u64 = 16;
/// The worker decides about packets that come so many milliseconds before a state of their flow ends: the time of packets
/// advances in steps.
const MARGIN: u64 = 512;
/// An entry ends if no packet came for so many milliseconds, so that there is room for other flows.
const IDLE: u64 = 10_000;

/// The known flow of an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedFlow {
    pub family: Family,
    /// Where the worker has it.
    pub place: u32,
    hash: u64,
}

/// Shares known flows with the program.
#[derive(Debug)]
pub struct FlowSharing {
    own: Arc<WorkerFlows>,
    grace: Arc<GracePeriods>,
    /// By index, from that of the worker's first entry on.
    flows: Box<[Option<SharedFlow>]>,
    first: u32,
    free: Vec<u32>,
    records: WindowRecords,
    /// Entries that programs may still have, with the number of the question for a barrier.
    ended: VecDeque<(u64, u32)>,
    /// By port.
    devices: Vec<PortDevice>,
    /// The generation of all workers' entries before the present burst.
    generation: u64,
    /// The next flow to visit, and when the last one was.
    cursor: usize,
    visited: u64,
    /// The next flow whose route is to be compared, and how many are left.
    compared: usize,
    left: usize,
    reported: u64,
    is_suspended: bool,
}

/// How many flows a worker shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedTotals {
    pub flows: u32,
    /// How many may be.
    pub most: u32,
    /// Packets that the program has forwarded, as far as they were counted.
    pub packets: u64,
}

/// A known flow that may be shared.
#[derive(Clone, Copy)]
pub(crate) struct KnownFlow<'f> {
    pub rules: &'f RuleSet,
    pub view: &'f View,
    /// Where the worker has it.
    pub place: usize,
    /// In milliseconds.
    pub now: u64,
}

impl FlowSharing {
    /// Shares flows of the worker with this number by this memory. Allocates everything that is ever needed.
    pub fn new(memory: Arc<FlowMemory>, grace: Arc<GracePeriods>, worker: u16) -> FlowSharing {
        let own = Arc::new(WorkerFlows::new(memory, worker));
        let entries = own.entries();
        FlowSharing {
            grace,
            flows: vec![None; entries.len()].into(),
            first: entries.start,
            ended: VecDeque::with_capacity(entries.len()),
            records: WindowRecords::new(entries.clone()),
            free: entries.rev().collect(),
            devices: Vec::new(),
            generation: 0,
            cursor: 0,
            visited: 0,
            compared: 0,
            left: 0,
            reported: 0,
            is_suspended: false,
            own,
        }
    }

    /// What counts the packets of shared flows.
    pub(crate) fn offload(&self) -> Arc<dyn FlowOffload> {
        Arc::<WorkerFlows>::clone(&self.own)
    }

    /// Sets the devices of ports. Flows that were shared before have to end before any forwards again ([`super::FlowControl::pause`]).
    pub fn set_devices(&mut self, devices: Vec<PortDevice>) {
        self.devices = devices;
    }

    /// Begins a burst: what is learned in it follows from a view and routes that are read later.
    #[inline]
    pub(crate) fn begin_burst(&mut self) {
        self.generation = self.own.memory.generation();
    }

    /// Shares no flow, or shares flows again. Says whether that is another decision than before; then the caller takes all
    /// flows back.
    pub(crate) fn suspend(&mut self, is_suspended: bool) -> bool {
        std::mem::replace(&mut self.is_suspended, is_suspended) != is_suspended
    }

    /// Shares a flow that the worker has just learned or renewed, if the program can forward it.
    pub(crate) fn share<A: FamilyFlows>(&mut self, known: KnownFlow<'_>, worker: &mut FilterWorker) {
        let KnownFlow { rules, place, now, .. } = known;
        let lifetime = u64::from(flow_lifetime::<A>(rules, worker, place));
        if self.is_suspended || lifetime <= MARGIN {
            return;
        }
        let times = (now, lifetime - MARGIN);
        match A::cache(worker.flows_mut().0).offloaded(place) {
            Some(index) => self.renew(index, times),
            None => match comparison::<A>(worker, place) {
                Comparison::Nothing => self.add::<A>(known, worker, times, None),
                Comparison::Windows(windows) => self.add::<A>(known, worker, times, Some(windows)),
                Comparison::States => {}
            },
        }
    }

    fn add<A: FamilyFlows>(
        &mut self,
        known: KnownFlow<'_>,
        worker: &mut FilterWorker,
        times: (u64, u64),
        windows: Option<FlowWindows>,
    ) {
        let cache = A::cache(worker.flows_mut().0);
        // The program does not translate.
        if cache.translation(known.place).is_some() {
            return;
        }
        let KnownFlow { view, place, .. } = known;
        let ((_, next_hop), flow) = (cache.route(place), cache.flow(place).words());
        let Some(path) = self.path(view, flow, NextHop(next_hop)) else { return };
        let Some((index, hash)) = self.publish(&path, times, windows, cache.answering(place)) else { return };
        let shared = SharedFlow { family: A::FAMILY, place: place as u32, hash };
        self.flows[(index - self.first) as usize] = Some(shared);
        cache.set_offloaded(place, index);
        if windows.is_some() {
            share_windows::<A>(worker, place);
        }
    }

    /// Lets programs find an entry for packets that go this way. Returns its index, and the hash by which they find it.
    fn publish(
        &mut self,
        path: &FlowPath<'_>,
        times: (u64, u64),
        windows: Option<FlowWindows>,
        answering: Option<u32>,
    ) -> Option<(u32, u64)> {
        let hash = path.words(self.own.worker, None).hash(self.own.memory.keys());
        let slot = self.vacate(hash)?;
        let (index, windows) = self.take_free(answering, windows)?;
        self.own.memory.fill(index, &path.words(self.own.worker, windows));
        self.renew(index, times);
        let is_found = self.own.memory.set_slot(hash, slot, index);
        if !is_found {
            self.give_back(index);
        }
        is_found.then_some((index, hash))
    }

    /// A free entry, and the windows that it gets.
    fn take_free(
        &mut self,
        answering: Option<u32>,
        windows: Option<FlowWindows>,
    ) -> Option<(u32, Option<WindowsOfFlow>)> {
        let index = self.free.pop()?;
        let Some(windows) = windows else { return Some((index, None)) };
        let of = self.record(answering, &windows);
        if of.is_none() {
            self.free.push(index);
        }
        of.map(|of| (index, Some(of)))
    }

    /// The windows of a connection whose other direction may be forwarded by this entry.
    fn record(&mut self, answering: Option<u32>, windows: &FlowWindows) -> Option<WindowsOfFlow> {
        if let Some(of) = answering.and_then(|index| self.own.windows(index)) {
            let own = of.answering();
            self.records.add_user(own.record);
            return Some(own);
        }
        let own = WindowsOfFlow { record: self.records.take()?, end: 0 };
        self.own.memory.windows(own.record).fill(own.end, windows);
        Some(own)
    }

    /// Frees an entry that no program has, and its windows if the other direction has none.
    fn give_back(&mut self, index: u32) {
        let windows = self.own.windows(index);
        windows.into_iter().for_each(|of| self.records.release(of.record));
        self.free.push(index);
    }

    fn renew(&self, index: u32, times: (u64, u64)) {
        self.own.memory.renew(index, self.own.generation_since(self.generation), times);
    }

    /// How the packets of a flow go. `None` if the program cannot forward them, or if the loop does more about them.
    fn path<'v>(&self, view: &'v View, flow: FlowWords, next_hop: NextHop) -> Option<FlowPath<'v>> {
        let adjacency = view.adjacencies().get(next_hop);
        let (ingress, egress) = (view.interface(flow.interface)?, view.interface(adjacency.interface)?);
        let devices = [ingress.port, adjacency.port].map(|port| self.devices.get(usize::from(port)).copied());
        let devices = [devices[0]?, devices[1]?];
        let is_counted = usize::from(flow.interface.max(adjacency.interface)) < MOST_INTERFACES;
        // A packet that returns to its link may cause a redirect.
        let is_forwarded = adjacency.kind == AdjacencyKind::Neighbor && flow.interface != adjacency.interface;
        (is_counted && is_forwarded && devices[0].reaches(devices[1])).then_some(FlowPath {
            flow,
            ingress,
            egress,
            adjacency,
            devices,
        })
    }

    /// A free slot for a hash. `None` if another flow may be taken for it, or if all slots belong to flows.
    fn vacate(&mut self, hash: u64) -> Option<usize> {
        let own = self.own.entries();
        for (index, _) in self.own.memory.slots(hash) {
            if own.contains(&index) && !self.own.memory.forwards(index) {
                self.retire(index);
            }
        }
        let slots = self.own.memory.slots(hash);
        let is_taken = slots.iter().any(|(index, is_same)| *index != 0 && *is_same);
        slots.iter().position(|(index, _)| *index == 0).filter(|_| !is_taken)
    }

    /// Takes an entry that has ended from the programs. It is free after a barrier.
    fn retire(&mut self, index: u32) {
        let Some(flow) = self.flows[(index - self.first) as usize].take() else { return };
        self.own.memory.clear_slot(flow.hash, index);
        self.ended.push_back((self.grace.ask(), index));
    }

    /// Whether the worker has not reported for so long that programs forwarded nothing. Then the caller takes all flows back: no
    /// change meanwhile was compared with them.
    pub(crate) fn was_silent(&self, now: u64) -> bool {
        now.wrapping_sub(self.reported) >= LONGEST_SILENCE / NANOS_PER_MILLISECOND
    }

    /// Reports that the worker runs, takes the counts of some entries, and frees entries that ended. The worker calls it once
    /// a round. Says whether it looked for counts.
    pub(crate) fn follow(&mut self, rules: &RuleSet, worker: &mut FilterWorker, now: u64) -> bool {
        if now.wrapping_sub(self.reported) >= REPORT {
            self.own.memory.report_worker(self.own.worker, now);
            self.reported = now;
        }
        let all = self.flows.len() as u64;
        let due = all * now.wrapping_sub(self.visited) / INTERVAL;
        if due > 0 {
            self.visited = now;
            (0..due.min(all).min(VISITED as u64)).for_each(|_| self.visit_next(rules, worker, now));
        }
        self.free_granted();
        due > 0
    }

    fn visit_next(&mut self, rules: &RuleSet, worker: &mut FilterWorker, now: u64) {
        let (flow, index) = (self.flows[self.cursor], self.first + self.cursor as u32);
        self.cursor = (self.cursor + 1) % self.flows.len();
        match flow {
            Some(flow) if flow.family == Family::Inet => {
                self.visit::<InetAddresses>(index, flow.place as usize, (rules, now), worker);
            }
            Some(flow) => self.visit::<Inet6Addresses>(index, flow.place as usize, (rules, now), worker),
            None => {}
        }
    }

    fn visit<A: FamilyFlows>(
        &mut self,
        index: u32,
        place: usize,
        (rules, now): (&RuleSet, u64),
        worker: &mut FilterWorker,
    ) {
        if self.own.memory.forwards(index) && follow_offloaded::<A>(rules, worker, place, step_of(now)) {
            let lifetime = u64::from(flow_lifetime::<A>(rules, worker, place));
            self.own.memory.set_lifetime(index, lifetime.saturating_sub(MARGIN));
            if now.saturating_sub(self.own.memory.last(index)) > IDLE {
                recall_flow::<A>(worker, place);
            }
        }
        if !self.own.memory.forwards(index) {
            self.retire(index);
        }
    }

    /// Notes that the routes of all present flows have to be compared.
    pub(crate) fn compare_routes(&mut self) {
        self.left = self.flows.len();
    }

    /// Whether routes of flows are left to be compared.
    pub(crate) fn is_comparing(&self) -> bool {
        self.left > 0
    }

    /// The next flow whose route has to be compared, and its entry. `None` if there is none, or if many places were looked at in
    /// vain: then a later call goes on.
    pub(crate) fn next_compared(&mut self) -> Option<(u32, SharedFlow)> {
        for _ in 0..self.left.min(VISITED) {
            let (flow, index) = (self.flows[self.compared], self.first + self.compared as u32);
            self.compared = (self.compared + 1) % self.flows.len();
            self.left -= 1;
            if let Some(flow) = flow.filter(|_| self.own.memory.forwards(index)) {
                return Some((index, flow));
            }
        }
        None
    }

    fn free_granted(&mut self) {
        let granted = self.grace.granted();
        while let Some((_, index)) = self.ended.pop_front_if(|(asked, _)| *asked <= granted) {
            self.give_back(index);
        }
    }

    /// How many flows are shared.
    pub(crate) fn totals(&self) -> SharedTotals {
        let most = self.flows.len() as u32;
        let flows = most - (self.free.len() + self.ended.len()) as u32;
        SharedTotals { flows, most, packets: self.own.traffic.packets() }
    }

    /// Moves the counts of frames that the program forwarded to the worker's.
    pub(crate) fn move_traffic(&self, counters: &mut Counters) {
        self.own.traffic.move_to(counters);
    }
}
