//! Takes the TCP segments of known flows. Their states follow each of them, so they wait until it is known which flows of the
//! burst the rules judge: these judge all segments of such a flow, and those behind one that its states refuse.

use fullview_filter::packet::TcpSegment;
use fullview_filter::ruleset::{follow_segment, may_renew_flow, renew_flow};
use fullview_filter::state::FilterWorker;
use fullview_filter::state::flow::FlowTime;
use fullview_table::NextHop;

use super::flow_places::{FlowPlaces, UNKNOWN};
use super::flow_set::FlowSet;
use super::keys::{FamilyKeys, LookupBatch};
use super::seen_segments::{SeenSegment, SeenSegments};
use super::take_flows::{FlowFilter, Run, destination};
use super::wire_flow::WireFamily;
use crate::burst::BURST;

/// Reads the states of segments, so that the processor fetches all lines at once.
pub(super) fn touch_states<A: WireFamily>(
    places: &FlowPlaces,
    worker: &mut FilterWorker,
    batch: &LookupBatch<A::Key>,
    seen: &SeenSegments,
) {
    let segments = batch.positions().filter(|position| seen.get(*position).is_some());
    worker.touch_states_of::<A>(segments.map(|position| places.get(position) as usize));
}

/// Follows the segments of known flows, counts them, and gives them their next hops. Leaves others to the rules, adds their
/// flows to those that are `judged`, and returns how many they are.
pub(super) fn take_segments<A: WireFamily>(
    places: &mut FlowPlaces,
    filter: &mut FlowFilter<'_>,
    keys: &mut FamilyKeys<A::Key>,
    time: FlowTime,
    seen: &SeenSegments,
    judged: &mut FlowSet,
) -> usize {
    let (mut left, mut run) = (0, Run::default());
    for at in 0..keys.destinations.len() {
        let position = keys.destinations.position(at) % BURST;
        let Some(SeenSegment { segment, length, marks }) = seen.get(position) else { continue };
        let place = places.get(position) as usize;
        let is_judged = marks.any(|marks| judged.depends_on_order(marks));
        if is_judged || !follow::<A>(filter, keys, (at, place), time, segment) {
            places.set(position, UNKNOWN);
            marks.all().for_each(|marks| judged.add_flow(marks));
            left += 1;
            continue;
        }
        let (flows, _) = filter.worker.flows_mut();
        let (next_hop, list) = A::cache(flows).count(place, *length);
        run.count(list, *length, flows);
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
    segment: &TcpSegment,
) -> bool {
    let is_fresh = A::cache(filter.worker.flows_mut().0).is_fresh(place, time.moment);
    if is_fresh {
        return follow_segment::<A>(filter.worker, place, segment);
    }
    let addr = destination::<A>(filter.worker, place, keys.destinations.addr(at));
    let renews = filter.renews();
    let next_hop = || renews.then(|| keys.find(addr).0);
    let follows = may_renew_flow::<A>(filter.rules, filter.worker, place, time, next_hop)
        && follow_segment::<A>(filter.worker, place, segment);
    if follows {
        renew_flow::<A>(filter.worker, place, time);
        filter.share::<A>(place);
    }
    follows
}
