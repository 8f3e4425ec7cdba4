//! Everything that one worker remembers, and the sweep that forgets it.

use std::ops::BitXor;
use std::sync::Arc;

use super::counters::RuleCounters;
use super::entry::{CONNECTED, ColdState};
use super::flow::{FamilyFlows, FlowCaches, FlowIsa, FlowOffload, PassTrace, WireFlow};
use super::flow_key::FlowKey;
use super::fragments::FragmentCache;
use super::hash::split_mix;
use super::image::StateImage;
use super::phase::Phase;
use super::reload::{Adoption, RuleMaps};
use super::sources::{SourceImage, SourceTable};
use super::table::StateTable;
use crate::address::Address;
use crate::rule::TableId;

/// How much a worker remembers at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerLimits {
    pub states: u32,
    pub sources: u32,
    /// Fragmented packets whose later fragments may still come.
    pub fragments: u32,
}

impl WorkerLimits {
    /// What each of so many workers remembers, so that all of them remember no less.
    pub fn share(self, workers: u32) -> WorkerLimits {
        let share = |all: u32| all.div_ceil(workers);
        let WorkerLimits { states, sources, fragments } = self;
        WorkerLimits { states: share(states), sources: share(sources), fragments: share(fragments) }
    }
}

impl Default for WorkerLimits {
    /// pf's limits.
    fn default() -> Self {
        WorkerLimits { states: 100_000, sources: 10_000, fragments: 5000 }
    }
}

/// A state is found by the packets of two flows, and a forwarded flow often has two states. Where there are more flows,
/// the memory is better used for states.
const MOST_FLOWS: usize = 1 << 16;

fn flows(states: usize) -> usize {
    (4 * states).min(MOST_FLOWS)
}

/// How many states are noted whose windows may have moved: two for each packet of a burst.
const MOST_MOVED: usize = 512;

/// How many reports of sources wait at most.
const MOST_OVERLOADS: usize = 64;

pub(crate) fn increment(counts: &mut [u32], rule: u32) {
    if let Some(count) = counts.get_mut(rule as usize) {
        *count += 1;
    }
}

pub(crate) fn decrement(counts: &mut [u32], rule: u32) {
    if let Some(count) = counts.get_mut(rule as usize) {
        *count = count.saturating_sub(1);
    }
}

/// What a state says about its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateSummary {
    /// The first packet's, before translation.
    pub key: FlowKey,
    /// How far both ends have come: first the one that sent the first packet.
    pub phases: [Phase; 2],
    /// The lower 32 bits of the time of the last packet.
    pub last: u32,
    pub packets: u32,
    pub bytes: u64,
}

/// What one worker remembers.
#[derive(Debug)]
pub struct FilterWorker {
    pub(crate) states: StateTable,
    pub(crate) counters: Arc<RuleCounters>,
    pub(crate) sources: SourceTable,
    pub(crate) fragments: FragmentCache,
    /// How many states and how many sources each rule has.
    pub(crate) rule_states: Vec<u32>,
    pub(crate) rule_sources: Vec<u32>,
    /// Sources that went beyond a limit, with the tables that they belong into.
    overloads: Vec<(TableId, Address)>,
    pub(crate) flows: FlowCaches,
    /// States whose windows may have moved, of those that something else moves too.
    moved: Vec<u32>,
    /// How many states have ended for new ones.
    replaced: u64,
    maps: RuleMaps,
    /// Where the sweep goes on.
    pub(crate) cursor: u32,
    /// When the sweep last ran.
    pub(crate) swept: u32,
    /// What timeouts are multiplied with, in 1/65536.
    pub(crate) timeout_scale: u32,
    /// How many workers the flows are spread over.
    workers: u32,
    random: u64,
}

impl FilterWorker {
    /// A worker that remembers nothing yet. The seed is secret: hashes and translated ports follow from it.
    pub fn new(limits: WorkerLimits, rules: usize, seed: u64) -> Self {
        let mut random = seed;
        FilterWorker {
            states: StateTable::new(limits.states, split_mix(&mut random)),
            counters: Arc::new(RuleCounters::new(rules)),
            sources: SourceTable::new(limits.sources, split_mix(&mut random)),
            fragments: FragmentCache::new(limits.fragments, split_mix(&mut random)),
            rule_states: vec![0; rules],
            rule_sources: vec![0; rules],
            overloads: Vec::with_capacity(MOST_OVERLOADS),
            flows: FlowCaches::new(
                flows(limits.states as usize),
                [(); 4].map(|()| split_mix(&mut random)),
                FlowIsa::best(),
            ),
            moved: Vec::with_capacity(MOST_MOVED),
            replaced: 0,
            maps: RuleMaps::new(),
            cursor: 0,
            swept: 0,
            timeout_scale: 1 << 16,
            workers: 1,
            random,
        }
    }

    /// Notes that this is one of so many workers, which have about as many states each.
    pub fn be_one_of(&mut self, workers: u32) {
        self.workers = workers;
    }

    /// How many states all workers have, as far as this one knows.
    pub(crate) fn estimated_states(&self) -> u64 {
        self.states.len() as u64 * u64::from(self.workers)
    }

    /// Keeps so many flows of each family whose packets need no rules, or none.
    pub fn keep_flows(&mut self, entries: usize) {
        self.replace_flows(entries, self.flows.isa());
    }

    /// Uses this instruction set for known flows instead of the widest, to compare instruction sets with each other.
    pub fn use_isa(&mut self, isa: FlowIsa) {
        self.replace_flows(self.flows.room(), isa);
    }

    fn replace_flows(&mut self, entries: usize, isa: FlowIsa) {
        let keys = [(); 4].map(|()| split_mix(&mut self.random));
        self.end_flows();
        self.flows = self.flows.resized(entries, keys, isa);
    }

    /// Lets something else forward packets of known flows.
    pub fn set_offload(&mut self, offload: Arc<dyn FlowOffload>) {
        self.flows.set_offload(offload);
    }

    /// Reads the states of flows, so that the processor fetches all lines at once.
    #[inline]
    pub fn touch_states_of<A: FamilyFlows>(&mut self, places: impl Iterator<Item = usize> + Clone) {
        let (cache, states) = (A::cache(&mut self.flows), &self.states);
        let ids = places.flat_map(|place| cache.states(place));
        std::hint::black_box(ids.map(|id| states.get(id).0.last).fold(0, u32::bitxor));
    }

    /// The trace of the packet at this place in the last call of `check_hashed_burst`.
    #[inline(always)]
    pub fn trace_of(&self, place: usize) -> PassTrace {
        self.flows.trace_of(place)
    }

    /// Judges the next packet of every flow by the rules: they, their tables, or the view are others.
    pub fn end_flows(&mut self) {
        self.recall_flows();
        self.flows.end_all();
    }

    /// Judges the next packet of the flows with these next hops by the rules.
    pub fn end_flows_by(&mut self, is_ended: impl Fn(u16) -> bool) {
        self.flows.end_by(is_ended, &mut self.states);
        self.flows.settle_rules(&self.counters);
    }

    /// Takes all flows back whose packets are forwarded elsewhere.
    pub fn recall_flows(&mut self) {
        self.flows.recall_all(&mut self.states);
        self.flows.settle_rules(&self.counters);
    }

    /// Takes back a packet of the flow at this place that was counted since rules were given what is counted.
    pub fn take_back<A: FamilyFlows>(&mut self, place: usize, length: u16) {
        self.flows.take_back::<A>(place, length, &mut self.states);
    }

    /// What a packet of this flow is between both passes, if a state translates it as it comes in.
    pub fn between<A: FamilyFlows>(&self, flow: &WireFlow<A>) -> Option<WireFlow<A>> {
        WireFlow::of(&self.states.between(&flow.key())?, 0)
    }

    /// As if the flows whose packets were taken back had not been renewed in this burst.
    pub fn undo_renewals(&mut self) {
        self.flows.undo_renewals(&mut self.states);
    }

    /// The flows whose packets need no rules, and the counters of rules.
    #[inline(always)]
    pub fn flows_mut(&mut self) -> (&mut FlowCaches, &RuleCounters) {
        (&mut self.flows, &self.counters)
    }

    /// Goes on with another rule set. Returns what it no longer needs, to be freed outside of the data path.
    pub fn adopt(&mut self, mut adoption: Adoption) -> Adoption {
        self.end_flows();
        adoption.carry(&self.counters, &self.rule_states, &self.rule_sources);
        if self.maps.is_full() {
            self.settle_all();
        }
        let map = adoption.map.clone();
        self.sources.renumber(|rule| map.rule(rule));
        self.maps.push(map, self.states.capacity());
        self.maps.hand_back(&mut adoption.former_maps);
        std::mem::swap(&mut self.counters, &mut adoption.counters);
        std::mem::swap(&mut self.rule_states, &mut adoption.rule_states);
        std::mem::swap(&mut self.rule_sources, &mut adoption.rule_sources);
        adoption
    }

    /// The number of the current rule set, which new states carry.
    pub(crate) fn generation(&self) -> u8 {
        self.maps.generation
    }

    /// Gives a state that was made under an older rule set the numbers of the current one.
    #[inline(always)]
    pub(crate) fn settle(&mut self, id: u32) {
        if self.states.get(id).1.generation != self.maps.generation {
            self.settle_old(id);
        }
    }

    #[cold]
    fn settle_old(&mut self, id: u32) {
        let cold = *self.states.get(id).1;
        let (rule, timeouts) = self.maps.settle(cold.generation, cold.rule, cold.timeouts);
        self.states.set_rule(id, rule, timeouts, self.maps.generation);
    }

    /// Gives all states the numbers of the current rule set, so that no older map is needed.
    #[cold]
    fn settle_all(&mut self) {
        let entries = self.states.capacity();
        for id in 0..entries as u32 {
            // Free entries are linked by the field for the rule.
            if self.states.get(id).0.is_used() {
                self.settle(id);
            }
        }
        self.maps.visited(entries);
    }

    /// Notes that the sweep has visited so many entries.
    pub(crate) fn visited(&mut self, entries: usize) {
        self.maps.visited(entries);
    }

    /// Brings the counters of a state up to date: those of known flows are counted apart from it.
    pub(crate) fn count_known(&mut self, id: u32) {
        let flows = self.states.flows(id);
        self.flows.settle_flows(&flows, &mut self.states);
    }

    /// Brings the windows of a state up to date, before they are compared with a segment.
    #[inline(always)]
    pub(crate) fn fetch_windows(&mut self, id: u32) {
        if self.states.is_shared(id) {
            self.count_known(id);
        }
    }

    /// Notes that a segment may have moved the windows of a state, for [`Self::hand_windows`].
    #[inline(always)]
    pub(crate) fn note_moved(&mut self, id: u32) {
        if self.states.is_shared(id) {
            self.note_shared(id);
        }
    }

    #[cold]
    fn note_shared(&mut self, id: u32) {
        if self.moved.len() == MOST_MOVED {
            self.hand_windows();
        }
        self.moved.push(id);
    }

    /// Moves windows with which segments are compared elsewhere to where segments have moved those of states. A flow has two
    /// states, so this comes after both have seen their packets.
    #[inline]
    pub fn hand_windows(&mut self) {
        while let Some(id) = self.moved.pop() {
            self.hand_windows_of(id);
        }
    }

    #[cold]
    pub(crate) fn hand_windows_of(&mut self, id: u32) {
        if self.states.is_shared(id) {
            let is_shared = self.flows.hand_windows(&self.states.flows(id), &mut self.states);
            self.states.set_shared(id, is_shared);
        }
    }

    /// All states, with their counters up to date.
    pub fn state_summaries(&mut self) -> impl Iterator<Item = StateSummary> {
        self.flows.settle_states(&mut self.states);
        self.flows.settle_rules(&self.counters);
        let entries = (0..self.states.capacity() as u32).map(|id| self.states.get(id));
        entries.filter(|(hot, _)| hot.is_used()).map(|(hot, cold)| StateSummary {
            key: hot.key(),
            phases: hot.phases(),
            last: hot.last,
            packets: cold.packets,
            bytes: cold.bytes,
        })
    }

    /// The table of states.
    pub fn states(&self) -> &StateTable {
        &self.states
    }

    /// How many states each rule has.
    pub fn rule_states(&self) -> &[u32] {
        &self.rule_states
    }

    /// The sources that rules limit.
    pub fn sources(&self) -> &SourceTable {
        &self.sources
    }

    /// The counters of rules, to be read by other threads.
    pub fn counters(&self) -> &Arc<RuleCounters> {
        &self.counters
    }

    /// A random number.
    #[inline]
    pub(crate) fn random(&mut self) -> u64 {
        split_mix(&mut self.random)
    }

    /// Removes a state, and stops counting it.
    pub(crate) fn forget(&mut self, id: u32, now: u32) {
        self.settle(id);
        self.change_flows(id, self.states.hash(&self.states.get(id).0.key()));
        let (_, cold) = self.states.remove(id);
        decrement(&mut self.rule_states, cold.rule);
        if let Some(number) = (cold.source & !CONNECTED).checked_sub(1) {
            self.release(number, cold.source & CONNECTED != 0, now);
        }
    }

    /// Ends a state for a new one ([`StateTable::replaceable`]).
    #[cold]
    pub(crate) fn replace(&mut self, id: u32, now: u32) {
        self.forget(id, now);
        self.states.pass_replaced(id);
        self.replaced += 1;
    }

    /// How many states have ended for new ones, because the table was full.
    pub fn replaced_states(&self) -> u64 {
        self.replaced
    }

    /// Ends what is known about the flows of a state, as it began, ends, or changed. `hash` is that of one of them.
    pub(crate) fn change_flows(&mut self, id: u32, hash: u64) {
        let (flows, hashes) = (self.states.flows(id), self.states.hashes(id, hash));
        self.flows.change(&flows, hashes, &mut self.states);
    }

    /// Adds a state of another worker, whose rule, source and interface have this worker's numbers. `false` if the table is full.
    pub(crate) fn restore(&mut self, image: &StateImage) -> bool {
        let cold = ColdState { generation: self.maps.generation, ..image.cold };
        let hash = self.states.hash(&image.hot.key());
        let is_added = self.states.insert_entry(image.hot, cold, hash).is_ok();
        if is_added {
            increment(&mut self.rule_states, cold.rule);
            let source = image.source();
            source.into_iter().for_each(|number| self.sources.count_again(number, image.is_connected()));
        }
        is_added
    }

    /// Adds a source of another worker with one state, and returns its number, unless there is no room. After its last state
    /// it stays for so many milliseconds.
    pub(crate) fn restore_source(&mut self, source: &SourceImage, stay: u32) -> Option<u32> {
        let number = self.sources.restore(source, stay)?;
        increment(&mut self.rule_sources, source.rule);
        Some(number)
    }

    /// Stops counting a state that was not made after all.
    pub(crate) fn release_source(&mut self, number: u32, now: u32) {
        self.release(number, false, now);
    }

    /// Forgets sources that have had no state for long enough.
    pub(crate) fn sweep_sources(&mut self, now: u32) {
        let FilterWorker { sources, rule_sources, .. } = self;
        sources.sweep(now, |rule| decrement(rule_sources, rule));
    }

    fn release(&mut self, number: u32, was_connected: bool, now: u32) {
        if let Some(rule) = self.sources.release(number, was_connected, now) {
            decrement(&mut self.rule_sources, rule);
        }
    }

    /// Reports a source that went beyond a limit. If the control plane does not come for the reports, further ones are
    /// lost; the source is reported again with its next connection.
    pub(crate) fn report_overload(&mut self, table: TableId, source: Address) {
        if self.overloads.len() < MOST_OVERLOADS {
            self.overloads.push((table, source));
        }
    }

    /// The sources that went beyond a limit since the last call, and the tables that they belong into.
    pub fn take_overloads(&mut self) -> impl Iterator<Item = (TableId, Address)> {
        self.overloads.drain(..)
    }
}
