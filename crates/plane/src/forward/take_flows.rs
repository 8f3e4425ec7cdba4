//! Finds the packets of a burst whose flows are known, counts them, and gives them their next hops.
//!
//! Their entries lie anywhere in memory that only the second cache holds. So the memory for several packets is requested
//! before the first of them is looked at; and packets whose states have to be asked again, which are most of them when the
//! clock has just moved on, are put off and asked together. Both loops over all packets do little for each and call no
//! function, so that they keep their values in registers; what is rare is in functions of its own.

use std::ops::{AddAssign, Range};

use fullview_filter::rule::Side;
use fullview_filter::ruleset::{RuleSet, may_renew_flow, renew_flow};
use fullview_filter::state::FilterWorker;
use fullview_filter::state::flow::{
    FamilyFlows, FlowCaches, FlowFinder, FlowHash, FlowLoop, FlowSum, FlowTime, SoughtEntry, SoughtFlow,
    WireFlow, WireHasher,
};
use fullview_table::{NextHop, prefetch_value};

use super::flow_places::{FlowPlaces, UNKNOWN};
use super::keys::{BurstPositions, FamilyKeys};
use super::seen_segments::{SeenSegment, SeenSegments};
use super::wire_flow::WireFamily;
use crate::burst::{Packet, Slot};
use crate::filter_time::step_of;
use crate::kernel_flows::{FlowSharing, KnownFlow};
use crate::view::View;

/// For so many packets at once the memory of their flows is requested.
const STEP: usize = 64;

/// Packets of one step whose states have to be asked.
type PutOff = BurstPositions<STEP>;

/// The filter, as far as known flows need it.
pub(super) struct FlowFilter<'f> {
    pub rules: &'f RuleSet,
    pub worker: &'f mut FilterWorker,
    /// Shares flows with a program in the kernel.
    pub sharing: Option<&'f mut FlowSharing>,
    pub view: &'f View,
    /// In milliseconds.
    pub time: u64,
}

impl FlowFilter<'_> {
    /// The time of the burst's packets.
    pub fn now(&self) -> u64 {
        step_of(self.time)
    }

    /// Whether a flow is still known if its route changed and is the same again: no check of sources has to be made anew.
    pub fn renews(&self) -> bool {
        !self.view.checks_sources()
    }

    /// Shares a flow that was learned or renewed.
    pub fn share<A: FamilyFlows>(&mut self, place: usize) {
        let (rules, view, now) = (self.rules, self.view, self.time);
        if let Some(sharing) = &mut self.sharing {
            sharing.share::<A>(KnownFlow { rules, view, place, now }, self.worker);
        }
    }
}

/// How many packets of a burst are of known flows.
#[derive(Clone, Copy, Default)]
pub(super) struct KnownPackets {
    pub all: usize,
    /// Those of TCP among them, which [`take_segments`](super::take_segments) has to follow.
    pub segments: usize,
    /// Whether any is of a flow that is translated.
    pub is_translated: bool,
}

impl AddAssign for KnownPackets {
    fn add_assign(&mut self, more: KnownPackets) {
        self.all += more.all;
        self.segments += more.segments;
        self.is_translated |= more.is_translated;
    }
}

/// The flows of some packets, between two loops: see [`SoughtFlow`].
pub(super) struct SoughtFlows<A> {
    flows: Box<[WireFlow<A>; STEP]>,
    entries: Box<[SoughtEntry; STEP]>,
    /// The list of rules that counted the last packet.
    list: u16,
}

impl<A: FamilyFlows> SoughtFlows<A> {
    pub fn new() -> Self {
        let (flow, entry) = SoughtFlow::default();
        SoughtFlows { flows: Box::new([flow; STEP]), entries: Box::new([entry; STEP]), list: 0 }
    }

    /// From this packet on.
    #[inline(always)]
    fn from(&self, first: usize) -> impl Iterator<Item = (&WireFlow<A>, &SoughtEntry)> {
        self.flows[first..].iter().zip(&self.entries[first..])
    }
}

/// The packets of one family and table, and what is found out about them.
pub(super) struct FlowBatch<'b, 'f, 'p, A: WireFamily> {
    /// Where the flows are.
    pub places: &'b mut FlowPlaces,
    pub filter: &'b mut FlowFilter<'f>,
    pub keys: &'b mut FamilyKeys<A::Key>,
    pub packets: &'b [Packet<'p>],
    /// Gets the segments.
    pub seen: &'b mut SeenSegments,
    /// Of the table's routes.
    pub time: FlowTime,
    pub sought: &'b mut SoughtFlows<A>,
}

impl<A: WireFamily> FlowBatch<'_, '_, '_, A> {
    /// Gives the packets of known flows except TCP their next hops, and notes the places of all of them.
    pub fn take(&mut self) -> KnownPackets {
        let len = self.keys.destinations.len();
        let (mut known, mut run) =
            (KnownPackets::default(), Run { list: self.sought.list, ..Run::default() });
        let mut put_off = PutOff::NONE;
        for first in (0..len).step_by(STEP) {
            let step = first..len.min(first + STEP);
            self.find(step.clone());
            known += self.count(step, &mut run, &mut put_off);
            if put_off.len() > 0 {
                known.all += self.renew(&mut run, &put_off);
                put_off.clear();
            }
        }
        self.sought.list = run.list;
        run.settle(self.filter.worker.flows_mut().0);
        known
    }

    /// Reads the flows, and requests the memory of their entries.
    fn find(&mut self, step: Range<usize>) {
        let finder = A::cache(self.filter.worker.flows_mut().0).finder();
        let (positions, packets) = (self.keys.destinations.positions_in(step), self.packets);
        let SoughtFlows { flows, entries, .. } = &mut *self.sought;
        finder.isa().run(Find { finder, flows: &mut **flows, entries: &mut **entries, positions, packets });
    }

    /// Counts the packets of known flows, except those whose states have to be asked.
    fn count(&mut self, step: Range<usize>, run: &mut Run, put_off: &mut PutOff) -> KnownPackets {
        let isa = A::cache(self.filter.worker.flows_mut().0).finder().isa();
        isa.run(Count { batch: self, step, run, put_off })
    }

    /// Counts packets from this one on, up to one that is not just counted. Returns how many they are.
    #[inline(always)]
    fn count_run(&mut self, at: usize, step: &Range<usize>, run: &mut Run) -> usize {
        let packets =
            self.sought.from(at - step.start).zip(self.keys.destinations.next_hops_in(at..step.end));
        let cache = A::cache(self.filter.worker.flows_mut().0);
        let sum = cache.count_run(packets, (self.time.moment, run.list));
        run.add(sum)
    }

    /// The same for packets that are to be translated, whose places it notes.
    #[inline(never)]
    fn count_translated_run(&mut self, at: usize, step: &Range<usize>, run: &mut Run) -> usize {
        let sought = self.sought.from(at - step.start);
        let (positions, next_hops) = self.keys.destinations.parts_in(at..step.end);
        let (packets, mut positions) = (sought.zip(next_hops), positions.iter());
        let places = &mut *self.places;
        let cache = A::cache(self.filter.worker.flows_mut().0);
        let sum = cache.count_translated_run(packets, (self.time.moment, run.list), |place, translation| {
            prefetch_value(translation);
            positions.next().into_iter().for_each(|position| places.set((*position).into(), place as u32));
        });
        run.add(sum)
    }

    /// Finds segments of known flows from this packet on, which are followed later. Returns how many they are.
    #[inline(never)]
    fn find_segment_run(&mut self, at: usize, step: &Range<usize>) -> KnownPackets {
        let mut positions = self.keys.destinations.positions_in(at..step.end).iter();
        let (packets, places, seen) = (self.packets, &mut *self.places, &mut *self.seen);
        let mut is_translated = false;
        let cache = A::cache(self.filter.worker.flows_mut().0);
        let found = |place: usize| {
            let Some(position) = positions.next().map(|position| usize::from(*position)) else {
                return false;
            };
            let Some(segment) = SeenSegment::of(cache, place, packets[position]) else { return false };
            is_translated |= segment.marks.is_translated();
            prefetch_value(cache.memory_of_states(place));
            seen.add(position, segment);
            places.set(position, place as u32);
            true
        };
        let all = cache.find_run(self.sought.from(at - step.start), self.time.moment, found);
        KnownPackets { all, segments: all, is_translated }
    }

    /// Counts a packet that ends a run, whose flow may be translated; leaves a segment of a known flow to
    /// [`take_segments`](super::take_segments), a packet whose states have to be asked to [`Self::renew`], and all others to the
    /// rules.
    #[inline(never)]
    fn count_other(
        &mut self,
        at: usize,
        hash: FlowHash,
        run: &mut Run,
        put_off: &mut PutOff,
    ) -> KnownPackets {
        let position = self.keys.destinations.position(at);
        let slot = &*self.packets[position];
        let seen = A::read(slot);
        let (flows, _) = self.filter.worker.flows_mut();
        let found = if seen.is_plain { A::cache(flows).find(hash, &seen.flow) } else { None };
        // An ended entry does not say what its packets become, which their order may depend on.
        let stamp = found.map(|place| A::cache(flows).route(place).0);
        let found = found.filter(|_| stamp.is_some_and(|stamp| flows.is_current(stamp)));
        let cache = A::cache(flows);
        // A segment that is not a plain one may change its states.
        let segment = found.filter(|_| seen.is_segment).and_then(|place| SeenSegment::of(cache, place, slot));
        let known = found.filter(|_| segment.is_some() || !seen.is_segment);
        self.places.set(position, known.map_or(UNKNOWN, |place| place as u32));
        let Some(place) = known else { return KnownPackets::default() };
        let is_translated = cache.translation(place).is_some();
        if let Some(segment) = segment {
            self.seen.add(position, segment);
            return KnownPackets { all: 1, segments: 1, is_translated };
        }
        if !cache.is_fresh(place, self.time.moment) {
            put_off.push(at);
            return KnownPackets { all: 0, segments: 0, is_translated };
        }
        self.count_one(at, (place, seen.length), run);
        KnownPackets { all: 1, segments: 0, is_translated }
    }

    fn count_one(&mut self, at: usize, (place, length): (usize, u16), run: &mut Run) {
        let (flows, _) = self.filter.worker.flows_mut();
        let (next_hop, list) = A::cache(flows).count(place, length);
        run.count(list, length, flows);
        self.keys.destinations.set_next_hop(at, NextHop(next_hop));
    }

    /// Counts the packets whose states are alive.
    #[cold]
    fn renew(&mut self, run: &mut Run, put_off: &PutOff) -> usize {
        let places = put_off.iter().map(|at| self.places.get(self.keys.destinations.position(at)) as usize);
        self.filter.worker.touch_states_of::<A>(places);
        let (mut known, time) = (0, self.time);
        for at in put_off.iter() {
            let position = self.keys.destinations.position(at);
            let place = self.places.get(position) as usize;
            let addr = destination::<A>(self.filter.worker, place, self.keys.destinations.addr(at));
            let (renews, FlowFilter { rules, worker, .. }) = (self.filter.renews(), &mut *self.filter);
            let next_hop = || renews.then(|| self.keys.find(addr).0);
            if !may_renew_flow::<A>(rules, worker, place, time, next_hop) {
                self.places.set(position, UNKNOWN);
                continue;
            }
            renew_flow::<A>(worker, place, time);
            self.filter.share::<A>(place);
            self.count_one(at, (place, A::read(self.packets[position]).length), run);
            known += 1;
        }
        known
    }
}

/// What is looked up for the packets of the flow at this place, on which the wire shows this destination.
pub(super) fn destination<A: WireFamily>(worker: &mut FilterWorker, place: usize, seen: A::Key) -> A::Key {
    let translation = A::cache(worker.flows_mut().0).translation(place);
    translation.map_or(seen, |translation| A::key(translation.to.end(Side::Destination).0))
}

/// The packets at these positions, whose flows are read.
struct Find<'b, 'p, A> {
    finder: FlowFinder<'b, A>,
    flows: &'b mut [WireFlow<A>],
    entries: &'b mut [SoughtEntry],
    positions: &'b [u8],
    packets: &'b [Packet<'p>],
}

impl<A: WireFamily> FlowLoop for Find<'_, '_, A> {
    type Output = ();

    #[inline(always)]
    fn run(self, hasher: impl WireHasher) {
        let Find { finder, flows, entries, positions, packets } = self;
        // So that the loop does not ask for each packet whether there are entries.
        if finder.is_empty() {
            return;
        }
        let slot = |position: &u8| &*packets[usize::from(*position)];
        let at_once = positions.len() & !3;
        let (fours, positions) = positions.split_at(at_once);
        let ((flows, flow), (entries, entry)) = (flows.split_at_mut(at_once), entries.split_at_mut(at_once));
        let sought = flows.as_chunks_mut().0.iter_mut().zip(entries.as_chunks_mut().0);
        for ((flows, entries), [a, b, c, d]) in sought.zip(fours.as_chunks().0) {
            let slots = [slot(a), slot(b), slot(c), slot(d)];
            if !A::seek_four(slots, &finder, hasher, (flows, entries)) {
                for ((flow, entry), slot) in flows.iter_mut().zip(&mut *entries).zip(slots) {
                    (*flow, *entry) = seek(slot, &finder, hasher);
                }
            }
            entries.iter().for_each(|entry| request(entry, &finder));
        }
        for ((flow, entry), position) in flow.iter_mut().zip(entry).zip(positions) {
            let found = seek(slot(position), &finder, hasher);
            request(&found.1, &finder);
            (*flow, *entry) = found;
        }
    }
}

#[inline(always)]
fn seek<A: WireFamily>(slot: &Slot, finder: &FlowFinder<'_, A>, hasher: impl WireHasher) -> SoughtFlow<A> {
    A::seek(slot, finder, hasher).unwrap_or_default()
}

/// Requests the memory of the entry that the flow most often has.
#[inline(always)]
fn request<A: WireFamily>(sought: &SoughtEntry, finder: &FlowFinder<'_, A>) {
    finder.memory(sought.hash).into_iter().for_each(prefetch_value);
}

/// The packets of a step, which are counted.
struct Count<'c, 'b, 'f, 'p, A: WireFamily> {
    batch: &'c mut FlowBatch<'b, 'f, 'p, A>,
    step: Range<usize>,
    run: &'c mut Run,
    put_off: &'c mut PutOff,
}

impl<A: WireFamily> FlowLoop for Count<'_, '_, '_, '_, A> {
    type Output = KnownPackets;

    #[inline(always)]
    fn run(self, _: impl WireHasher) -> KnownPackets {
        let Count { batch, step, run, put_off } = self;
        let (mut known, mut at) = (KnownPackets::default(), step.start);
        let translates = !A::cache(batch.filter.worker.flows_mut().0).translates_none();
        loop {
            let counted = batch.count_run(at, &step, run);
            known.all += counted;
            at += counted;
            if at >= step.end {
                return known;
            }
            let segments = batch.find_segment_run(at, &step);
            if segments.all > 0 {
                known += segments;
                at += segments.all;
                continue;
            }
            if translates {
                let counted = batch.count_translated_run(at, &step, run);
                if counted > 0 {
                    known += KnownPackets { all: counted, segments: 0, is_translated: true };
                    at += counted;
                    continue;
                }
            }
            let hash = batch.sought.entries[at - step.start].hash;
            known += batch.count_other(at, hash, run, put_off);
            at += 1;
        }
    }
}

/// Consecutive packets that the same rules count.
#[derive(Default)]
pub(super) struct Run {
    list: u16,
    packets: u64,
    bytes: u64,
}

impl Run {
    /// Adds packets that its rules count. Returns how many they are.
    #[inline(always)]
    fn add(&mut self, sum: FlowSum) -> usize {
        self.packets += sum.packets();
        self.bytes += sum.bytes();
        sum.packets() as usize
    }

    #[inline(always)]
    pub fn count(&mut self, list: u16, length: u16, flows: &mut FlowCaches) {
        if list != self.list {
            self.settle(flows);
            self.list = list;
        }
        self.packets += 1;
        self.bytes += u64::from(length);
    }

    #[inline(always)]
    pub fn settle(&mut self, flows: &mut FlowCaches) {
        if self.packets > 0 {
            flows.count_rules(self.list, self.packets, self.bytes);
            (self.packets, self.bytes) = (0, 0);
        }
    }
}
