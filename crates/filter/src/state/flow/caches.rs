//! The flows of one worker, of both families, and what their entries have in common.

use std::sync::Arc;

use super::addresses::{FlowAddresses, Inet6Addresses, InetAddresses, WireFlow};
use super::cache::{FlowCache, FlowStates, FlowTime, LearnedFlow};
use super::counted_rules::CountedRules;
use super::offload::{FlowAccounts, FlowOffload};
use super::simd::FlowIsa;
use super::trace::PassTrace;
use super::translations::FlowTranslation;
use crate::address::Family;
use crate::packet::Packet;
use crate::packet::protocol::{TCP, UDP};
use crate::rule::Side;
use crate::state::counters::RuleCounters;
use crate::state::flow_key::FlowKey;
use crate::state::table::StateTable;
use crate::verdict::Rewrite;

/// Packets that are judged in one call of which traces are kept.
const MOST_TRACES: usize = 256;
/// Words of the set of flows that changed.
const CHANGED: usize = 16;

/// Where the packets of a flow go, and since when.
#[derive(Clone, Copy, Debug)]
pub struct FlowRoute {
    pub next_hop: u16,
    pub time: FlowTime,
}

/// The flows of one worker.
#[derive(Debug)]
pub struct FlowCaches {
    pub(super) inet: FlowCache<InetAddresses>,
    pub(super) inet6: FlowCache<Inet6Addresses>,
    counted: CountedRules,
    /// The trace of the packet that is judged now.
    pub(crate) trace: PassTrace,
    traces: Box<[PassTrace]>,
    newest: u64,
    /// Entries with lower stamps are not valid, whatever the routes are.
    floor: u64,
    /// Flows of which states began or ended in this burst, by their hashes.
    changed: [u64; CHANGED],
    /// What else forwards packets of flows.
    offload: Option<Arc<dyn FlowOffload>>,
}

/// The family whose cache is meant.
pub trait FamilyFlows: FlowAddresses {
    /// The cache of the family.
    fn cache(caches: &mut FlowCaches) -> &mut FlowCache<Self>;
}

impl FamilyFlows for InetAddresses {
    #[inline(always)]
    fn cache(caches: &mut FlowCaches) -> &mut FlowCache<Self> {
        &mut caches.inet
    }
}

impl FamilyFlows for Inet6Addresses {
    #[inline(always)]
    fn cache(caches: &mut FlowCaches) -> &mut FlowCache<Self> {
        &mut caches.inet6
    }
}

impl FlowCaches {
    /// Room for so many flows of each family, with secret keys.
    pub fn new(entries: usize, keys: [u64; 4], isa: FlowIsa) -> Self {
        FlowCaches {
            inet: FlowCache::new(entries, keys, isa),
            inet6: FlowCache::new(entries, keys, isa),
            counted: CountedRules::new(),
            trace: PassTrace::START,
            traces: vec![PassTrace::START; MOST_TRACES].into(),
            newest: 1,
            floor: 1,
            changed: [0; CHANGED],
            offload: None,
        }
    }

    /// Empty caches with other room and keys. No flow of these is forwarded elsewhere any more.
    pub(crate) fn resized(&self, entries: usize, keys: [u64; 4], isa: FlowIsa) -> FlowCaches {
        FlowCaches { offload: self.offload.clone(), ..FlowCaches::new(entries, keys, isa) }
    }

    /// Lets something else forward packets of flows.
    pub(crate) fn set_offload(&mut self, offload: Arc<dyn FlowOffload>) {
        self.offload = Some(offload);
    }

    /// Both families, and what counts their packets.
    fn parts<'a>(
        &'a mut self,
        states: &'a mut StateTable,
    ) -> (&'a mut FlowCache<InetAddresses>, &'a mut FlowCache<Inet6Addresses>, FlowAccounts<'a>) {
        let accounts = FlowAccounts { states, rules: &mut self.counted, offload: self.offload.as_deref() };
        (&mut self.inet, &mut self.inet6, accounts)
    }

    /// For how many flows of each family there is room.
    pub(crate) fn room(&self) -> usize {
        self.inet.room()
    }

    /// The instruction set that finds flows.
    pub(crate) fn isa(&self) -> FlowIsa {
        self.inet.finder().isa()
    }

    /// Another number for what the routes of a table and family are now.
    pub fn new_stamp(&mut self) -> u64 {
        self.newest += 1;
        self.newest
    }

    /// Ends all entries: the rules or the view are others. [`Self::recall_all`] comes first.
    pub(crate) fn end_all(&mut self) {
        self.floor = self.new_stamp();
        self.counted.clear();
    }

    /// Ends the entries with these next hops.
    pub(crate) fn end_by(&mut self, is_ended: impl Fn(u16) -> bool, states: &mut StateTable) {
        let (inet, inet6, mut accounts) = self.parts(states);
        inet.end_by(&is_ended, &mut accounts);
        inet6.end_by(&is_ended, &mut accounts);
    }

    /// Whether an entry with this stamp is valid as long as its routes are the same.
    pub fn is_current(&self, stamp: u64) -> bool {
        stamp >= self.floor
    }

    /// Counts packets of a list of rules.
    #[inline(always)]
    pub fn count_rules(&mut self, list: u16, packets: u64, bytes: u64) {
        self.counted.add(list, packets, bytes);
    }

    /// Takes a packet back that was counted since the last [`Self::settle_rules`].
    pub(crate) fn take_back<A: FamilyFlows>(&mut self, place: usize, length: u16, states: &mut StateTable) {
        let list = A::cache(self).subtract(place, length, states);
        self.counted.subtract(list, length.into());
    }

    /// As if the flows whose packets were taken back had not been renewed in this burst.
    pub(crate) fn undo_renewals(&mut self, states: &mut StateTable) {
        self.inet.undo_renewals(states);
        self.inet6.undo_renewals(states);
    }

    /// Adds what was counted in this burst to the rules' counters.
    #[inline]
    pub fn settle_rules(&mut self, counters: &RuleCounters) {
        self.counted.settle(counters);
    }

    /// Adds what was counted to the states.
    pub(crate) fn settle_states(&mut self, states: &mut StateTable) {
        let (inet, inet6, mut accounts) = self.parts(states);
        inet.settle_all(&mut accounts);
        inet6.settle_all(&mut accounts);
    }

    /// As [`Self::settle_states`]. No flow's packets are forwarded elsewhere any more.
    pub(crate) fn recall_all(&mut self, states: &mut StateTable) {
        self.offload.iter().for_each(|offload| offload.end_all());
        let (inet, inet6, mut accounts) = self.parts(states);
        inet.recall_all(&mut accounts);
        inet6.recall_all(&mut accounts);
    }

    /// Adds what was counted of the flow at this place to its states and rules.
    pub(crate) fn settle_place(&mut self, family: Family, place: usize, states: &mut StateTable) {
        let (inet, inet6, mut accounts) = self.parts(states);
        match family {
            Family::Inet => inet.settle(place, &mut accounts),
            Family::Inet6 => inet6.settle(place, &mut accounts),
        }
    }

    /// As [`Self::settle_place`]. The flow's packets are not forwarded elsewhere any more.
    pub(crate) fn recall(&mut self, family: Family, place: usize, states: &mut StateTable) {
        let (inet, inet6, mut accounts) = self.parts(states);
        match family {
            Family::Inet => inet.recall(place, &mut accounts),
            Family::Inet6 => inet6.recall(place, &mut accounts),
        }
    }

    /// Keeps the trace of the packet at this place.
    #[inline(always)]
    pub(crate) fn keep_trace(&mut self, place: usize) {
        if let Some(kept) = self.traces.get_mut(place) {
            *kept = self.trace;
        }
    }

    /// The trace of the packet at this place in the last call.
    #[inline(always)]
    pub fn trace_of(&self, place: usize) -> PassTrace {
        self.traces[place % MOST_TRACES]
    }

    /// Forgets which flows changed.
    #[inline]
    pub fn begin_burst(&mut self) {
        self.changed = [0; CHANGED];
        self.inet.begin_burst();
        self.inet6.begin_burst();
    }

    /// Ends the entries of a state's flows, as it began, ends or changed.
    pub(crate) fn change(&mut self, flows: &[FlowKey; 2], hashes: [u64; 2], states: &mut StateTable) {
        for (word, bit) in hashes.map(changed_bit) {
            self.changed[word] |= bit;
        }
        if !matches!(flows[0].protocol, UDP | TCP) {
            return;
        }
        let (inet, inet6, mut accounts) = self.parts(states);
        for key in flows {
            match key.source.family() {
                Family::Inet => on_flow(inet, key, |cache, flow| cache.remove(flow, &mut accounts)),
                Family::Inet6 => on_flow(inet6, key, |cache, flow| cache.remove(flow, &mut accounts)),
            }
        }
    }

    /// Adds what was counted of a state's flows to their states.
    pub(crate) fn settle_flows(&mut self, flows: &[FlowKey; 2], states: &mut StateTable) {
        let (inet, inet6, mut accounts) = self.parts(states);
        for key in flows {
            match key.source.family() {
                Family::Inet => on_flow(inet, key, |cache, flow| cache.settle_flow(flow, &mut accounts)),
                Family::Inet6 => on_flow(inet6, key, |cache, flow| cache.settle_flow(flow, &mut accounts)),
            }
        }
    }

    /// Moves the windows with which segments of a state's flows are compared elsewhere to those of the states. Says whether any
    /// are.
    pub(crate) fn hand_windows(&mut self, flows: &[FlowKey; 2], states: &mut StateTable) -> bool {
        let (inet, inet6, mut accounts) = self.parts(states);
        let mut is_shared = false;
        for key in flows {
            match key.source.family() {
                Family::Inet => on_flow(inet, key, |cache, flow| {
                    is_shared |= cache.hand_windows(flow, &mut accounts);
                }),
                Family::Inet6 => on_flow(inet6, key, |cache, flow| {
                    is_shared |= cache.hand_windows(flow, &mut accounts);
                }),
            }
        }
        is_shared
    }

    /// Whether a state of the flow with this hash began, ended or changed in this burst.
    fn has_changed(&self, hash: u64) -> bool {
        let (word, bit) = changed_bit(hash);
        self.changed[word] & bit != 0
    }

    /// Learns how the packets of a flow pass, from one of them after its pass out. Returns the place of its entry.
    pub(crate) fn learn(
        &mut self,
        packet: &Packet,
        hash: u64,
        passes: [&PassTrace; 2],
        route: FlowRoute,
        states: &mut StateTable,
    ) -> Option<usize> {
        let ways = FlowWays::new(FlowKey::of(packet), passes, states)?;
        let has_changed =
            self.has_changed(hash) || ways.ends[0] && self.has_changed(states.hash(&ways.before));
        if has_changed || !self.is_current(route.time.stamp) {
            return None;
        }
        let learned = Learned {
            ways,
            interface: packet.pass.received_on,
            states: passes.map(PassTrace::hit),
            rules: self.counted.number(passes[0], passes[1])?,
            route,
        };
        let floor = self.floor;
        let (inet, inet6, mut accounts) = self.parts(states);
        match packet.family {
            Family::Inet => inet.learn(learned.flow()?, floor, &mut accounts),
            Family::Inet6 => inet6.learn(learned.flow()?, floor, &mut accounts),
        }
    }
}

fn changed_bit(hash: u64) -> (usize, u64) {
    ((hash >> 8) as usize % CHANGED, 1 << (hash & 63))
}

/// Does something about a flow, if its cache is not empty.
fn on_flow<A: FlowAddresses>(
    cache: &mut FlowCache<A>,
    key: &FlowKey,
    act: impl FnOnce(&mut FlowCache<A>, &WireFlow<A>),
) {
    if !cache.is_empty()
        && let Some(flow) = WireFlow::of(key, 0)
    {
        act(cache, &flow);
    }
}

/// What a flow is on the wire, before and after both passes.
struct FlowWays {
    before: FlowKey,
    after: FlowKey,
    /// Whether the destination is translated in the pass in, and the source in the pass out.
    ends: [bool; 2],
}

impl FlowWays {
    /// `None` if a pass translates the other end. `between` is the flow of the pass out.
    fn new(between: FlowKey, passes: [&PassTrace; 2], states: &StateTable) -> Option<FlowWays> {
        let [entering, leaving] = passes.map(|pass| pass.hit().and_then(|hit| states.translation(hit)));
        let is_of = |translation: Option<(FlowKey, Rewrite)>, side| {
            translation.is_none_or(|(_, rewrite)| rewrite.side == side)
        };
        let is_usual = is_of(entering, Side::Destination) && is_of(leaving, Side::Source);
        is_usual.then(|| FlowWays {
            before: entering.map_or(between, |(key, _)| key),
            after: leaving.map_or(between, |(_, to)| FlowKey {
                source: to.address,
                source_port: to.port,
                ..between
            }),
            ends: [entering.is_some(), leaving.is_some()],
        })
    }
}

/// What is learned about a flow of any family.
struct Learned {
    ways: FlowWays,
    interface: u16,
    states: FlowStates,
    rules: u16,
    route: FlowRoute,
}

impl Learned {
    fn flow<A: FlowAddresses>(self) -> Option<LearnedFlow<A>> {
        let (FlowRoute { next_hop, time }, FlowWays { before, after, ends }) = (self.route, self.ways);
        let [flow, to] = [before, after].map(|key| WireFlow::of(&key, self.interface));
        let (flow, to) = (flow?, to?);
        let is_translated = ends.contains(&true);
        let translation = is_translated.then(|| FlowTranslation::new(&flow, to, ends));
        let Learned { states, rules, .. } = self;
        Some(LearnedFlow { flow, translation, states, time, next_hop, rules })
    }
}
