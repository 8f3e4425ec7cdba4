//! The loop: one burst, IPv4 and IPv6 mixed, from receive to transmit.
//!
//! Each stage runs over the whole burst before the next stage starts, so that the code and data of a stage stay in the
//! nearest cache and the lookups of a burst overlap in memory. The slot of a packet records the port that received it,
//! later the port that sends it, and the verdict.
//!
//! VLAN tags exist only at the two ends: the parser removes a tag and the transmit stage's header gets a new one, so
//! that every stage in between finds the IP header at the same offset. A tagged frame is moved in its slot once or
//! twice; an untagged one costs a comparison.
//!
//! | file | stage |
//! | --- | --- |
//! | `parse.rs` | picks one of the parsers: `fast_parse.rs` and `simd/`, `short_burst.rs`, and `slow_parse.rs` for exceptions |
//! | `rules.rs` | part of the parser: rules of policy routing choose the table |
//! | `filter.rs` | the filter's rules for packets that come in, and after the lookup for those that leave |
//! | `known_flows.rs` | part of the filter: packets whose flows need neither the rules nor the lookup |
//! | `translations.rs` | other addresses and ports, where the filter asks for them; `translate.rs` writes them |
//! | `way_out.rs` | the interfaces that the slow path may send what the filter judged to |
//! | `port_links.rs` | not a stage: which links have failed, between bursts |
//! | `filter_link.rs` | not a stage: other rules for the filter, and `filter_piece.rs`, between bursts |
//! | `lookup.rs` | next hops of the destinations, `source_check.rs`, and `failed_links.rs` |
//! | `redirect.rs` | copies of packets that deserve an ICMP redirect |
//! | `rewrite.rs` | hop count, checksum, Ethernet header |
//! | `transmit.rs` | hands packets to the egress |

use std::sync::Arc;

use crate::burst::{Burst, Packet, Slot};
use crate::counters::{Counters, Traffic};
use crate::noted_links::NotedLinks;
use crate::port_losses::PortLosses;
use crate::sample::Sampler;
use crate::trace::Tracer;
use crate::verdict::{Reason, Verdict};
use crate::view::{View, ViewReader};
use port_links::PortLinks;
use stage_state::StageState;

pub use crate::egress::Egress;

mod failed_links;
mod fast_parse;
mod filter;
mod filter_link;
mod filter_piece;
mod flow;
mod flow_places;
mod flow_set;
mod keys;
mod known_flows;
mod lookup;
pub mod martian;
mod parse;
mod plain_packet;
mod port_links;
mod redirect;
mod rewrite;
mod route_cache;
mod rules;
mod seen_segments;
mod shared_routes;
mod short_burst;
mod simd;
mod slow_parse;
mod source_check;
mod stage_state;
mod take_flows;
mod take_segments;
mod translate;
mod translations;
mod transmit;
mod vlan;
mod way_out;
mod wire_flow;

pub use filter::{BurstFilter, EnforceableRules, UnsupportedFilter};
pub use filter_link::{FilterBusy, FilterClient, FilterInspector, FilterServer, RuleChange, filter_link};
pub use filter_piece::{FilterPiece, MOST_REMOVED, PieceOf};
pub use flow::flow_hash_of;
pub use redirect::RedirectCandidate;
pub use route_cache::RouteCacheCounters;
pub use simd::ParserIsa;
pub use way_out::WayOut;

/// The stages of the loop before packets are sent, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Header checks and destination addresses.
    Parse,
    /// Next hops.
    Lookup,
    /// Hop counts, checksums, MAC addresses.
    Rewrite,
}

/// The forwarding path of one worker: its view, its counters and its scratch memory.
pub struct Forwarder {
    views: ViewReader,
    /// The view that `state` is made for.
    view: Arc<View>,
    state: StageState,
    tracer: Option<Box<Tracer>>,
    sampler: Option<Box<Sampler>>,
    filter: Option<Box<BurstFilter>>,
    filter_server: Option<FilterServer>,
}

impl Forwarder {
    /// A forwarder that uses the views of this reader.
    pub fn new(mut views: ViewReader) -> Forwarder {
        let view = Arc::clone(views.view());
        let state = StageState::new(&view);
        Forwarder { views, view, state, tracer: None, sampler: None, filter: None, filter_server: None }
    }

    /// Lets trace requests copy packets from now on.
    pub fn set_tracer(&mut self, tracer: Tracer) {
        self.tracer = Some(Box::new(tracer));
    }

    /// Samples received packets from now on.
    pub fn set_sampler(&mut self, sampler: Sampler) {
        self.sampler = Some(Box::new(sampler));
    }

    /// Hands on the samples that found no room; to be called while no packets come.
    pub(crate) fn push_waiting_samples(&mut self) {
        if let Some(sampler) = &mut self.sampler {
            sampler.push_waiting();
        }
    }

    /// Leaves links from now on as soon as they are noted. They are those of the ports' devices, by port; 0 where there is none.
    pub fn watch_links(&mut self, notes: Arc<NotedLinks>, devices: &[u32]) {
        self.state.links = PortLinks::new(notes, devices, &self.view);
        // What is known about flows depends on them.
        self.filter.iter_mut().for_each(|filter| filter.follow(self.state.tables.len()));
    }

    /// Filters packets from now on.
    pub fn set_filter(&mut self, mut filter: BurstFilter) {
        filter.follow(self.state.tables.len());
        self.filter = Some(Box::new(filter));
    }

    /// Takes other rules for the filter from now on, in [`Self::change_rules`].
    pub fn set_filter_server(&mut self, server: FilterServer) {
        self.filter_server = Some(server);
    }

    /// Takes the filter with its states, and its end of the connection, for another forwarder.
    pub fn take_filter(&mut self) -> Option<(BurstFilter, FilterServer)> {
        self.state.prefetches = true;
        Some((*self.filter.take()?, self.filter_server.take()?))
    }

    /// Applies the changes of the filter's rules that wait, answers a question about what the filter remembers, follows the
    /// flows that a program in the kernel forwards, and forgets expired states if no packets come. The worker calls it once a
    /// round, between bursts.
    pub fn change_rules(&mut self) {
        if let (Some(filter), Some(server)) = (&mut self.filter, &mut self.filter_server) {
            server.serve(filter);
        }
        // A program in the kernel forwards until the worker knows that the path of a flow is another one.
        self.follow_newest();
        let are_all_needed = self.sampler.is_some() || self.tracer.as_deref_mut().is_some_and(Tracer::is_on);
        if let Some(filter) = &mut self.filter {
            filter.follow_shared(are_all_needed, &mut self.state.counters);
            filter.follow_routes(&mut self.state.tables, &self.view);
            filter.sweep_idle();
        }
    }

    /// Whether [`Self::change_rules`] has more to do, so that the worker must not sleep.
    pub(crate) fn is_behind(&self) -> bool {
        self.filter.as_deref().is_some_and(BurstFilter::is_comparing)
    }

    /// Has the program in the kernel forward no known flow any more, and counts what it forwarded.
    pub fn take_back_flows(&mut self) {
        if let Some(filter) = &mut self.filter {
            filter.take_back_shared(&mut self.state.counters);
        }
    }

    /// Has the parser use this instruction set instead of the processor's widest one, to compare them.
    pub fn use_parser(&mut self, isa: ParserIsa) {
        self.state.isa = isa;
    }

    /// Keeps the next hops of so many destinations for each table and family until the FIB changes.
    pub fn set_route_cache(&mut self, entries: usize) {
        self.state.set_route_cache(entries);
    }

    /// How often the route caches had the answer, all tables together; nothing without them.
    pub fn route_cache_counters(&self) -> Option<RouteCacheCounters> {
        self.state.route_cache_counters()
    }

    /// The filter, if there is one.
    pub fn filter(&self) -> Option<&BurstFilter> {
        self.filter.as_deref()
    }

    /// The filter, if there is one, to bring what it shows up to date.
    pub fn filter_mut(&mut self) -> Option<&mut BurstFilter> {
        self.filter.as_deref_mut()
    }

    /// By which interfaces a slow path may forward a packet that the last burst rejected.
    pub fn way_out(&self, packet: &Slot) -> WayOut {
        self.filter.as_deref().map_or(WayOut::Any, |filter| filter.way_out(packet))
    }

    /// Forwards the packets of `burst`. Forwarded packets are rewritten and given to `egress` in their order; the others
    /// go to `rejected` with the verdict in the slot, unchanged unless the filter translated a packet that the slow path
    /// forwards or looks up again. No packet is lost: the forwarder takes as many from the
    /// front of `burst` as `rejected` has room for, which is all of them if `rejected` is empty, and leaves the rest.
    pub fn process<'a>(
        &mut self,
        burst: &mut Burst<'a>,
        egress: &mut (impl Egress<'a> + ?Sized),
        rejected: &mut Burst<'a>,
    ) {
        if self.tracer.as_deref_mut().is_some_and(Tracer::is_on) {
            return self.process_traced(burst, egress, rejected);
        }
        self.forward(burst, egress, rejected);
    }

    #[cold]
    fn process_traced<'a>(
        &mut self,
        burst: &mut Burst<'a>,
        egress: &mut (impl Egress<'a> + ?Sized),
        rejected: &mut Burst<'a>,
    ) {
        let Some(mut tracer) = self.tracer.take() else { return };
        let before = rejected.len();
        tracer.begin(burst);
        self.forward(burst, &mut tracer.egress(egress), rejected);
        let filter = self.filter.as_deref();
        tracer.finish(&rejected[before..], |position| {
            filter.is_some_and(|filter| filter.has_translated(position))
        });
        self.tracer = Some(tracer);
    }

    #[inline(always)]
    fn forward<'a>(
        &mut self,
        burst: &mut Burst<'a>,
        egress: &mut (impl Egress<'a> + ?Sized),
        rejected: &mut Burst<'a>,
    ) {
        let taken = burst.len().min(rejected.room());
        if let Some(sampler) = &mut self.sampler {
            sampler.begin(&burst[..taken]);
        }
        self.process_through(Stage::Rewrite, &mut burst[..taken]);
        if let Some(sampler) = &mut self.sampler {
            sampler.finish(&burst[..taken]);
        }
        transmit::transmit(&mut self.state.counters, burst.drain_front(taken), egress, rejected);
    }

    /// Runs the stages up to `last` and no further, to measure the cost of each stage.
    #[inline]
    pub fn process_through(&mut self, last: Stage, packets: &mut [Packet<'_>]) {
        if let Some(filter) = &mut self.filter {
            filter.begin_burst();
        }
        self.follow_newest();
        run_stages(&mut self.state, self.filter.as_deref_mut(), &self.view, last, packets);
    }

    #[inline(always)]
    fn follow_newest(&mut self) {
        let is_other_view = !Arc::ptr_eq(self.views.view(), &self.view);
        if is_other_view | self.state.links.have_changed() {
            self.follow(is_other_view);
        }
    }

    /// Follows another view, or the links that have failed. What is known about flows depends on both.
    #[cold]
    fn follow(&mut self, is_other_view: bool) {
        let former = Arc::clone(&self.view);
        if is_other_view {
            self.view = Arc::clone(self.views.view());
            self.state.follow(&self.view);
        }
        let are_other_links = self.state.links.follow(&self.view);
        match &mut self.filter {
            Some(filter) if are_other_links || !self.view.differs_by_adjacencies_only(&former) => {
                filter.follow(self.state.tables.len());
            }
            Some(filter) if is_other_view => filter.follow_adjacencies(&former, &self.view),
            _ => {}
        }
    }

    /// Takes the newest view, groups and FIBs, as a burst of all tables would. To be called between bursts: neither a worker
    /// without packets, nor one that knows all flows, looks anything up, and the writer waits for both.
    #[cold]
    pub fn catch_up(&mut self) {
        self.process_through(Stage::Parse, &mut []);
        self.state.catch_up();
    }

    /// The view of the last burst.
    pub fn view(&self) -> &Arc<View> {
        &self.view
    }

    /// The first packets of the last burst whose senders deserve an ICMP redirect, from interfaces that send redirects.
    pub fn redirect_candidates(&self) -> &[RedirectCandidate] {
        &self.state.redirects
    }

    /// All counts since the start or the last [`Self::take_counters`].
    pub fn counters(&self) -> &Counters {
        &self.state.counters
    }

    /// Adds frames that a port's receive ring had no room for to the interface of its untagged frames.
    pub(crate) fn count_overruns(&mut self, port: u16, overruns: u64) {
        self.state.counters.add_overruns(self.view.ingress(port).interface, overruns);
    }

    /// Adds frames that a port dropped to the interface of its untagged frames.
    #[cold]
    pub(crate) fn count_losses(&mut self, port: u16, losses: PortLosses) {
        for (reason, frames) in losses.by_reason() {
            self.count_dropped(port, reason, frames);
        }
    }

    /// Adds frames that came in by a port, and that the loop does not see, to the interface of its untagged frames.
    #[cold]
    pub(crate) fn count_dropped(&mut self, port: u16, reason: Reason, frames: u64) {
        self.state.counters.add_dropped(self.view.ingress(port).interface, reason, frames);
    }

    /// Gives a forwarded packet that could not be sent to another member of its group, if its link has failed and no rules judged it
    /// for that link alone. Returns the port that it leaves by instead.
    #[cold]
    pub(crate) fn leave_failed_link(&mut self, packet: &mut Slot) -> Option<u16> {
        if self.filter.is_some() || packet.verdict != Verdict::Forward {
            return None;
        }
        if self.state.links.have_changed() {
            self.follow(false);
        }
        let (interface, len) = (packet.interface, packet.frame_len());
        if !failed_links::leave_rewritten(&mut self.state, &self.view, packet) {
            return None;
        }
        self.state.counters.subtract_sent(interface, len);
        let traffic = Traffic { packets: 1, bytes: packet.frame_len() as u64 };
        self.state.counters.add_sent(packet.interface, traffic);
        Some(packet.port)
    }

    /// Counts a packet that has moved to a port without room for it.
    #[cold]
    pub(crate) fn drop_without_room<'a>(&mut self, packet: Packet<'a>) -> Packet<'a> {
        transmit::drop_without_room(&mut self.state.counters, packet);
        packet
    }

    /// Counts forwarded packets whose port is down or gone, which were counted as sent. Those of the slow path were not.
    #[cold]
    pub(crate) fn count_unsent(&mut self, packets: &[Packet<'_>]) {
        self.subtract_sent(packets);
        for packet in forwarded(packets) {
            self.state.counters.add_dropped(packet.interface, Reason::InterfaceDown, 1);
        }
    }

    /// Counts forwarded packets as not sent.
    #[cold]
    pub(crate) fn subtract_sent(&mut self, packets: &[Packet<'_>]) {
        for packet in forwarded(packets) {
            self.state.counters.subtract_sent(packet.interface, packet.frame_len());
        }
    }

    /// Counts forwarded packets as sent again.
    #[cold]
    pub(crate) fn add_sent(&mut self, packets: &[Packet<'_>]) {
        for packet in forwarded(packets) {
            let traffic = Traffic { packets: 1, bytes: packet.frame_len() as u64 };
            self.state.counters.add_sent(packet.interface, traffic);
        }
    }

    /// Returns the counts and starts again at zero.
    pub fn take_counters(&mut self) -> Counters {
        let zeros = Counters::new(self.state.counters.interfaces.len());
        std::mem::replace(&mut self.state.counters, zeros)
    }
}

/// The packets that the loop forwarded, without those of the slow path.
fn forwarded<'p, 'a>(packets: &'p [Packet<'a>]) -> impl Iterator<Item = &'p Packet<'a>> {
    packets.iter().filter(|packet| packet.verdict == Verdict::Forward)
}

#[inline]
fn run_stages(
    state: &mut StageState,
    mut filter: Option<&mut BurstFilter>,
    view: &View,
    last: Stage,
    packets: &mut [Packet<'_>],
) {
    state.clear();
    parse::parse(state, view, packets);
    if last >= Stage::Lookup {
        match &mut filter {
            Some(filter) => filter.around_lookup(state, view, packets),
            None => lookup::look_up(state, view, packets),
        }
    }
    if last >= Stage::Rewrite {
        if view.has_redirects() {
            let is_translated =
                |position| filter.as_ref().is_some_and(|filter| filter.has_translated(position));
            redirect::record(&mut state.redirects, &state.tables, view, packets, &is_translated);
        }
        let has_rejected = rewrite::rewrite(state, view, packets);
        if let Some(filter) = filter {
            filter.restore_rejected(packets);
            filter.note_ways_out(state, view, packets, has_rejected);
        }
    }
}
