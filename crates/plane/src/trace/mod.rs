//! Copies packets on their way through the loop, for traces and for captures of dropped packets.
//!
//! A worker checks once per burst whether there is a trace request, which is one pointer comparison. If there is one, the
//! worker copies the frames that match before the loop changes them, adds the verdict, and puts each [`TracedPacket`] into
//! a ring of its own. The worker never waits: when the ring is full, packets are counted as lost
//! ([`TraceReceiver::take_lost`]). The receiver explains or writes the packets in a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use arc_swap::ArcSwapOption;
use arc_swap::cache::Cache;

use crate::burst::{BURST, Burst, FrameCopy, Packet, Slot};
use crate::egress::Egress;
use crate::verdict::Verdict;
pub use filter::{PacketFilter, PacketFilterError};
#[cfg(all(feature = "bpf", target_os = "linux"))]
pub use filter_mask::FilterMask;

pub mod capture;
mod filter;
#[cfg(all(feature = "bpf", target_os = "linux"))]
mod filter_mask;

/// Packets that a worker's ring holds.
const RING: usize = 128;

/// The packets that a client wants copies of.
#[derive(Debug)]
pub struct TraceRequest {
    /// Which packets.
    pub filter: PacketFilter,
    /// Only those that are dropped.
    pub drops_only: bool,
    /// How many more packets of all workers together.
    left: AtomicU64,
}

impl TraceRequest {
    /// Requests the next `count` packets that match.
    pub fn new(filter: PacketFilter, drops_only: bool, count: u64) -> TraceRequest {
        TraceRequest { filter, drops_only, left: AtomicU64::new(count) }
    }

    /// Requests `more` packets, but never leaves more than `most` open.
    pub fn refill(&self, more: u64, most: u64) {
        // The update never fails: it always has a new value.
        let _ = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            Some(left.saturating_add(more).min(most.max(left)))
        });
    }

    /// Whether all requested packets have been copied.
    pub fn is_finished(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    /// Takes a packet that matches, unless all requested packets have been taken.
    pub fn take(&self) -> bool {
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

/// A copy of a packet, with the verdict of the loop.
///
/// A packet that was dropped because its egress port was full is recorded at that port, rewritten as it would have left.
#[derive(Clone)]
pub struct TracedPacket {
    /// The request it matched, by the number that [`TraceRequests::add`] returned.
    pub request: u64,
    /// When it was copied.
    pub at: SystemTime,
    /// The port that received it.
    pub port: u16,
    /// The frame as it came in.
    pub before: FrameCopy,
    /// What the loop did with it.
    pub verdict: Verdict,
    /// Whether the filter wrote other addresses or ports into it, at least for the lookup.
    pub is_translated: bool,
    /// Of a forwarded packet: the port and the frame that left.
    pub departure: Option<(u16, FrameCopy)>,
}

impl TracedPacket {
    fn of(request: u64, packet: &Slot, verdict: Verdict) -> TracedPacket {
        let (at, port, before) = (SystemTime::now(), packet.port, FrameCopy::of(packet));
        TracedPacket { request, at, port, before, verdict, is_translated: false, departure: None }
    }
}

type ActiveRequests = Vec<(u64, Arc<TraceRequest>)>;

/// The trace requests of all clients, which the workers read.
#[derive(Default)]
pub struct TraceRequests {
    current: Arc<ArcSwapOption<ActiveRequests>>,
    last: u64,
}

impl TraceRequests {
    /// No requests.
    pub fn new() -> TraceRequests {
        TraceRequests::default()
    }

    /// The two ends of a worker's ring: one for the worker, one for the thread that collects its packets.
    pub fn connect(&self) -> (Tracer, TraceReceiver) {
        let (ring, packets) = rtrb::RingBuffer::new(RING);
        let lost = Arc::new(AtomicU64::new(0));
        let recorder = TraceRecorder {
            ring,
            lost: Arc::clone(&lost),
            traced: Vec::with_capacity(RING),
            slots: Vec::with_capacity(BURST),
        };
        let tracer = Tracer { requests: Cache::new(Arc::clone(&self.current)), of_burst: None, recorder };
        (tracer, TraceReceiver { packets, lost })
    }

    /// Adds a request and returns its number.
    pub fn add(&mut self, request: Arc<TraceRequest>) -> u64 {
        self.last += 1;
        let number = self.last;
        self.change(|requests| requests.push((number, request)));
        number
    }

    /// Removes the request of that number.
    pub fn remove(&mut self, number: u64) {
        self.change(|requests| requests.retain(|(known, _)| *known != number));
    }

    /// The requests with their numbers, for a thread that copies packets elsewhere than in a worker.
    pub fn active(&self) -> Vec<(u64, Arc<TraceRequest>)> {
        self.current.load().as_deref().cloned().unwrap_or_default()
    }

    fn change(&mut self, change: impl FnOnce(&mut ActiveRequests)) {
        let mut requests = self.current.load().as_deref().cloned().unwrap_or_default();
        change(&mut requests);
        self.current.store((!requests.is_empty()).then(|| Arc::new(requests)));
    }
}

/// The end of a worker's ring that packets come out of.
pub struct TraceReceiver {
    packets: rtrb::Consumer<TracedPacket>,
    lost: Arc<AtomicU64>,
}

impl TraceReceiver {
    /// The next packet, if there is one.
    pub fn pop(&mut self) -> Option<TracedPacket> {
        self.packets.pop().ok()
    }

    /// Packets since the last call that matched and were not copied, because there was no room or the request was finished.
    pub fn take_lost(&mut self) -> u64 {
        self.lost.swap(0, Ordering::Relaxed)
    }

    /// Whether the worker is gone and its last packet fetched.
    pub fn is_abandoned(&self) -> bool {
        self.packets.is_abandoned() && self.packets.is_empty()
    }
}

/// The worker's end of a ring, for [`Forwarder::set_tracer`](crate::forward::Forwarder::set_tracer).
pub struct Tracer {
    requests: Cache<Arc<ArcSwapOption<ActiveRequests>>, Option<Arc<ActiveRequests>>>,
    /// The requests at the beginning of the burst, which hold for the whole burst.
    of_burst: Option<Arc<ActiveRequests>>,
    recorder: TraceRecorder,
}

impl Tracer {
    /// Whether there is a request.
    #[inline]
    pub(crate) fn is_on(&mut self) -> bool {
        self.requests.load().is_some()
    }

    /// Copies the packets that requests ask for; to be called before the loop changes them.
    pub(crate) fn begin(&mut self, burst: &Burst<'_>) {
        self.of_burst = self.requests.load().clone();
        if let Some(requests) = &self.of_burst {
            self.recorder.copy_traced(requests, burst);
        }
    }

    /// An egress that records the departure of the copied packets.
    pub(crate) fn egress<'e, E: ?Sized>(&'e mut self, egress: &'e mut E) -> TracingEgress<'e, E> {
        TracingEgress { egress, traced: &mut self.recorder.traced }
    }

    /// Records the verdicts of rejected packets and puts all copies into the ring. `is_translated` says whether the filter
    /// translated the packet at a position of the burst.
    pub(crate) fn finish(&mut self, rejected: &[Packet<'_>], is_translated: impl Fn(usize) -> bool) {
        if let Some(requests) = self.of_burst.take() {
            self.recorder.finish(&requests, rejected, &is_translated);
        }
    }
}

/// Copies packets and sends them. It never allocates.
struct TraceRecorder {
    ring: rtrb::Producer<TracedPacket>,
    lost: Arc<AtomicU64>,
    /// Copies of packets of this burst, by the address of the slot.
    traced: Vec<(usize, TracedPacket)>,
    /// The addresses of all slots of this burst, in order.
    slots: Vec<usize>,
}

impl TraceRecorder {
    fn copy_traced(&mut self, requests: &ActiveRequests, burst: &Burst<'_>) {
        self.slots.clear();
        self.slots.extend(burst.iter().map(|packet| address(packet)));
        let is_open = |request: &TraceRequest| !request.drops_only && !request.is_finished();
        for (number, request) in requests.iter().filter(|(_, request)| is_open(request)) {
            for packet in burst.iter().filter(|packet| request.filter.matches(packet.port, packet.frame())) {
                if self.traced.len() == RING || !request.take() {
                    break;
                }
                self.traced.push((address(packet), TracedPacket::of(*number, packet, packet.verdict)));
            }
        }
    }

    fn finish(
        &mut self,
        requests: &ActiveRequests,
        rejected: &[Packet<'_>],
        is_translated: &dyn Fn(usize) -> bool,
    ) {
        let slots = std::mem::take(&mut self.slots);
        let was_translated = |slot: usize| slots.iter().position(|of| *of == slot).is_some_and(is_translated);
        for packet in rejected {
            with_slot(&mut self.traced, packet, |traced| {
                (traced.verdict, traced.departure) = (packet.verdict, None)
            });
            self.record_drop(requests, packet, &was_translated);
        }
        while let Some((slot, traced)) = self.traced.pop() {
            self.send(TracedPacket { is_translated: was_translated(slot), ..traced });
        }
        self.slots = slots;
    }

    /// Copies a dropped packet for the requests that ask for drops only.
    fn record_drop(
        &mut self,
        requests: &ActiveRequests,
        packet: &Slot,
        was_translated: &dyn Fn(usize) -> bool,
    ) {
        let (Verdict::Drop(_) | Verdict::Reject(_)) = packet.verdict else { return };
        for (number, request) in requests.iter().filter(|(_, request)| request.drops_only) {
            if request.filter.matches(packet.port, packet.frame()) {
                if request.take() {
                    let is_translated = was_translated(address(packet));
                    let traced = TracedPacket::of(*number, packet, packet.verdict);
                    self.send(TracedPacket { is_translated, ..traced });
                } else {
                    self.lost.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    fn send(&mut self, packet: TracedPacket) {
        if self.ring.push(packet).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Passes packets on to another egress and records the departure of traced ones.
pub(crate) struct TracingEgress<'e, E: ?Sized> {
    egress: &'e mut E,
    traced: &'e mut Vec<(usize, TracedPacket)>,
}

impl<'a, E: Egress<'a> + ?Sized> Egress<'a> for TracingEgress<'_, E> {
    /// A packet that the port refuses comes back among the rejected packets, with its verdict.
    fn send(&mut self, port: u16, packet: Packet<'a>) -> Result<(), Packet<'a>> {
        with_slot(self.traced, packet, |traced| {
            traced.verdict = Verdict::Forward;
            traced.departure = Some((port, FrameCopy::of(packet)));
        });
        self.egress.send(port, packet)
    }
}

fn with_slot(traced: &mut [(usize, TracedPacket)], packet: &Slot, mut change: impl FnMut(&mut TracedPacket)) {
    let address = address(packet);
    traced.iter_mut().filter(|(of, _)| *of == address).for_each(|(_, traced)| change(traced));
}

/// Tells slots apart; nothing is read through this address.
fn address(packet: &Slot) -> usize {
    std::ptr::from_ref(packet).addr()
}
