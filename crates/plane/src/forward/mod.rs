//! The loop: one burst, IPv4 and IPv6 mixed, from the wire to the wire.
//!
//! Each stage runs over the whole burst before the next one starts, so that each stage's code and data stay in the
//! nearest cache and the lookups of a burst overlap in memory. What a packet meets on its way is in its slot: the port
//! it came in by, at last the port it leaves by, and the [`Verdict`].
//!
//! VLAN tags exist only at the two ends: a tag is taken off as the packet comes in and put on as it goes out, so that
//! everything between finds its headers at the same offsets. That moves the bytes behind the tag once or twice, and
//! costs the untagged path one comparison.

use std::sync::Arc;

use fullview_table::group::GroupReader;

use crate::burst::{Burst, Packet};
use crate::counters::{Counters, Run};
use crate::verdict::{Reason, Verdict};
use crate::view::{View, ViewReader};
use lookup::TableKeys;
use redirect::NOTED;
use tag::Tags;

mod examine;
mod flow;
mod lookup;
pub mod martian;
mod parse;
mod redirect;
mod rewrite;
mod sources;
mod tag;

pub use redirect::Detour;

/// Where forwarded packets go.
pub trait Egress<'a> {
    /// Takes a packet that leaves by `port`, or hands it back if that port has no room.
    fn send(&mut self, port: u16, packet: Packet<'a>) -> Result<(), Packet<'a>>;
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
}

/// All packets to one burst, whatever their port: a router with one way out.
impl<'a> Egress<'a> for Burst<'a> {
    #[inline(always)]
    fn send(&mut self, _port: u16, packet: Packet<'a>) -> Result<(), Packet<'a>> {
        self.push(packet)
    }
}

/// The forwarding path of one worker: the view it goes by, its counters and its scratch memory.
pub struct Forwarder {
    views: ViewReader,
    /// The view that `stages` is made for.
    view: Arc<View>,
    stages: Stages,
}

impl Forwarder {
    /// A forwarder that goes by the views of this reader.
    pub fn new(mut views: ViewReader) -> Forwarder {
        let view = Arc::clone(views.view());
        let stages = Stages::new(&view);
        Forwarder { views, view, stages }
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
        let view = self.views.view();
        if !Arc::ptr_eq(view, &self.view) {
            self.view = Arc::clone(view);
            self.stages.follow(&self.view);
        }
        self.stages.detours.clear();
        let taken = burst.len().min(rejected.room());
        self.stages.route(&self.view, &mut burst[..taken]);
        self.stages.emit(burst.drain_front(taken), egress, rejected);
    }

    /// The view of the last burst.
    pub fn view(&self) -> &Arc<View> {
        &self.view
    }

    /// The packets of the last burst whose senders could have taken a shorter way, as far as their interfaces have
    /// them told: a few at most.
    pub fn detours(&self) -> &[Detour] {
        &self.stages.detours
    }

    /// What has been counted.
    pub fn counters(&self) -> &Counters {
        &self.stages.counters
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
    tags: Tags,
    detours: Vec<Detour>,
    counters: Counters,
}

impl Stages {
    fn new(view: &View) -> Stages {
        let parts = view.parts();
        Stages {
            tables: parts.tables.iter().map(TableKeys::new).collect(),
            groups: parts.groups.reader(),
            tags: Tags::default(),
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

    fn route(&mut self, view: &View, packets: &mut [Packet<'_>]) {
        self.parse(view, packets);
        self.lookup(view, packets);
        if view.notes_detours() {
            self.note_detours(view, packets);
        }
        self.rewrite(view, packets);
    }

    /// Last stage: packets with a way to go are sent on it; the others, and those that find it full, go back.
    #[inline(always)]
    fn emit<'a>(
        &mut self,
        packets: impl Iterator<Item = Packet<'a>>,
        egress: &mut (impl Egress<'a> + ?Sized),
        rejected: &mut Burst<'a>,
    ) {
        let mut run = Run::default();
        for packet in packets {
            let (interface, bytes) = (packet.interface, packet.frame_len());
            let Some(packet) = send(packet, egress) else {
                let counters = &mut self.counters;
                run.count(interface, bytes, |interface, traffic| counters.add_sent(interface, traffic));
                continue;
            };
            self.count_rejected(packet.verdict);
            rejected.fill([packet].into_iter());
        }
        let (interface, traffic) = run.finish();
        self.counters.add_sent(interface, traffic);
    }

    #[cold]
    fn count_rejected(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Forward => {}
            Verdict::Drop(reason) => self.counters.drops[reason.index()] += 1,
            Verdict::Punt(punt) => self.counters.punts[punt.index()] += 1,
        }
    }
}

/// Sends a packet on its way, or hands back one that does not go any further.
#[inline(always)]
fn send<'a>(packet: Packet<'a>, egress: &mut (impl Egress<'a> + ?Sized)) -> Option<Packet<'a>> {
    if packet.verdict != Verdict::Forward {
        return Some(packet);
    }
    let refused = egress.send(packet.port, packet).err()?;
    refused.verdict = Verdict::Drop(Reason::EgressFull);
    Some(refused)
}
