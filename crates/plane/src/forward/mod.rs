//! The loop: one burst, IPv4 and IPv6 mixed, from the wire to the wire.
//!
//! Each stage runs over the whole burst before the next one starts, so that each stage's code and data stay in the
//! nearest cache and the lookups of a burst overlap in memory. What a packet meets on its way is in its slot: the port
//! it came in by, at last the port it leaves by, and the verdict.
//!
//! VLAN tags exist only at the two ends: a tag is taken off as the packet comes in and put on as it goes out, so that
//! everything between finds its headers at the same offsets. That moves the bytes behind the tag once or twice, and
//! costs the untagged path one comparison.

use std::sync::Arc;

use fullview_table::group::GroupReader;

use crate::burst::{Burst, Packet};
use crate::counters::Counters;
use crate::trace::Tracer;
use crate::view::{View, ViewReader};
use lookup::{BurstPositions, TableKeys};
use redirect::NOTED;
use vlan::RemovedTags;

mod flow;
mod lookup;
pub mod martian;
mod parse;
mod redirect;
mod rewrite;
mod short_burst;
mod slow_parse;
mod source_check;
mod transmit;
mod vlan;

pub use flow::flow_hash_of;
pub use redirect::RedirectCandidate;

/// Where forwarded packets go.
pub trait Egress<'a> {
    /// Takes a packet that leaves by `port`, or hands it back if that port has no room.
    fn send(&mut self, port: u16, packet: Packet<'a>) -> Result<(), Packet<'a>>;

    /// Takes packets that leave by `port` one after the other; those it has no room for go to `refused`, which has room
    /// for all of them. Consecutive packets mostly leave by the same port, and what is done for each of them shows.
    fn send_run(
        &mut self,
        port: u16,
        packets: impl ExactSizeIterator<Item = Packet<'a>>,
        refused: &mut Burst<'a>,
    ) {
        refused.fill(packets.filter_map(|packet| self.send(port, packet).err()));
    }
}

/// One burst per port, to be transmitted afterwards.
impl<'a> Egress<'a> for [Burst<'a>] {
    #[inline(always)]
    fn send(&mut self, port: u16, packet: Packet<'a>) -> Result<(), Packet<'a>> {
        match self.get_mut(usize::from(port)) {
            Some(burst) => burst.push(packet),
            None => Err(packet),
        }
    }

    #[inline(always)]
    fn send_run(
        &mut self,
        port: u16,
        packets: impl ExactSizeIterator<Item = Packet<'a>>,
        refused: &mut Burst<'a>,
    ) {
        match self.get_mut(usize::from(port)) {
            Some(burst) => burst.send_run(port, packets, refused),
            None => refused.fill(packets),
        }
    }
}

/// All packets to one burst, whatever their port: a router with one way out.
impl<'a> Egress<'a> for Burst<'a> {
    #[inline(always)]
    fn send(&mut self, _port: u16, packet: Packet<'a>) -> Result<(), Packet<'a>> {
        self.push(packet)
    }

    #[inline(always)]
    fn send_run(
        &mut self,
        _port: u16,
        mut packets: impl ExactSizeIterator<Item = Packet<'a>>,
        refused: &mut Burst<'a>,
    ) {
        #[allow(clippy::expect_used)] // asked as often as there are packets, and no more
        self.fill_exactly(packets.len(), || packets.next().expect("an iterator as long as it says"));
        refused.fill(packets);
    }
}

/// The stages of the loop before packets are sent, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Which packets are in order, and where they want to go.
    Parse,
    /// Next hops.
    Lookup,
    /// Hop counts, checksums, MAC addresses.
    Rewrite,
}

/// The forwarding path of one worker: the view it goes by, its counters and its scratch memory.
pub struct Forwarder {
    views: ViewReader,
    /// The view that `stages` is made for.
    view: Arc<View>,
    stages: Stages,
    tracer: Option<Box<Tracer>>,
}

impl Forwarder {
    /// A forwarder that goes by the views of this reader.
    pub fn new(mut views: ViewReader) -> Forwarder {
        let view = Arc::clone(views.view());
        let stages = Stages::new(&view);
        Forwarder { views, view, stages, tracer: None }
    }

    /// Lets packets be noted on their way from now on.
    pub fn set_tracer(&mut self, tracer: Tracer) {
        self.tracer = Some(Box::new(tracer));
    }

    /// Forwards what is in `burst`: packets that go on are rewritten and given to `egress` in their order, the others
    /// go to `rejected`, each as it came in and with its verdict in its slot. None is lost: as many are taken from the
    /// front of `burst` as `rejected` has room for, which is all of them if it was empty, and the rest stays.
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
        tracer.process(self, burst, egress, rejected);
        self.tracer = Some(tracer);
    }

    #[inline(always)]
    pub(crate) fn forward<'a>(
        &mut self,
        burst: &mut Burst<'a>,
        egress: &mut (impl Egress<'a> + ?Sized),
        rejected: &mut Burst<'a>,
    ) {
        let taken = burst.len().min(rejected.room());
        self.process_through(Stage::Rewrite, &mut burst[..taken]);
        self.stages.emit(burst.drain_front(taken), egress, rejected);
    }

    /// Has packets go through the loop up to a stage, and no further: for measuring what each stage costs.
    #[inline]
    pub fn process_through(&mut self, last: Stage, packets: &mut [Packet<'_>]) {
        let view = self.views.view();
        if !Arc::ptr_eq(view, &self.view) {
            self.view = Arc::clone(view);
            self.stages.follow(&self.view);
        }
        self.stages.route(&self.view, last, packets);
    }

    /// The view of the last burst.
    pub fn view(&self) -> &Arc<View> {
        &self.view
    }

    /// The packets of the last burst whose senders could have taken a shorter way, as far as their interfaces have
    /// them told: a few at most.
    pub fn redirect_candidates(&self) -> &[RedirectCandidate] {
        &self.stages.detours
    }

    /// What has been counted.
    pub fn counters(&self) -> &Counters {
        &self.stages.counters
    }

    /// Counts what a port had no room for, at the interface of its untagged frames.
    pub(crate) fn count_overruns(&mut self, port: u16, overruns: u64) {
        self.stages.counters.add_overruns(self.view.ingress(port).interface, overruns);
    }

    /// What has been counted, and begins anew.
    pub fn take_counters(&mut self) -> Counters {
        let zeros = Counters::new(self.stages.counters.interfaces.len());
        std::mem::replace(&mut self.stages.counters, zeros)
    }
}

/// What the stages of one burst leave to each other, and the worker's own ends of what the view leads to.
struct Stages {
    tables: Vec<TableKeys>,
    groups: GroupReader,
    /// Packets that are not plain.
    late: BurstPositions,
    tags: RemovedTags,
    detours: Vec<RedirectCandidate>,
    counters: Counters,
}

impl Stages {
    fn new(view: &View) -> Stages {
        let parts = view.parts();
        Stages {
            tables: parts.tables.iter().map(TableKeys::new).collect(),
            groups: parts.groups.reader(),
            late: BurstPositions::NONE,
            tags: RemovedTags::default(),
            detours: Vec::with_capacity(NOTED),
            counters: Counters::new(parts.interfaces.len()),
        }
    }

    /// Goes by another view. The only moment at which a worker allocates.
    #[cold]
    fn follow(&mut self, view: &View) {
        let mut counters = Counters::new(view.parts().interfaces.len());
        counters.add(&self.counters);
        *self = Stages { counters, ..Stages::new(view) };
    }

    #[inline]
    fn route(&mut self, view: &View, last: Stage, packets: &mut [Packet<'_>]) {
        self.clear();
        self.parse(view, packets);
        if last >= Stage::Lookup {
            self.lookup(view, packets);
        }
        if last >= Stage::Rewrite {
            if view.has_redirects() {
                self.note_detours(view, packets);
            }
            self.rewrite(view, packets);
        }
    }

    fn clear(&mut self) {
        self.tables.iter_mut().for_each(TableKeys::clear);
        self.late.clear();
        self.tags.clear();
        self.detours.clear();
    }
}
