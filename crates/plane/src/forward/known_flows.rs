//! Packets of flows that the filter knows: their verdicts and next hops follow from the packets before them, so they take
//! part in no lookup and in neither pass of the filter.
//!
//! Such a packet is counted before other packets of the burst are judged. That makes a difference only if one of these is
//! of the same flow and comes first; then all packets of the flow are judged in their order.

use fullview_filter::address::Family;
use fullview_filter::packet::Packet as FilterPacket;
use fullview_filter::ruleset::{learn_flow, may_learn_flow};
use fullview_filter::state::FilterWorker;
use fullview_filter::state::flow::{
    FlowCaches, FlowRoute, FlowTime, Inet6Addresses, InetAddresses, PassTrace,
};
use fullview_table::NextHop;

use super::flow_places::{FlowPlaces, UNKNOWN};
use super::flow_set::{FlowSet, KnownMarks};
use super::keys::{FamilyKeys, LookupBatch, TableKeys};
use super::seen_segments::SeenSegments;
use super::take_flows::{FlowBatch, FlowFilter, KnownPackets, SoughtFlows};
use super::take_segments::{take_segments, touch_states};
use super::translations::Translations;
use super::wire_flow::WireFamily;
use crate::burst::{BURST, Packet};

/// What the routes of a table and family are now.
#[derive(Clone, Copy)]
struct RoutesNow {
    generation: u64,
    time: FlowTime,
}

/// A packet that leaves and may be the one that its flow is learned from.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    pub entering: PassTrace,
    pub next_hop: NextHop,
    pub table: u16,
}

/// What the loop keeps about known flows.
pub(super) struct KnownFlows {
    /// For each table: IPv4 and IPv6.
    routes: Vec<[RoutesNow; 2]>,
    places: FlowPlaces,
    sought: (SoughtFlows<InetAddresses>, SoughtFlows<Inet6Addresses>),
    seen: SeenSegments,
    /// In the order of the packets that leave.
    candidates: Box<[Candidate; BURST]>,
    packets: u64,
}

impl KnownFlows {
    pub fn new() -> KnownFlows {
        let nothing = Candidate { entering: PassTrace::START, next_hop: NextHop::NONE, table: 0 };
        KnownFlows {
            routes: Vec::new(),
            places: FlowPlaces::new(),
            sought: (SoughtFlows::new(), SoughtFlows::new()),
            seen: SeenSegments::new(),
            candidates: Box::new([nothing; BURST]),
            packets: 0,
        }
    }

    /// How many packets were of known flows.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Starts again for another view. Allocates if that has more tables.
    #[cold]
    pub fn follow(&mut self, tables: usize, worker: &mut FilterWorker) {
        worker.end_flows();
        self.routes.clear();
        self.routes.resize(tables, [RoutesNow::UNKNOWN; 2]);
    }

    /// Gives the packets of known flows their next hops, translates those of translated ones, and hides them from the stages until
    /// [`show`]. Says whether the rules have to judge others.
    pub fn take(
        &mut self,
        filter: &mut FlowFilter<'_>,
        tables: &mut [TableKeys],
        packets: &mut [Packet<'_>],
        translations: &mut Translations,
    ) -> bool {
        filter.worker.flows_mut().0.begin_burst();
        self.places.begin(packets.len());
        self.seen.clear();
        let (mut taken, mut all) = (KnownPackets::default(), 0);
        for (table, routes) in tables.iter_mut().zip(&mut self.routes) {
            let ((inet, inet6), seen) = (&mut self.sought, &mut self.seen);
            taken += routes[0].take(&mut self.places, filter, &mut table.inet, packets, (inet, seen));
            taken += routes[1].take(&mut self.places, filter, &mut table.inet6, packets, (inet6, seen));
            all += table.inet.destinations.len() + table.inet6.destinations.len();
        }
        // If the rules judge no packet of the burst, or all, and no state follows segments, the order does not matter.
        let is_orderless = taken.segments == 0 && !(1..all).contains(&taken.all);
        let left = if is_orderless { 0 } else { self.leave_to_rules(filter, tables, packets, (taken, all)) };
        let known = taken.all - left;
        let (flows, counters) = filter.worker.flows_mut();
        // Not before: what is put off is taken back from what was counted.
        flows.settle_rules(counters);
        if known == 0 {
            return all > 0;
        }
        self.packets += known as u64;
        if taken.is_translated {
            self.translate(filter.worker, tables, packets, translations);
        }
        for table in tables {
            if known == all {
                table.inet.destinations.hide_all();
                table.inet6.destinations.hide_all();
                continue;
            }
            table.inet.destinations.hide(|position| self.places.get(position) != UNKNOWN);
            table.inet6.destinations.hide(|position| self.places.get(position) != UNKNOWN);
        }
        known < all
    }

    /// Translates the packets of known flows that are translated, which were not just counted.
    #[inline(never)]
    fn translate(
        &self,
        worker: &mut FilterWorker,
        tables: &[TableKeys],
        packets: &mut [Packet<'_>],
        translations: &mut Translations,
    ) {
        let (places, flows) = (&self.places, worker.flows_mut().0);
        for TableKeys { inet, inet6 } in tables {
            translate::<InetAddresses>(places, flows, &inet.destinations, packets, translations);
            translate::<Inet6Addresses>(places, flows, &inet6.destinations, packets, translations);
        }
    }

    /// Takes the segments of known flows, and leaves packets to the rules whose flows have others that these judge. Returns how
    /// many of the packets of known flows are left.
    #[inline(never)]
    fn leave_to_rules(
        &mut self,
        filter: &mut FlowFilter<'_>,
        tables: &mut [TableKeys],
        packets: &[Packet<'_>],
        (taken, all): (KnownPackets, usize),
    ) -> usize {
        let (mut left, mut judged) = (0, FlowSet::default());
        if (1..all).contains(&taken.all) {
            self.add_judged(&mut judged, filter.worker, tables, packets);
            left += self.put_off(&judged, filter.worker, tables, packets);
        }
        if taken.segments > 0 {
            left += self.take_segments(filter, tables, &mut judged);
        }
        left
    }

    /// Adds the flows of the packets in the burst that the rules judge.
    #[cold]
    fn add_judged(
        &self,
        judged: &mut FlowSet,
        worker: &FilterWorker,
        tables: &[TableKeys],
        packets: &[Packet<'_>],
    ) {
        for TableKeys { inet, inet6 } in tables {
            add_judged::<InetAddresses>(judged, worker, &self.places, &inet.destinations, packets);
            add_judged::<Inet6Addresses>(judged, worker, &self.places, &inet6.destinations, packets);
        }
    }

    /// Leaves counted packets to the rules whose flows have another packet in the burst that the rules judge. Returns how many.
    #[cold]
    fn put_off(
        &mut self,
        judged: &FlowSet,
        worker: &mut FilterWorker,
        tables: &[TableKeys],
        packets: &[Packet<'_>],
    ) -> usize {
        let (mut taken, places) = (0, &mut self.places);
        for TableKeys { inet, inet6 } in tables {
            taken += take_back::<InetAddresses>(judged, places, worker, &inet.destinations, packets);
            taken += take_back::<Inet6Addresses>(judged, places, worker, &inet6.destinations, packets);
        }
        worker.undo_renewals();
        taken
    }

    /// Takes the segments of known flows. Returns how many are left to the rules.
    fn take_segments(
        &mut self,
        filter: &mut FlowFilter<'_>,
        tables: &mut [TableKeys],
        judged: &mut FlowSet,
    ) -> usize {
        let (mut left, places, seen) = (0, &mut self.places, &self.seen);
        seen.iter().for_each(|segment| judged.note_segment(segment.marks.between));
        for TableKeys { inet, inet6 } in &*tables {
            touch_states::<InetAddresses>(places, filter.worker, &inet.destinations, seen);
            touch_states::<Inet6Addresses>(places, filter.worker, &inet6.destinations, seen);
        }
        for (table, [inet, inet6]) in tables.iter_mut().zip(&self.routes) {
            let keys = &mut table.inet;
            left += take_segments::<InetAddresses>(places, filter, keys, inet.time, seen, judged);
            let keys = &mut table.inet6;
            left += take_segments::<Inet6Addresses>(places, filter, keys, inet6.time, seen, judged);
        }
        left
    }

    /// Notes a packet that leaves, as the next one of the list.
    #[inline(always)]
    pub fn note(&mut self, place: usize, candidate: Candidate) {
        self.candidates[place % BURST] = candidate;
    }

    /// Learns the flows of the packets that left.
    pub fn learn(
        &self,
        filter: &mut FlowFilter<'_>,
        tables: &mut [TableKeys],
        packets: &[FilterPacket],
        hashes: &[u64],
    ) {
        for (place, (packet, hash)) in packets.iter().zip(hashes).enumerate() {
            let Candidate { entering, next_hop, table } = &self.candidates[place % BURST];
            let of = usize::from(*table);
            if !may_learn_flow(filter.worker, packet, place, entering) {
                continue;
            }
            // The member of a group that other packets of the flow take may change: only a route's own next hop is kept.
            let (routes, found) = match packet.family {
                Family::Inet => (self.routes[of][0], tables[of].inet.find(packet.destination.0 as u32)),
                Family::Inet6 => (self.routes[of][1], tables[of].inet6.find(packet.destination.0)),
            };
            if found == *next_hop {
                let route = FlowRoute { next_hop: next_hop.0, time: routes.time };
                let learned = learn_flow(filter.worker, packet, (place, *hash), entering, route);
                learned.into_iter().for_each(|at| share(filter, packet.family, at));
            }
        }
    }
}

fn share(filter: &mut FlowFilter<'_>, family: Family, place: usize) {
    match family {
        Family::Inet => filter.share::<InetAddresses>(place),
        Family::Inet6 => filter.share::<Inet6Addresses>(place),
    }
}

/// Shows the packets again that were hidden.
pub(super) fn show(tables: &mut [TableKeys]) {
    for table in tables {
        table.inet.destinations.show();
        table.inet6.destinations.show();
    }
}

impl RoutesNow {
    const UNKNOWN: RoutesNow = RoutesNow { generation: 0, time: FlowTime { stamp: 0, now: 0, moment: 0 } };

    /// Gives the packets of known flows except TCP their next hops.
    fn take<A: WireFamily>(
        &mut self,
        places: &mut FlowPlaces,
        filter: &mut FlowFilter<'_>,
        keys: &mut FamilyKeys<A::Key>,
        packets: &[Packet<'_>],
        (sought, seen): (&mut SoughtFlows<A>, &mut SeenSegments),
    ) -> KnownPackets {
        let len = keys.destinations.len();
        if len == 0 {
            return KnownPackets::default();
        }
        let (now, (flows, _)) = (filter.now(), filter.worker.flows_mut());
        let generation = keys.reader.generation();
        if !flows.is_current(self.time.stamp) || self.generation != generation {
            let stamp = flows.new_stamp();
            *self = RoutesNow { generation, time: FlowTime { stamp, now, moment: stamp } };
        }
        if self.time.now != now {
            self.time = FlowTime { now, moment: flows.new_stamp(), ..self.time };
        }
        if A::cache(flows).is_empty() {
            keys.destinations.positions().for_each(|position| places.set(position, UNKNOWN));
            return KnownPackets::default();
        }
        FlowBatch { places, filter, keys, packets, seen, time: self.time, sought }.take()
    }
}

fn add_judged<A: WireFamily>(
    judged: &mut FlowSet,
    worker: &FilterWorker,
    places: &FlowPlaces,
    batch: &LookupBatch<A::Key>,
    packets: &[Packet<'_>],
) {
    for position in batch.positions().filter(|position| places.get(*position) == UNKNOWN) {
        judged.add::<A>(packets[position]);
        let between = worker.between(&A::read(packets[position]).flow);
        between.into_iter().for_each(|flow| judged.add_flow(flow.marks()));
    }
}

fn translate<A: WireFamily>(
    places: &FlowPlaces,
    flows: &mut FlowCaches,
    batch: &LookupBatch<A::Key>,
    packets: &mut [Packet<'_>],
    translations: &mut Translations,
) {
    let cache = A::cache(flows);
    for position in batch.positions() {
        // Those that are just counted, or that are of no known flow, have no entry's place.
        let place = places.get(position) as usize;
        if let Some(translation) = cache.translation(place) {
            translations.translate_known(position, packets[position], (cache.flow(place), translation));
        }
    }
}

fn take_back<A: WireFamily>(
    judged: &FlowSet,
    places: &mut FlowPlaces,
    worker: &mut FilterWorker,
    batch: &LookupBatch<A::Key>,
    packets: &[Packet<'_>],
) -> usize {
    let mut taken = 0;
    for position in batch.positions() {
        let (place, seen) = (places.get(position), A::read(packets[position]));
        // Segments were not counted yet.
        if place == UNKNOWN || seen.is_segment {
            continue;
        }
        let cache = A::cache(worker.flows_mut().0);
        if KnownMarks::of(cache, place, &seen.flow).any(|marks| judged.contains(marks)) {
            let entry = cache.find(cache.hash(&seen.flow), &seen.flow);
            entry.into_iter().for_each(|entry| worker.take_back::<A>(entry, seen.length));
            places.set(position, UNKNOWN);
            taken += 1;
        }
    }
    taken
}
