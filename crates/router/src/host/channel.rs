//! The queues between several workers and the one host stack of their router. Each worker sends copies of the packets
//! that it rejects; the first worker transmits the host stack's frames. Neither side waits for the other: what does not
//! fit into a queue is dropped and counted.
//!
//! A worker has a queue for each class of packets, so that a flood of packets that cannot be forwarded does not keep ARP
//! and neighbour discovery, without which nothing is forwarded, from the host stack. Every class has turns, so that a flood
//! of those does not keep the others from it either.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rtrb::{Consumer, Producer, RingBuffer};

use super::output::{OutFrame, Output};
use super::packet_class::PacketClass;
use super::tx_queue::TxQueue;
use fullview_plane::burst::FrameCopy;
use fullview_plane::forward::{RedirectCandidate, WayOut};
use fullview_plane::verdict::{Punt, Verdict};
use fullview_plane::worker::{Rejected, SlowPath};

/// The most events of one worker and one class that wait for the host stack.
const EVENT_QUEUE: usize = 256;
/// The most frames of the host stack that wait for their worker.
const FRAME_QUEUE: usize = 1024;

/// A class has its turn when so many events of more important ones came before those of it that wait. A few events are in the
/// order of their importance; a flood leaves each class a part.
const MOST_BEFORE: u32 = 8;

/// What a worker reports to the host stack. Events lie side by side in memory that is allocated in advance, so that a
/// worker allocates nothing.
pub enum HostEvent {
    /// A packet that was not forwarded.
    Packet {
        /// The interface that received it.
        interface: u16,
        /// Why it was not forwarded.
        verdict: Verdict,
        /// By which interfaces it may leave.
        way: WayOut,
        /// The frame as it was received.
        frame: FrameCopy,
    },
    /// A packet that its sender could have sent directly to the next hop.
    RedirectCandidate(RedirectCandidate),
}

/// The host stack's end of the queues.
pub struct HostEndpoint {
    /// For each class the queues of all workers.
    events: [Vec<Consumer<HostEvent>>; PacketClass::COUNT],
    /// How many events of more important classes came before those of each class that wait.
    before: [u32; PacketClass::COUNT],
    tx: Producer<OutFrame>,
    /// Events and frames that workers dropped.
    dropped: Arc<AtomicU64>,
    frames_dropped: u64,
}

/// A worker's end of the queues.
pub struct WorkerEndpoint {
    /// A queue for each class.
    events: [Producer<HostEvent>; PacketClass::COUNT],
    /// Shared by all workers.
    dropped: Arc<AtomicU64>,
    /// The host stack's frames; only the first worker has them.
    tx: Option<Consumer<OutFrame>>,
    tx_queue: TxQueue,
    wake: Wake,
}

/// Wakes the host stack's thread when there are events.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// Makes the host stack's endpoint, and one for each worker.
pub fn channel(workers: usize, wake: &Wake) -> (HostEndpoint, Vec<WorkerEndpoint>) {
    let dropped = Arc::<AtomicU64>::default();
    let (tx, frames) = RingBuffer::new(FRAME_QUEUE);
    let mut receivers = [const { Vec::new() }; PacketClass::COUNT];
    let (mut endpoints, mut frames) = (Vec::new(), Some(frames));
    for _ in 0..workers {
        let events = receivers.each_mut().map(|receivers| {
            let (events, receiver) = RingBuffer::new(EVENT_QUEUE);
            receivers.push(receiver);
            events
        });
        let (dropped, wake) = (Arc::clone(&dropped), Arc::clone(wake));
        let (tx, tx_queue) = (frames.take(), TxQueue::default());
        endpoints.push(WorkerEndpoint { events, dropped, tx, tx_queue, wake });
    }
    (
        HostEndpoint { events: receivers, before: [0; PacketClass::COUNT], tx, dropped, frames_dropped: 0 },
        endpoints,
    )
}

impl HostEndpoint {
    /// Takes the next event of the class whose turn it is, from each worker in turn.
    pub fn next_event(&mut self) -> Option<HostEvent> {
        let waits = self.events.each_ref().map(|workers| workers.iter().any(|events| !events.is_empty()));
        let waiting = || (0..PacketClass::COUNT).filter(|class| waits[*class]);
        let class =
            waiting().find(|class| self.before[*class] >= MOST_BEFORE).or_else(|| waiting().next())?;
        waiting().filter(|other| *other > class).for_each(|other| self.before[other] += 1);
        self.before[class] = 0;
        next_of(&mut self.events[class])
    }

    pub fn has_events(&self) -> bool {
        self.events.iter().flatten().any(|events| !events.is_empty())
    }

    /// Passes frames to the worker that transmits them. Returns whether there were any.
    pub fn send(&mut self, output: &mut Output) -> bool {
        let frames = output.frames.len();
        let refused = output.frames.drain(..).filter_map(|frame| self.tx.push(frame).err()).count();
        self.frames_dropped += refused as u64;
        frames > 0
    }

    /// Events and frames dropped because a queue was full, and frames longer than a slot.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed) + self.frames_dropped
    }
}

fn next_of(workers: &mut [Consumer<HostEvent>]) -> Option<HostEvent> {
    let worker = workers.iter().position(|events| !events.is_empty())?;
    let next = workers[worker].pop().ok();
    workers.rotate_left(worker + 1);
    next
}

impl SlowPath for WorkerEndpoint {
    fn take(&mut self, rejected: Rejected<'_, '_>) {
        let Rejected { packets, filter, redirects, out, free, .. } = rejected;
        let mut has_sent = false;
        for packet in packets.iter().filter(|packet| is_handled(packet.verdict)) {
            let (interface, verdict) = (packet.interface, packet.verdict);
            // Both are looked for only if the queue has room, which bounds what a flood costs.
            let way = || filter.map_or(WayOut::Any, |filter| filter.way_out(packet));
            let event = || HostEvent::Packet { interface, verdict, way: way(), frame: FrameCopy::of(packet) };
            has_sent |= self.send_event(PacketClass::of(verdict, packet.frame()), event);
        }
        for candidate in redirects {
            let event = || HostEvent::RedirectCandidate(candidate.clone());
            has_sent |= self.send_event(PacketClass::Transit, event);
        }
        if has_sent {
            (self.wake)();
        }
        let frames = self.tx.iter_mut().flat_map(|tx| std::iter::from_fn(|| tx.pop().ok()));
        self.tx_queue.output.frames.extend(frames);
        let before = self.tx_queue.frames_dropped();
        self.tx_queue.send(out, packets);
        self.tx_queue.send(out, free);
        let dropped = self.tx_queue.frames_dropped() - before;
        // All workers write here, so that a write is not free.
        if dropped > 0 {
            self.dropped.fetch_add(dropped, Ordering::Relaxed);
        }
    }

    fn has_pending(&self) -> bool {
        self.tx_queue.has_pending()
    }
}

impl WorkerEndpoint {
    /// Returns whether the queue had room. Nothing is copied if it had none.
    fn send_event(&mut self, class: PacketClass, event: impl FnOnce() -> HostEvent) -> bool {
        let events = &mut self.events[class as usize];
        let sent = !events.is_full() && events.push(event()).is_ok();
        if !sent {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        sent
    }
}

/// Whether the host stack handles packets with this verdict.
fn is_handled(verdict: Verdict) -> bool {
    match verdict {
        Verdict::Forward => false,
        Verdict::Drop(reason) => reason.is_answered(),
        Verdict::Reject(_) => true,
        Verdict::Punt(punt) => {
            let is_ignored = matches!(
                punt,
                Punt::NotIp | Punt::OtherVlan | Punt::Multicast | Punt::Broadcast | Punt::WayBack
            );
            !is_ignored
        }
    }
}
