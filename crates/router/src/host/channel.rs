//! Between several workers and one host for all of them: each worker hands over copies of what it rejects, and the
//! first one sends what the host has to say. Nobody waits for anybody: what does not fit into a queue is lost, and
//! counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rtrb::{Consumer, Producer, RingBuffer};

use super::HostStack;
use super::next_hop::NextHopResolver;
use super::output::{OutFrame, Output};
use super::tx_queue::TxQueue;
use fullview_plane::burst::FrameCopy;
use fullview_plane::forward::RedirectCandidate;
use fullview_plane::verdict::{Punt, Verdict};
use fullview_plane::worker::{Rejected, SlowPath};

/// What a worker rejected and the host has not looked at yet, at most.
const HEARD: usize = 256;
/// Frames of the host that wait for their worker, at most.
const SAID: usize = 1024;

/// Something for the host. All that wait lie side by side in memory that is there from the beginning, so that a worker
/// allocates nothing.
pub enum HostEvent {
    /// A packet that was not forwarded.
    Packet {
        /// By which interface it came in.
        interface: u16,
        /// Why not.
        verdict: Verdict,
        /// As it came in.
        frame: FrameCopy,
    },
    /// A packet whose sender could have taken a shorter way.
    RedirectCandidate(RedirectCandidate),
}

/// The host's end.
pub struct HostEndpoint {
    heard: Vec<Consumer<HostEvent>>,
    said: Producer<OutFrame>,
    unheard: Arc<AtomicU64>,
    unsaid: u64,
}

/// A worker's end; `wake` tells the host that there is something.
pub struct WorkerEndpoint {
    heard: Producer<HostEvent>,
    unheard: Arc<AtomicU64>,
    said: Option<Consumer<OutFrame>>,
    tx_queue: TxQueue,
    wake: Wake,
}

/// Tells the host's thread that there is something.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// The two ends, the latter for each worker.
pub fn channel(workers: usize, wake: &Wake) -> (HostEndpoint, Vec<WorkerEndpoint>) {
    let unheard = Arc::<AtomicU64>::default();
    let (said, frames) = RingBuffer::new(SAID);
    let (mut ears, mut ends, mut frames) = (Vec::new(), Vec::new(), Some(frames));
    for _ in 0..workers {
        let (heard, ear) = RingBuffer::new(HEARD);
        ears.push(ear);
        let (unheard, said, tx_queue, wake) =
            (Arc::clone(&unheard), frames.take(), TxQueue::default(), Arc::clone(wake));
        ends.push(WorkerEndpoint { heard, unheard, said, tx_queue, wake });
    }
    (HostEndpoint { heard: ears, said, unheard, unsaid: 0 }, ends)
}

impl HostEndpoint {
    /// The next thing that a worker has for the host; one after the other has its turn.
    pub fn next_event(&mut self) -> Option<HostEvent> {
        let heard = self.heard.iter_mut().position(|ear| !ear.is_empty())?;
        let next = self.heard[heard].pop().ok();
        self.heard.rotate_left(heard + 1);
        next
    }

    /// Whether there is something.
    pub fn has_events(&self) -> bool {
        self.heard.iter().any(|ear| !ear.is_empty())
    }

    /// Hands frames to the worker that sends them; whether there were any.
    pub fn send(&mut self, output: &mut Output) -> bool {
        let frames = output.frames.len();
        let refused = output.frames.drain(..).filter_map(|frame| self.said.push(frame).err()).count();
        self.unsaid += refused as u64;
        frames > 0
    }

    /// Packets that no room was found for on their way to the host, and frames on their way from it.
    pub fn dropped(&self) -> u64 {
        self.unheard.load(Ordering::Relaxed) + self.unsaid
    }
}

impl SlowPath for WorkerEndpoint {
    fn take(&mut self, rejected: Rejected<'_, '_>) {
        let Rejected { packets, redirects, out, free, .. } = rejected;
        let mut is_news = false;
        for packet in packets.iter().filter(|packet| concerns_host(packet.verdict)) {
            let (interface, verdict) = (packet.interface, packet.verdict);
            is_news |= self.tell(|| HostEvent::Packet { interface, verdict, frame: FrameCopy::of(packet) });
        }
        for detour in redirects {
            is_news |= self.tell(|| HostEvent::RedirectCandidate(detour.clone()));
        }
        if is_news {
            (self.wake)();
        }
        let said = self.said.iter_mut().flat_map(|said| std::iter::from_fn(|| said.pop().ok()));
        self.tx_queue.output.frames.extend(said);
        self.tx_queue.send(out, packets);
        self.tx_queue.send(out, free);
    }
}

impl WorkerEndpoint {
    /// Whether there was room; what there is none for is not copied.
    fn tell(&mut self, heard: impl FnOnce() -> HostEvent) -> bool {
        let told = !self.heard.is_full() && self.heard.push(heard()).is_ok();
        if !told {
            self.unheard.fetch_add(1, Ordering::Relaxed);
        }
        told
    }
}

/// Whether a host does anything about such packets.
fn concerns_host(verdict: Verdict) -> bool {
    match verdict {
        Verdict::Forward => false,
        Verdict::Drop(reason) => reason.is_answered(),
        Verdict::Punt(punt) => {
            !matches!(punt, Punt::NotIp | Punt::OtherVlan | Punt::Multicast | Punt::Broadcast)
        }
    }
}

impl<W: NextHopResolver> HostStack<W> {
    /// Does something about what a worker rejected.
    pub fn handle_event(&mut self, now: std::time::Duration, heard: &HostEvent, out: &mut Output) {
        match heard {
            HostEvent::Packet { interface, verdict, frame } => {
                self.hear(now, (*interface, *verdict), frame.frame(), out);
            }
            HostEvent::RedirectCandidate(detour) => self.redirect(now, detour, out),
        }
    }
}
