//! Packets noted on their way through the loop: for traces, and for captures of what is dropped.
//!
//! A worker asks once a burst whether anybody watches, which is one pointer to compare. If somebody does, it copies the
//! frames that match before the loop has them, sees what becomes of them, and puts the [`TracedPacket`] into a ring of its own;
//! nobody waits, and a ring that is full is a number ([`TraceReceiver::take_lost`]). Whoever collects the notes explains or
//! writes them in a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use arc_swap::ArcSwapOption;
use arc_swap::cache::Cache;

use crate::burst::{Burst, FrameCopy, Packet, Slot};
use crate::forward::{Egress, Forwarder};
use crate::verdict::Verdict;
pub use filter::{PacketFilter, PacketFilterError};

pub mod capture;
mod filter;

/// TraceRecorder in a worker's ring.
const RING: usize = 128;

/// What somebody wants to be noted.
#[derive(Debug)]
pub struct TraceRequest {
    /// Which packets.
    pub filter: PacketFilter,
    /// Only those that are dropped.
    pub drops_only: bool,
    /// How many more, of all workers together.
    left: AtomicU64,
}

impl TraceRequest {
    /// The next `count` packets that match.
    pub fn new(filter: PacketFilter, drops_only: bool, count: u64) -> TraceRequest {
        TraceRequest { filter, drops_only, left: AtomicU64::new(count) }
    }

    /// Lets so many more be noted, but never leaves more than `most` open.
    pub fn refill(&self, more: u64, most: u64) {
        // The update never fails: it always has a new value.
        let _ = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            Some(left.saturating_add(more).min(most.max(left)))
        });
    }

    /// Whether all that was asked for is noted.
    pub fn is_finished(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    fn take(&self) -> bool {
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

impl TracedPacket {
    fn of(request: u64, packet: &Slot, verdict: Verdict) -> TracedPacket {
        let (at, port, before) = (SystemTime::now(), packet.port, FrameCopy::of(packet));
        TracedPacket { request, at, port, before, verdict, departure: None }
    }
}

/// A packet that was noted.
#[derive(Clone)]
pub struct TracedPacket {
    /// For whom: the number that [`TraceRequests::add`] gave.
    pub request: u64,
    /// When it was noted.
    pub at: SystemTime,
    /// The port it came in by; of a dropped packet that found its way out full, that one.
    pub port: u16,
    /// As it came in; of a dropped packet that found its way out full, as it would have left.
    pub before: FrameCopy,
    /// What the loop did with it.
    pub verdict: Verdict,
    /// The port it left by, and as what, if it did.
    pub departure: Option<(u16, FrameCopy)>,
}

type ActiveRequests = Vec<(u64, Arc<TraceRequest>)>;

/// Who watches, and where their notes are: the end of whoever collects.
#[derive(Default)]
pub struct TraceRequests {
    current: Arc<ArcSwapOption<ActiveRequests>>,
    last: u64,
}

impl TraceRequests {
    /// None yet.
    pub fn new() -> TraceRequests {
        TraceRequests::default()
    }

    /// A worker's end, and the end at which its notes come out.
    pub fn connect(&self) -> (Tracer, TraceReceiver) {
        let (ring, collected) = rtrb::RingBuffer::new(RING);
        let missed = Arc::new(AtomicU64::new(0));
        let notes = TraceRecorder { ring, missed: Arc::clone(&missed), traced: Vec::with_capacity(RING) };
        let watched = Tracer { watches: Cache::new(Arc::clone(&self.current)), notes };
        (watched, TraceReceiver { notes: collected, missed })
    }

    /// Begins to watch; returns the number that the notes will carry.
    pub fn add(&mut self, watch: Arc<TraceRequest>) -> u64 {
        self.last += 1;
        let number = self.last;
        self.change(|watches| watches.push((number, watch)));
        number
    }

    /// ActiveRequests no more.
    pub fn remove(&mut self, number: u64) {
        self.change(|watches| watches.retain(|(known, _)| *known != number));
    }

    fn change(&mut self, change: impl FnOnce(&mut ActiveRequests)) {
        let mut watches = self.current.load().as_deref().cloned().unwrap_or_default();
        change(&mut watches);
        self.current.store((!watches.is_empty()).then(|| Arc::new(watches)));
    }
}

/// Where a worker's notes come out.
pub struct TraceReceiver {
    notes: rtrb::Consumer<TracedPacket>,
    missed: Arc<AtomicU64>,
}

impl TraceReceiver {
    /// The next note.
    pub fn pop(&mut self) -> Option<TracedPacket> {
        self.notes.pop().ok()
    }

    /// Packets that would have been noted if there had been room, since this was last asked.
    pub fn take_lost(&mut self) -> u64 {
        self.missed.swap(0, Ordering::Relaxed)
    }

    /// Whether the worker is gone, and its last note fetched.
    pub fn is_abandoned(&self) -> bool {
        self.notes.is_abandoned() && self.notes.is_empty()
    }
}

/// A worker's end, for its [`Forwarder::watch`].
pub struct Tracer {
    watches: Cache<Arc<ArcSwapOption<ActiveRequests>>, Option<Arc<ActiveRequests>>>,
    notes: TraceRecorder,
}

impl Tracer {
    /// Whether anybody watches.
    #[inline]
    pub(crate) fn is_on(&mut self) -> bool {
        self.watches.load().is_some()
    }

    /// Has the burst forwarded, and notes what is asked for.
    pub(crate) fn process<'a>(
        &mut self,
        forwarder: &mut Forwarder,
        burst: &mut Burst<'a>,
        egress: &mut (impl Egress<'a> + ?Sized),
        rejected: &mut Burst<'a>,
    ) {
        match self.watches.load() {
            None => forwarder.forward(burst, egress, rejected),
            Some(watches) => self.notes.process(watches, forwarder, burst, egress, rejected),
        }
    }
}

/// What a worker notes.
struct TraceRecorder {
    ring: rtrb::Producer<TracedPacket>,
    missed: Arc<AtomicU64>,
    /// Packets of this burst that are traced, by the address of their slots.
    traced: Vec<(usize, TracedPacket)>,
}

impl TraceRecorder {
    /// Allocates nothing, but copies: the price of being watched.
    fn process<'a>(
        &mut self,
        watches: &ActiveRequests,
        forwarder: &mut Forwarder,
        burst: &mut Burst<'a>,
        egress: &mut (impl Egress<'a> + ?Sized),
        rejected: &mut Burst<'a>,
    ) {
        let before = rejected.len();
        self.copy_traced(watches, burst);
        forwarder.forward(burst, &mut TracingEgress { egress, traced: &mut self.traced }, rejected);
        for packet in &rejected[before..] {
            with_slot(&mut self.traced, packet, |note| {
                (note.verdict, note.departure) = (packet.verdict, None)
            });
            self.note_drop(watches, packet);
        }
        self.hand_over();
    }

    fn copy_traced(&mut self, watches: &ActiveRequests, burst: &Burst<'_>) {
        let wanted = |watch: &TraceRequest| !watch.drops_only && !watch.is_finished();
        for (number, watch) in watches.iter().filter(|(_, watch)| wanted(watch)) {
            for packet in burst.iter().filter(|packet| watch.filter.matches(packet.port, packet.frame())) {
                if self.traced.len() == RING || !watch.take() {
                    break;
                }
                self.traced.push((address(packet), TracedPacket::of(*number, packet, packet.verdict)));
            }
        }
    }

    /// A packet that was dropped is as it came in, but for one that found its way out full.
    fn note_drop(&mut self, watches: &ActiveRequests, packet: &Slot) {
        let Verdict::Drop(_) = packet.verdict else { return };
        for (number, watch) in watches.iter().filter(|(_, watch)| watch.drops_only) {
            if watch.filter.matches(packet.port, packet.frame()) {
                if watch.take() {
                    self.put(TracedPacket::of(*number, packet, packet.verdict));
                } else {
                    self.missed.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    fn hand_over(&mut self) {
        while let Some((_, note)) = self.traced.pop() {
            self.put(note);
        }
    }

    fn put(&mut self, note: TracedPacket) {
        if self.ring.push(note).is_err() {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Sees packets leave.
struct TracingEgress<'e, E: ?Sized> {
    egress: &'e mut E,
    traced: &'e mut Vec<(usize, TracedPacket)>,
}

impl<'a, E: Egress<'a> + ?Sized> Egress<'a> for TracingEgress<'_, E> {
    /// One that the port does not take comes back by way of the rejected packets, with its verdict.
    fn send(&mut self, port: u16, packet: Packet<'a>) -> Result<(), Packet<'a>> {
        with_slot(self.traced, packet, |note| {
            note.verdict = Verdict::Forward;
            note.departure = Some((port, FrameCopy::of(packet)));
        });
        self.egress.send(port, packet)
    }
}

fn with_slot(traced: &mut [(usize, TracedPacket)], packet: &Slot, mut change: impl FnMut(&mut TracedPacket)) {
    let address = address(packet);
    traced.iter_mut().filter(|(of, _)| *of == address).for_each(|(_, note)| change(note));
}

/// Tells slots apart; never used to reach one.
fn address(packet: &Slot) -> usize {
    std::ptr::from_ref(packet).addr()
}
