//! Takes the TCP segments of known flows. Their states follow each of them, so they wait until it is known which flows of the
//! burst the rules judge: these judge all segments of such a flow, and those behind one that its states refuse.

use fullview_filter::ruleset::{follow_segment, may_renew_flow, renew_flow};
use fullview_filter::state::FilterWorker;
use fullview_filter::state::flow::FlowTime;
use fullview_table::NextHop;

use super::flow_set::{FlowSet, KnownMarks};
use super::keys::{FamilyKeys, LookupBatch};
use super::take_flows::{FlowFilter, Run, UNKNOWN, destination};
use super::wire_flow::WireFamily;
use crate::burst::{BURST, Packet, Slot};

/// Notes the segments of known flows.
pub(super) fn note_segments<A: WireFamily>(
    places: &[u32; BURST],
    worker: &mut FilterWorker,
    batch: &LookupBatch<A::Key>,
    packets: &[Packet<'_>],
    judged: &mut FlowSet,
) {
    for position in batch.positions().filter(|position| places[*position % BURST] != UNKNOWN) {
        let seen = A::read(packets[position]);
        if seen.is_segment {
            let cache = A::cache(worker.flows_mut().0);
            judged.note_segment(KnownMarks::of(cache, places[position % BURST], &seen.flow).between);
        }
    }
}

/// Follows the segments of known flows, counts them, and gives them their next hops. Leaves others to the rules, adds their
/// flows to those that are `judged`, and returns how many they are.
pub(super) fn take_segments<A: WireFamily>(
    places: &mut [u32; BURST],
    filter: &mut FlowFilter<'_>,
    keys: &mut FamilyKeys<A::Key>,
    time: FlowTime,
    packets: &[Packet<'_>],
    judged: &mut FlowSet,
) -> usize {
    let (mut left, mut run) = (0, Run::default());
    for at in 0..keys.destinations.len() {
        let position = keys.destinations.position(at) % BURST;
        let (slot, place) = (&*packets[position], places[position]);
        let seen = A::read(slot);
        if place == UNKNOWN || !seen.is_segment {
            continue;
        }
        let marks = KnownMarks::of(A::cache(filter.worker.flows_mut().0), place, &seen.flow);
        let is_judged = marks.all().any(|marks| judged.depends_on_order(marks));
        if is_judged || !follow::<A>(filter, keys, (at, place as usize), time, slot) {
            places[position] = UNKNOWN;
            marks.all().for_each(|marks| judged.add_flow(marks));
            left += 1;
            continue;
        }
        let (flows, _) = filter.worker.flows_mut();
        let (next_hop, list) = A::cache(flows).count(place as usize, seen.length);
        run.count(list, seen.length, flows);
        keys.destinations.set_next_hop(at, NextHop(next_hop));
    }
    run.settle(filter.worker.flows_mut().0);
    left
}

/// Whether the flow still is what was learned, and its states take the segment.
#[inline]
fn follow<A: WireFamily>(
    filter: &mut FlowFilter<'_>,
    keys: &mut FamilyKeys<A::Key>,
    (at, place): (usize, usize),
    time: FlowTime,
    slot: &Slot,
) -> bool {
    let Some(segment) = A::segment(slot, A::read(slot).length) else { return false };
    let is_fresh = A::cache(filter.worker.flows_mut().0).is_fresh(place, time.moment);
    if is_fresh {
        return follow_segment::<A>(filter.worker, place, &segment);
    }
    let addr = destination::<A>(filter.worker, place, keys.destinations.addr(at));
    let renews = filter.renews();
    let next_hop = || renews.then(|| keys.find(addr).0);
    let follows = may_renew_flow::<A>(filter.rules, filter.worker, place, time, next_hop)
        && follow_segment::<A>(filter.worker, place, &segment);
    if follows {
        renew_flow::<A>(filter.worker, place, time);
        filter.share::<A>(place);
    }
    follows
}
