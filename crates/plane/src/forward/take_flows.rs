//! Finds the packets of a burst whose flows are known, counts them, and gives them their next hops.
//!
//! Their entries lie anywhere in memory that only the second cache holds. So the memory for several packets is requested
//! before the first of them is looked at; and packets whose states have to be asked again, which are most of them when the
//! clock has just moved on, are put off and asked together.

use std::ops::AddAssign;

use fullview_filter::ruleset::{RuleSet, may_renew_flow, renew_flow};
use fullview_filter::state::FilterWorker;
use fullview_filter::state::flow::{FamilyFlows, FlowCache, FlowCaches};
use fullview_table::NextHop;

use super::keys::FamilyKeys;
use super::wire_flow::WireFamily;
use crate::burst::{BURST, Packet, Slot};
use crate::filter_time::step_of;
use crate::kernel_flows::{FlowSharing, KnownFlow};
use crate::view::View;

/// The place of a packet whose flow is not known.
pub(super) const UNKNOWN: u32 = u32::MAX;

/// For so many packets at once the memory of their flows is requested.
const STEP: usize = 32;

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

/// Packets of a batch and the places of their flows.
struct PutOff {
    len: usize,
    packets: [(u8, u32); STEP],
}

/// How many packets of a burst are of known flows.
#[derive(Clone, Copy, Default)]
pub(super) struct KnownPackets {
    pub all: usize,
    /// Those of TCP among them, which [`take_segments`](super::take_segments) has to follow.
    pub segments: usize,
}

impl AddAssign for KnownPackets {
    fn add_assign(&mut self, more: KnownPackets) {
        self.all += more.all;
        self.segments += more.segments;
    }
}

/// Gives the packets of known flows except TCP their next hops, and notes the places of all of them by their positions.
pub(super) fn take_known<A: WireFamily>(
    places: &mut [u32; BURST],
    filter: &mut FlowFilter<'_>,
    keys: &mut FamilyKeys<A::Key>,
    stamp: u64,
    packets: &[Packet<'_>],
) -> KnownPackets {
    let (mut known, mut run, len) = (KnownPackets::default(), Run::default(), keys.destinations.len());
    for first in (0..len).step_by(STEP) {
        let step = (first, len.min(first + STEP));
        find::<A>(places, filter, keys, step, packets);
        let mut put_off = PutOff { len: 0, packets: [(0, 0); STEP] };
        known += count::<A>(places, filter, keys, (step, stamp), packets, (&mut run, &mut put_off));
        if put_off.len > 0 {
            let put_off = &put_off.packets[..put_off.len];
            known.all += renew::<A>(places, filter, keys, stamp, packets, (&mut run, put_off));
        }
    }
    run.settle(filter.worker.flows_mut().0);
    known
}

/// Finds where the flows are, if they are anywhere.
#[inline(never)]
fn find<A: WireFamily>(
    places: &mut [u32; BURST],
    filter: &mut FlowFilter<'_>,
    keys: &FamilyKeys<A::Key>,
    (first, end): (usize, usize),
    packets: &[Packet<'_>],
) {
    let flows = A::cache(filter.worker.flows_mut().0);
    let (mut touched, mut hashes) = (0, [0; STEP]);
    // In loops of their own, as the processor waits for the memory of the more packets at once, the shorter a loop is.
    for (hash, at) in hashes.iter_mut().zip(first..end) {
        *hash = flows.hash(&A::read(packets[keys.destinations.position(at)]).flow);
        touched ^= flows.touch_slots(*hash);
    }
    for (hash, at) in hashes.iter().zip(first..end) {
        let place = flows.place(*hash);
        places[keys.destinations.position(at) % BURST] = place as u32;
        touched ^= flows.touch(place);
    }
    std::hint::black_box(touched);
}

/// Counts the packets of known flows, except those whose states have to be asked.
#[inline(never)]
fn count<A: WireFamily>(
    places: &mut [u32; BURST],
    filter: &mut FlowFilter<'_>,
    keys: &mut FamilyKeys<A::Key>,
    ((first, end), stamp): ((usize, usize), u64),
    packets: &[Packet<'_>],
    (run, put_off): (&mut Run, &mut PutOff),
) -> KnownPackets {
    let (mut known, since) = (KnownPackets::default(), (stamp, filter.now() as u32));
    let (flows, _) = filter.worker.flows_mut();
    for at in first..end {
        let position = keys.destinations.position(at) % BURST;
        let (seen, place) = (A::read(packets[position]), places[position] as usize);
        let counted = if seen.is_plain & !seen.is_segment {
            A::cache(flows).count_fresh(place, &seen.flow, since, seen.length)
        } else {
            None
        };
        if let Some((next_hop, list)) = counted {
            run.count(list, seen.length, flows);
            keys.destinations.set_next_hop(at, NextHop(next_hop));
            known.all += 1;
        } else {
            known += leave::<A>(&mut places[position], A::cache(flows), packets[position], (at, put_off));
        }
    }
    known
}

/// Leaves a segment of a known flow to [`take_segments`](super::take_segments), a packet whose states have to be asked to
/// [`renew`], and all others to the rules. A function of its own, so that [`count`] keeps its values in registers.
#[inline(never)]
fn leave<A: WireFamily>(
    place: &mut u32,
    cache: &FlowCache<A>,
    slot: &Slot,
    (at, put_off): (usize, &mut PutOff),
) -> KnownPackets {
    let seen = A::read(slot);
    let is_other = seen.is_segment && A::segment(slot, seen.length).is_none();
    if !(cache.has(*place as usize, &seen.flow) & seen.is_plain) || is_other {
        *place = UNKNOWN;
        return KnownPackets::default();
    }
    if seen.is_segment {
        return KnownPackets { all: 1, segments: 1 };
    }
    put_off.packets[put_off.len % STEP] = (at as u8, *place);
    put_off.len += 1;
    KnownPackets::default()
}

/// Counts the packets whose states are alive.
#[cold]
fn renew<A: WireFamily>(
    places: &mut [u32; BURST],
    filter: &mut FlowFilter<'_>,
    keys: &mut FamilyKeys<A::Key>,
    stamp: u64,
    packets: &[Packet<'_>],
    (run, put_off): (&mut Run, &[(u8, u32)]),
) -> usize {
    filter.worker.touch_states_of::<A>(put_off.iter().map(|(_, place)| *place as usize));
    let (mut known, renews) = (0, filter.renews());
    for (at, place) in put_off {
        let (at, place) = (usize::from(*at), *place as usize);
        let position = keys.destinations.position(at);
        let addr = keys.destinations.addr(at);
        let next_hop = || renews.then(|| keys.find(addr).0);
        if !may_renew_flow::<A>(filter.rules, filter.worker, place, (stamp, filter.now()), next_hop) {
            places[position] = UNKNOWN;
            continue;
        }
        renew_flow::<A>(filter.worker, place, (stamp, filter.now()));
        filter.share::<A>(place);
        let (length, (flows, _)) = (A::read(packets[position]).length, filter.worker.flows_mut());
        let (next_hop, list) = A::cache(flows).count(place, length);
        run.count(list, length, flows);
        keys.destinations.set_next_hop(at, NextHop(next_hop));
        known += 1;
    }
    known
}

/// Consecutive packets that the same rules count.
#[derive(Default)]
pub(super) struct Run {
    list: u16,
    packets: u64,
    bytes: u64,
}

impl Run {
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
