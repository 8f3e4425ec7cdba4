//! The filter around the lookup: every packet is judged as it comes in by its interface, and, if it has a neighbour to go
//! to, once more as it leaves by that of its next hop, as pf and ipfw do for forwarded packets.

use std::sync::Arc;

use fullview_filter::address_table::AddressTable;
use fullview_filter::packet::{Direction, NO_INTERFACE, Packet as FilterPacket, Pass};
use fullview_filter::rule::{CompiledRule, RejectWith, RuleAction, TableId, Translation};
use fullview_filter::ruleset::RuleSet;
use fullview_filter::state::{Adoption, FilterWorker, StateSummary, WorkerLimits};
use fullview_filter::verdict::Verdict as FilterVerdict;
use fullview_table::NextHop;

use super::keys::TableKeys;
use super::known_flows::{Candidate, KnownFlows, show};
use super::lookup;
use super::shared_routes::SharedRoutes;
use super::source_check::REJECTED;
use super::stage_state::StageState;
use super::take_flows::FlowFilter;
use super::translations::Translations;
use super::way_out::{WayOut, WaysOut};
use crate::adjacency::AdjacencyKind;
use crate::burst::{BURST, Packet, Slot};
use crate::counters::Counters;
use crate::filter_time::{milliseconds, step_of};
use crate::kernel_flows::{FlowSharing, PortDevice, SharedTotals};
use crate::verdict::{Punt, Reason, RejectAnswer, Verdict};
use crate::view::View;
use crate::wire::ethernet::HEADER as ETHERNET;

/// What a worker filters with: the rules, which workers share, and its own states.
pub struct BurstFilter {
    rules: Arc<RuleSet>,
    worker: FilterWorker,
    /// The packets of the burst that passed so far, in the order of the lists of destinations.
    packets: Vec<FilterPacket>,
    positions: Vec<u8>,
    /// The hash of each packet's flow, which is the same in both passes.
    hashes: Vec<u64>,
    /// How many packets that is.
    len: usize,
    /// Whether any packet of the burst was dropped.
    has_dropped: bool,
    known: KnownFlows,
    /// Shares known flows with a program in the kernel.
    sharing: Option<Box<FlowSharing>>,
    shared_routes: SharedRoutes,
    /// Whether states were swept since the last call of [`Self::sweep_idle`].
    has_swept: bool,
    clock: fn() -> u64,
    translations: Translations,
    ways_out: WaysOut,
}

/// What the loop cannot do for a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedFilter {
    #[error("the router does not add sources to tables: remove `overload` from the rules")]
    Overload,
    #[error(
        "the router's answers state no MTU, and have codes up to 254: write `unreach needfrag` without an MTU, or \
         another code"
    )]
    Unreachable,
}

/// Rules that the loop can enforce.
#[derive(Clone)]
pub struct EnforceableRules(Arc<RuleSet>);

impl EnforceableRules {
    /// Checks a rule set.
    ///
    /// # Errors
    /// Fails for rules that add the sources of packets to a table, and for answers that a verdict has no room for.
    pub fn new(rules: RuleSet) -> Result<EnforceableRules, UnsupportedFilter> {
        let unsupported = rules.rules().iter().find_map(unsupported);
        unsupported.map_or_else(|| Ok(EnforceableRules(rules.into())), Err)
    }

    /// The rule set.
    pub fn rules(&self) -> &Arc<RuleSet> {
        &self.0
    }

    /// The same rules with other tables in place of some.
    pub fn with_tables(&self, tables: impl IntoIterator<Item = (TableId, Arc<AddressTable>)>) -> Self {
        EnforceableRules(Arc::new(self.0.with_tables(tables)))
    }

    /// How the rules translate packets.
    pub fn translations(&self) -> impl Iterator<Item = &Translation> {
        let rules = self.0.translations().iter().chain(self.0.rules());
        rules.filter_map(|rule| match &rule.action {
            RuleAction::Translate(to) => Some(&**to),
            _ => None,
        })
    }
}

fn unsupported(rule: &CompiledRule) -> Option<UnsupportedFilter> {
    let limits = rule.state.as_ref().and_then(|state| state.source.as_ref());
    match &rule.action {
        _ if limits.is_some_and(|limits| limits.overload.is_some()) => Some(UnsupportedFilter::Overload),
        RuleAction::Reject(with) if !has_verdict(with) => Some(UnsupportedFilter::Unreachable),
        _ => None,
    }
}

fn has_verdict(with: &RejectWith) -> bool {
    let codes = [with.icmp, with.icmp6];
    with.mtu == 0 && codes.into_iter().flatten().all(|code| RejectAnswer::unreachable(code).code().is_some())
}

impl BurstFilter {
    /// A filter without states. The seed is secret: the places of states follow from it.
    pub fn new(rules: &EnforceableRules, limits: WorkerLimits, seed: u64) -> BurstFilter {
        let rules = Arc::clone(rules.rules());
        BurstFilter {
            worker: FilterWorker::new(limits, rules.counted_rules(), seed),
            rules,
            packets: vec![FilterPacket::NOTHING; BURST],
            positions: vec![0; BURST],
            hashes: vec![0; BURST],
            len: 0,
            has_dropped: false,
            known: KnownFlows::new(),
            sharing: None,
            shared_routes: SharedRoutes::default(),
            has_swept: false,
            clock: milliseconds,
            translations: Translations::default(),
            ways_out: WaysOut::new(),
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
        (self.replace_rules(rules), self.worker.adopt(adoption))
    }

    /// Goes on with rules that differ only in their tables. Returns the former ones.
    pub fn replace_rules(&mut self, rules: Arc<RuleSet>) -> Arc<RuleSet> {
        self.worker.end_flows();
        std::mem::replace(&mut self.rules, rules)
    }

    /// The rules, and what the worker remembers.
    pub fn parts(&mut self) -> (&Arc<RuleSet>, &mut FilterWorker) {
        (&self.rules, &mut self.worker)
    }

    /// Looks up the packets that the rules let in, and rejects those that they do not let in or out.
    pub(super) fn around_lookup(&mut self, state: &mut StageState, view: &View, packets: &mut [Packet<'_>]) {
        let time = (self.clock)();
        let (rules, worker, sharing) = (&self.rules, &mut self.worker, self.sharing.as_deref_mut());
        let mut filter = FlowFilter { rules, worker, sharing, view, time };
        self.translations.clear();
        let has_others = self.known.take(&mut filter, &mut state.tables, packets, &mut self.translations);
        drop_unread(state, packets);
        state.prefetches = has_others || view.checks_sources();
        if state.prefetches {
            self.judge_around_lookup(state, view, packets, time);
        } else {
            self.begin_judging();
        }
        show(&mut state.tables);
        self.rules.sweep(&mut self.worker, time);
        self.has_swept = true;
    }

    /// Judges the packets that are of no known flow. Most bursts have none, so it is a function of its own.
    #[inline(never)]
    fn judge_around_lookup(
        &mut self,
        state: &mut StageState,
        view: &View,
        packets: &mut [Packet<'_>],
        time: u64,
    ) {
        let now = step_of(time);
        self.read(state, packets);
        self.rules.hash_burst(&self.worker, &self.packets[..self.len], &mut self.hashes);
        self.judge(now, packets);
        if !self.translations.is_undecided() {
            self.translate_incoming(state, packets);
        }
        lookup::look_up(state, view, packets);
        self.turn_around(state, view, packets);
        self.judge(now, packets);
        if !self.translations.is_undecided() {
            self.translate_outgoing(packets);
        }
        if self.has_dropped {
            mark_rejected(state, packets);
        }
        self.learn(state, view, time);
        self.worker.hand_windows();
    }

    /// Learns the flows of the packets that leave.
    fn learn(&mut self, state: &mut StageState, view: &View, time: u64) {
        let (rules, worker, sharing) = (&self.rules, &mut self.worker, self.sharing.as_deref_mut());
        let mut filter = FlowFilter { rules, worker, sharing, view, time };
        let (judged, hashes) = (&self.packets[..self.len], &self.hashes[..self.len]);
        self.known.learn(&mut filter, &mut state.tables, judged, hashes);
    }

    /// Forgets the packets of the burst before.
    fn begin_judging(&mut self) {
        (self.len, self.has_dropped) = (0, false);
    }

    /// Follows another view with so many tables: what is known about flows depends on it.
    pub(super) fn follow(&mut self, tables: usize) {
        self.known.follow(tables, &mut self.worker);
    }

    /// Follows another view that differs by adjacencies only. With a check of sources flows depend on those of other next hops too.
    pub(super) fn follow_adjacencies(&mut self, former: &View, view: &View) {
        let of = |view: &View, hop| *view.adjacencies().get(NextHop(hop));
        self.worker.end_flows_by(|hop| view.checks_sources() || of(view, hop) != of(former, hop));
    }

    /// Keeps so many flows of each family whose packets need no rules, or none.
    pub fn keep_flows(&mut self, entries: usize) {
        self.worker.keep_flows(entries);
    }

    /// Shares known flows with a program in the kernel, which forwards their packets.
    pub fn share_flows(&mut self, sharing: FlowSharing) {
        self.worker.set_offload(sharing.offload());
        self.sharing = Some(Box::new(sharing));
    }

    /// Sets the devices of the ports between which a program may forward packets of known flows.
    pub fn set_devices(&mut self, devices: Vec<PortDevice>) {
        if let Some(sharing) = &mut self.sharing {
            sharing.set_devices(devices);
        }
    }

    /// To be called before the view of a burst is read.
    #[inline(always)]
    pub(super) fn begin_burst(&mut self) {
        if let Some(sharing) = &mut self.sharing {
            sharing.begin_burst();
        }
    }

    /// Brings states and counters up to date with what a program forwarded. No flow is shared while all packets have to meet
    /// the worker. It is called once a round.
    pub(super) fn follow_shared(&mut self, are_all_needed: bool, counters: &mut Counters) {
        let Some(sharing) = &mut self.sharing else { return };
        let now = (self.clock)();
        if sharing.suspend(are_all_needed) | sharing.was_silent(now) {
            self.worker.recall_flows();
        }
        if sharing.follow(&self.rules, &mut self.worker, now) {
            let (flows, rules) = self.worker.flows_mut();
            flows.settle_rules(rules);
            sharing.move_traffic(counters);
        }
    }

    /// Takes flows back from a program whose routes are others in the tables of this view. It is called once a round.
    pub(super) fn follow_routes(&mut self, tables: &mut [TableKeys], view: &View) {
        if let Some(sharing) = &mut self.sharing {
            self.shared_routes.follow(sharing, &mut self.worker, tables, view);
        }
    }

    /// Whether [`Self::follow_routes`] has more to compare.
    pub(super) fn is_comparing(&self) -> bool {
        self.sharing.as_ref().is_some_and(|sharing| sharing.is_comparing())
    }

    /// How many known flows a program forwards, if it may.
    pub(super) fn shared_totals(&self) -> Option<SharedTotals> {
        self.sharing.as_ref().map(|sharing| sharing.totals())
    }

    /// Takes all flows back, and counts what a program forwarded.
    pub(super) fn take_back_shared(&mut self, counters: &mut Counters) {
        if let Some(sharing) = &self.sharing {
            self.worker.recall_flows();
            sharing.move_traffic(counters);
        }
    }

    /// Reads the time, in milliseconds, from another clock.
    pub fn set_clock(&mut self, clock: fn() -> u64) {
        self.clock = clock;
    }

    /// The clock that it reads, in milliseconds.
    pub fn clock(&self) -> fn() -> u64 {
        self.clock
    }

    /// How many packets passed because their flows were known.
    pub fn known_packets(&self) -> u64 {
        self.known.packets()
    }

    /// All states, with their counters up to date.
    pub fn states(&mut self) -> impl Iterator<Item = StateSummary> {
        self.worker.state_summaries()
    }

    /// Forgets states that have expired, if no burst has done so since the last call.
    pub(super) fn sweep_idle(&mut self) {
        if !std::mem::take(&mut self.has_swept) {
            self.rules.sweep(&mut self.worker, (self.clock)());
        }
    }

    /// Reads all packets that have a destination to look up.
    fn read(&mut self, state: &StageState, packets: &mut [Packet<'_>]) {
        self.begin_judging();
        for table in &state.tables {
            let inet = table.inet.destinations.positions();
            for position in inet.chain(table.inet6.destinations.positions()) {
                let slot = &mut *packets[position];
                let place = &mut self.packets[self.len];
                let is_read = place.read(&slot.frame()[ETHERNET..], incoming(slot)).is_ok();
                slot.verdict =
                    if is_read { Verdict::Forward } else { Verdict::Drop(Reason::FilterUnreadable) };
                self.positions[self.len] = position as u8;
                self.len += usize::from(is_read);
                self.has_dropped |= !is_read;
            }
        }
    }

    /// Asks the rules about the packets of the list. The verdicts of those that pass stay as they are.
    fn judge(&mut self, now: u64, packets: &mut [Packet<'_>]) {
        let (list, hashes) = (&mut self.packets[..self.len], &self.hashes[..self.len]);
        let (positions, has_dropped) = (&self.positions[..self.len], &mut self.has_dropped);
        let translations = &mut self.translations;
        self.rules.check_hashed_burst(&mut self.worker, now, list, hashes, |place, decision| {
            if let FilterVerdict::Translate(rewrite) = decision.verdict {
                translations.push(place, positions[place], rewrite);
            } else if let Some(verdict) = objection(&decision.verdict) {
                packets[usize::from(positions[place])].verdict = verdict;
                *has_dropped = true;
            }
        });
    }

    /// Translates packets that come in, before their destinations are looked up. Their second pass sees what they are now.
    #[inline(never)]
    fn translate_incoming(&mut self, state: &mut StageState, packets: &mut [Packet<'_>]) {
        let (list, hashes, has_dropped) = (&mut self.packets, &mut self.hashes, &mut self.has_dropped);
        let (rules, worker) = (&self.rules, &self.worker);
        self.translations.write(packets, |place, slot| {
            let packet = &mut list[place];
            let (tag, pass) = (packet.tag, packet.pass);
            *has_dropped |= slot.is_none_or(|slot| packet.read(&slot.frame()[ETHERNET..], pass).is_err());
            packet.tag = tag;
            rules.hash_burst(worker, &list[place..=place], &mut hashes[place..=place]);
        });
        self.translations.replace_keys(&mut state.tables);
    }

    /// Translates packets that leave.
    #[inline(never)]
    fn translate_outgoing(&mut self, packets: &mut [Packet<'_>]) {
        let has_dropped = &mut self.has_dropped;
        self.translations.write(packets, |_, slot| *has_dropped |= slot.is_none());
    }

    /// Gives translated packets that are not forwarded their addresses back. The last stage, after the verdicts.
    #[inline(always)]
    pub(super) fn restore_rejected(&self, packets: &mut [Packet<'_>]) {
        if !self.translations.is_empty() {
            self.translations.restore_rejected(packets);
        }
    }

    /// Notes by which interfaces the packets that are not forwarded would leave. The last stage, after the verdicts.
    #[inline(always)]
    pub(super) fn note_ways_out(
        &mut self,
        state: &StageState,
        view: &View,
        packets: &[Packet<'_>],
        has_rejected: bool,
    ) {
        self.ways_out.note(state, view, packets, has_rejected);
    }

    /// By which interface a slow path may forward a packet of the last burst.
    pub fn way_out(&self, packet: &Slot) -> WayOut {
        self.ways_out.of(packet)
    }

    /// Whether the packet at this position in the burst is translated.
    pub(super) fn has_translated(&self, position: usize) -> bool {
        self.translations.contains(position)
    }

    /// Keeps the packets that will leave, and says by which interface.
    fn turn_around(&mut self, state: &StageState, view: &View, packets: &mut [Packet<'_>]) {
        let found = (0..).zip(&state.tables).flat_map(|(number, table)| {
            let both = table.inet.destinations.found().chain(table.inet6.destinations.found());
            both.map(move |(position, hop)| (number, position, hop))
        });
        let (mut next, mut kept) = (0, 0);
        for (table, position, hop) in found {
            if next == self.len || usize::from(self.positions[next]) != position {
                continue;
            }
            let packet = &mut self.packets[next];
            let entry = view.adjacencies().get(hop);
            let leaves = matches!(entry.kind, AdjacencyKind::Neighbor | AdjacencyKind::Glean);
            let may_leave = packets[position].verdict == Verdict::Forward && packet.ttl > 1;
            if may_leave && hop.is_some() && entry.kind == AdjacencyKind::Missing {
                // The slow path may know by which interface it leaves, and would forward it without the rules for that.
                packets[position].verdict = Verdict::Drop(Reason::FilterUnreadable);
                self.has_dropped = true;
            } else if may_leave && leaves {
                packet.pass = outgoing(packet.pass, entry.interface);
                let entering = self.worker.trace_of(next);
                self.known.note(kept, Candidate { entering, next_hop: hop, table });
                self.keep(next, kept);
                kept += 1;
            }
            next += 1;
        }
        self.len = kept;
    }

    /// Moves a packet to its place among those that stay.
    #[inline(always)]
    fn keep(&mut self, from: usize, to: usize) {
        if from != to {
            self.packets[to] = self.packets[from];
            (self.positions[to], self.hashes[to]) = (self.positions[from], self.hashes[from]);
        }
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

/// What becomes of a packet that does not pass.
#[inline(always)]
fn objection(verdict: &FilterVerdict) -> Option<Verdict> {
    match verdict {
        FilterVerdict::Pass | FilterVerdict::Translate(_) => None,
        FilterVerdict::Drop(reason) => Some(Verdict::Drop((*reason).into())),
        FilterVerdict::Reject(with) => Some(Verdict::Reject(with.into())),
    }
}
