//! Flows whose packets need no rules: when they are learned, and when their states are asked again.

use super::parts::RuleSet;
use super::records::lifetime;
use crate::packet::protocol::{UDP, tcp};
use crate::packet::{Packet, TcpSegment};
use crate::state::flow::{FamilyFlows, FlowRoute, FlowStates, FlowTime, PassTrace};
use crate::state::{Comparison, FilterWorker, StateTable};

/// Whether the flow of a packet can be learned: the next packet will pass both interfaces in the same way.
#[inline]
pub fn may_learn_flow(worker: &FilterWorker, packet: &Packet, place: usize, entering: &PassTrace) -> bool {
    let repeats = |pass: &PassTrace| pass.repeats() && is_steady(&worker.states, pass);
    let is_of_kind =
        packet.protocol == UDP || packet.tcp().is_some_and(|segment| tcp::is_plain(segment.flags));
    let has_plain_header = !packet.has_options && !packet.has_extensions && !packet.is_fragment();
    let is_plain = is_of_kind && has_plain_header;
    is_plain && worker.flows.room() > 0 && repeats(entering) && repeats(&worker.flows.trace_of(place))
}

/// Learns how the packets of a flow pass both interfaces, from the packet at `place` in the last call of
/// [`RuleSet::check_hashed_burst`], which leaves, and from the trace of its pass in. Returns the place of its entry.
pub fn learn_flow(
    worker: &mut FilterWorker,
    packet: &Packet,
    (place, hash): (usize, u64),
    entering: &PassTrace,
    route: FlowRoute,
) -> Option<usize> {
    let leaving = worker.flows.trace_of(place);
    let FilterWorker { flows, states, .. } = worker;
    flows.learn(packet, hash, [entering, &leaving], route, states)
}

/// Asks the states of a flow that has a packet now. Returns whether all are alive, and the flow is still what was
/// learned; then [`renew_flow`] follows. `next_hop` looks up the route if it may have changed, unless that would not suffice.
#[cold]
pub fn may_renew_flow<A: FamilyFlows>(
    rules: &RuleSet,
    worker: &mut FilterWorker,
    place: usize,
    time: FlowTime,
    next_hop: impl FnOnce() -> Option<u16>,
) -> bool {
    let (known, hop) = A::cache(&mut worker.flows).route(place);
    if !worker.flows.is_current(known) || known != time.stamp && next_hop() != Some(hop) {
        return false;
    }
    let ids = A::cache(&mut worker.flows).states(place);
    !ids.into_iter().any(|id| rules.has_expired(worker, id, time.now as u32))
}

/// Notes that a flow has a packet now.
pub fn renew_flow<A: FamilyFlows>(worker: &mut FilterWorker, place: usize, time: FlowTime) {
    let FilterWorker { flows, states, .. } = worker;
    A::cache(flows).renew(place, time, states);
}

/// Follows a plain segment of a flow in its states. Returns `false`, and changes nothing, if the rules have to judge it.
#[inline]
pub fn follow_segment<A: FamilyFlows>(worker: &mut FilterWorker, place: usize, segment: &TcpSegment) -> bool {
    let hits = A::cache(&mut worker.flows).hits(place);
    match hits.into_iter().flatten().any(|hit| worker.states.is_shared(hit.id)) {
        false => worker.states.follow_segment(hits, segment),
        true => follow_shared(worker, hits, segment),
    }
}

#[cold]
fn follow_shared(worker: &mut FilterWorker, hits: FlowStates, segment: &TcpSegment) -> bool {
    let ids = hits.map(|hit| hit.map(|hit| hit.id)).into_iter().flatten();
    ids.clone().for_each(|id| worker.fetch_windows(id));
    let is_followed = worker.states.follow_segment(hits, segment);
    if is_followed {
        ids.for_each(|id| worker.hand_windows_of(id));
    }
    is_followed
}

/// What has to be compared of the packets of a flow that are forwarded elsewhere.
pub fn comparison<A: FamilyFlows>(worker: &mut FilterWorker, place: usize) -> Comparison {
    worker.states.comparison(A::cache(&mut worker.flows).hits(place))
}

/// Notes that the windows of a flow's connection are moved elsewhere too.
pub fn share_windows<A: FamilyFlows>(worker: &mut FilterWorker, place: usize) {
    let ids = A::cache(&mut worker.flows).states(place);
    ids.for_each(|id| worker.states.set_shared(id, true));
}

/// How long the flow at this place may be without packets, in milliseconds, before one of its states ends. The longest time
/// if no state decides.
pub fn flow_lifetime<A: FamilyFlows>(rules: &RuleSet, worker: &mut FilterWorker, place: usize) -> u32 {
    let ids = A::cache(&mut worker.flows).states(place);
    ids.map(|id| lifetime(rules, worker, id)).min().unwrap_or(u32::MAX)
}

/// Brings the states and rules of a flow up to date whose packets are forwarded elsewhere. Takes the flow back, and returns
/// `false`, if one of its states has expired.
pub fn follow_offloaded<A: FamilyFlows>(
    rules: &RuleSet,
    worker: &mut FilterWorker,
    place: usize,
    now: u64,
) -> bool {
    worker.flows.settle_place(A::FAMILY, place, &mut worker.states);
    let ids = A::cache(&mut worker.flows).states(place);
    let is_over = ids.into_iter().any(|id| rules.has_expired(worker, id, now as u32));
    if is_over {
        recall_flow::<A>(worker, place);
    }
    !is_over
}

/// Takes a flow back whose packets are forwarded elsewhere.
pub fn recall_flow<A: FamilyFlows>(worker: &mut FilterWorker, place: usize) {
    worker.flows.recall(A::FAMILY, place, &mut worker.states);
}

fn is_steady(states: &StateTable, pass: &PassTrace) -> bool {
    pass.hit().is_none_or(|hit| states.is_steady(hit.id, hit.forward))
}
