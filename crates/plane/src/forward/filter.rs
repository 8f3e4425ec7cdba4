//! The filter around the lookup: every packet is judged as it comes in by its interface, and, if it has a neighbour to go
//! to, once more as it leaves by that of its next hop, as pf and ipfw do for forwarded packets.

use std::sync::Arc;

use fullview_filter::packet::{Direction, NO_INTERFACE, Packet as FilterPacket, Pass};
use fullview_filter::rule::{CompiledRule, RuleAction};
use fullview_filter::ruleset::RuleSet;
use fullview_filter::state::{Adoption, FilterWorker, WorkerLimits};
use fullview_filter::verdict::{DecidedBy, Decision, Verdict as FilterVerdict};
use rustix::time::{ClockId, clock_gettime};

use super::lookup;
use super::source_check::REJECTED;
use super::stage_state::StageState;
use crate::adjacency::AdjacencyKind;
use crate::burst::{BURST, Packet, Slot};
use crate::verdict::{Punt, Reason, Verdict};
use crate::view::View;
use crate::wire::ethernet::HEADER as ETHERNET;

/// What a worker filters with: the rules, which workers share, and its own states.
pub struct BurstFilter {
    rules: Arc<RuleSet>,
    worker: FilterWorker,
    /// The packets of the burst that passed so far, in the order of the lists of destinations.
    packets: Vec<FilterPacket>,
    positions: Vec<u8>,
    decisions: Vec<Decision>,
}

/// The loop does not change addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the forwarding loop does not translate addresses: remove the rules of translation (nat, rdr, binat)"
)]
pub struct UnsupportedFilter;

/// Rules that the loop can enforce.
#[derive(Clone)]
pub struct EnforceableRules(Arc<RuleSet>);

impl EnforceableRules {
    /// Checks a rule set.
    ///
    /// # Errors
    /// Fails for rules that translate addresses.
    pub fn new(rules: RuleSet) -> Result<EnforceableRules, UnsupportedFilter> {
        let translates = |rule: &CompiledRule| matches!(rule.action, RuleAction::Translate(_));
        let any = rules.translations().iter().chain(rules.rules()).any(translates);
        if any { Err(UnsupportedFilter) } else { Ok(EnforceableRules(rules.into())) }
    }

    /// The rule set.
    pub fn rules(&self) -> &Arc<RuleSet> {
        &self.0
    }
}

const PASSED: Decision = Decision { verdict: FilterVerdict::Pass, rule: None, by: DecidedBy::Rule };

impl BurstFilter {
    /// A filter without states. The seed is secret: the places of states follow from it.
    pub fn new(rules: &EnforceableRules, limits: WorkerLimits, seed: u64) -> BurstFilter {
        let rules = Arc::clone(rules.rules());
        BurstFilter {
            worker: FilterWorker::new(limits, rules.counted_rules(), seed),
            rules,
            packets: Vec::with_capacity(BURST),
            positions: Vec::with_capacity(BURST),
            decisions: vec![PASSED; BURST],
        }
    }

    /// The rules.
    pub fn rules(&self) -> &Arc<RuleSet> {
        &self.rules
    }

    /// The states, and the counters of the rules.
    pub fn worker(&self) -> &FilterWorker {
        &self.worker
    }

    /// Goes on with other rules. Returns what it no longer needs, to be freed outside of the data path.
    pub(super) fn adopt(&mut self, rules: Arc<RuleSet>, adoption: Adoption) -> (Arc<RuleSet>, Adoption) {
        (std::mem::replace(&mut self.rules, rules), self.worker.adopt(adoption))
    }

    /// Looks up the packets that the rules let in, and rejects those that they do not let in or out.
    pub(super) fn around_lookup(&mut self, state: &mut StageState, view: &View, packets: &mut [Packet<'_>]) {
        let now = milliseconds();
        self.read(state, packets);
        drop_unread(state, packets);
        self.judge(now, packets);
        lookup::look_up(state, view, packets);
        self.turn_around(state, view, packets);
        self.judge(now, packets);
        mark_rejected(state, packets);
        self.rules.sweep(&mut self.worker, now);
    }

    /// Reads all packets that have a destination to look up.
    fn read(&mut self, state: &StageState, packets: &mut [Packet<'_>]) {
        self.packets.clear();
        self.positions.clear();
        for table in &state.tables {
            let inet = table.inet.destinations.positions();
            for position in inet.chain(table.inet6.destinations.positions()) {
                let slot = &mut *packets[position];
                let read = FilterPacket::parse(&slot.frame()[ETHERNET..], incoming(slot));
                slot.verdict = read.map_or(Verdict::Drop(Reason::FilterUnreadable), |_| Verdict::Forward);
                if let Ok(packet) = read {
                    self.packets.push(packet);
                    self.positions.push(position as u8);
                }
            }
        }
    }

    /// Asks the rules about the packets of the list. The verdicts of those that pass stay as they are.
    fn judge(&mut self, now: u64, packets: &mut [Packet<'_>]) {
        let decisions = &mut self.decisions[..self.packets.len()];
        self.rules.check_burst(&mut self.worker, now, &mut self.packets, decisions);
        for (position, decision) in self.positions.iter().zip(&*decisions) {
            if let Some(reason) = objection(decision.verdict) {
                packets[usize::from(*position)].verdict = Verdict::Drop(reason);
            }
        }
    }

    /// Keeps the packets that will leave, and says by which interface.
    fn turn_around(&mut self, state: &StageState, view: &View, packets: &[Packet<'_>]) {
        let found = state
            .tables
            .iter()
            .flat_map(|table| table.inet.destinations.found().chain(table.inet6.destinations.found()));
        let (mut next, mut kept) = (0, 0);
        for (position, hop) in found {
            if self.positions.get(next).map(|at| usize::from(*at)) != Some(position) {
                continue;
            }
            let mut packet = self.packets[next];
            next += 1;
            let entry = view.adjacencies().get(hop);
            let leaves = matches!(entry.kind, AdjacencyKind::Neighbor | AdjacencyKind::Glean);
            if packets[position].verdict == Verdict::Forward && leaves && packet.ttl > 1 {
                packet.pass = outgoing(packet.pass, entry.interface);
                (self.packets[kept], self.positions[kept]) = (packet, position as u8);
                kept += 1;
            }
        }
        self.packets.truncate(kept);
        self.positions.truncate(kept);
    }
}

/// Packets with options that every router reads have no destination here, and the slow path would forward them.
fn drop_unread(state: &StageState, packets: &mut [Packet<'_>]) {
    for position in state.exceptions.iter() {
        let verdict = &mut packets[position].verdict;
        if *verdict == Verdict::Punt(Punt::Options) {
            *verdict = Verdict::Drop(Reason::FilterUnreadable);
        }
    }
}

/// Takes the next hops of packets that were dropped.
fn mark_rejected(state: &mut StageState, packets: &[Packet<'_>]) {
    for table in &mut state.tables {
        let inet = table.inet.destinations.found_mut();
        for (position, hop) in inet.chain(table.inet6.destinations.found_mut()) {
            if packets[position].verdict != Verdict::Forward {
                *hop = REJECTED;
            }
        }
    }
}

fn incoming(slot: &Slot) -> Pass {
    Pass { direction: Direction::In, interface: slot.interface, received_on: slot.interface }
}

fn outgoing(pass: Pass, interface: u16) -> Pass {
    const { assert!(NO_INTERFACE == crate::adjacency::NO_INTERFACE) };
    Pass { direction: Direction::Out, interface, ..pass }
}

/// Why a packet does not pass. The loop does not answer rejected packets.
fn objection(verdict: FilterVerdict) -> Option<Reason> {
    match verdict {
        FilterVerdict::Pass | FilterVerdict::Translate(_) => None,
        FilterVerdict::Drop(reason) => Some(reason.into()),
        FilterVerdict::Reject(_) => Some(Reason::FilterRule),
    }
}

/// The coarse clock: reading it costs a few nanoseconds a burst, and timeouts are whole seconds.
fn milliseconds() -> u64 {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000
}
