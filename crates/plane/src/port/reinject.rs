//! Reinjects frames into the kernel's receive path, as if an interface had just received them.
//!
//! Each worker has a [`Reinjector`], which copies a frame into a buffer of a bounded ring and never waits. One thread takes
//! the frames of all rings and makes the kernel receive them (`bpf/reinject.c`), many frames per call, because each call
//! ends with a wait of some ten milliseconds for all processors. When a ring is full, frames are refused, so that a flood
//! of punts costs the worker one comparison per packet.
//!
//! A trailer follows each packet, where Ethernet has padding. The classifier recognises it and leaves the frame to the
//! kernel.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use aya::maps::{Array, MapData};
use aya::programs::{TestRun, TestRunAttrs, TestRunOptions};
use rtrb::{Consumer, Producer, RingBuffer};

use super::classify::Trailer;
use super::packet_end::packet_end;
use crate::bpf::{BpfError, LoadedObject, REINJECT};
use crate::burst::FRAME_CAPACITY;

/// The longest frame with its trailer: `MOST` in reinject.c.
const MOST: usize = FRAME_CAPACITY + size_of::<Trailer>();
/// Frames per call: the number of entries in the map of reinject.c.
const BATCH: usize = 256;
/// Buffers of a worker.
const WAITING: usize = 512;
/// Buffers that packets of a flood leave free for others.
const RESERVED: usize = WAITING / 4;
/// How long the thread sleeps if no worker wakes it.
const IDLE_SLEEP: Duration = Duration::from_millis(100);

/// A frame on the way to the kernel.
struct ReinjectedFrame {
    interface: u32,
    worker: usize,
    len: usize,
    bytes: [u8; MOST],
}

/// The worker's end of a ring.
pub struct Reinjector {
    trailer: Trailer,
    free: Consumer<Box<ReinjectedFrame>>,
    full: Producer<Box<ReinjectedFrame>>,
    thread: Thread,
    has_queued: bool,
    refused: u64,
}

impl Reinjector {
    /// Queues a frame that the interface with this index received; `false` if there is no room now, or the frame is not IP.
    pub fn queue(&mut self, interface: u32, frame: &[u8]) -> bool {
        let queued = self.copy(interface, frame).is_some();
        self.refused += u64::from(!queued);
        self.has_queued |= queued;
        queued
    }

    /// Wakes the thread if frames were queued since the last call. Call it once per burst.
    pub fn flush(&mut self) {
        if std::mem::take(&mut self.has_queued) {
            self.thread.unpark();
        }
    }

    /// Whether most buffers are in use, so that only packets should be queued that no sender can have many of.
    pub fn is_busy(&self) -> bool {
        self.free.slots() <= RESERVED
    }

    /// Frames that were not queued.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    fn copy(&mut self, interface: u32, frame: &[u8]) -> Option<()> {
        // Only IP frames are ever taken from the kernel.
        let end = packet_end(frame).filter(|end| *end <= FRAME_CAPACITY)?;
        let mut buffer = self.free.pop().ok()?;
        let len = end + self.trailer.len();
        buffer.interface = interface;
        buffer.len = len;
        buffer.bytes[..end].copy_from_slice(&frame[..end]);
        buffer.bytes[end..len].copy_from_slice(&self.trailer);
        self.full.push(buffer).ok() // the ring has room for all buffers
    }
}

/// Counters of the frames of all workers.
#[derive(Debug, Default)]
pub struct ReinjectCounters {
    /// Frames that the kernel received.
    pub received: AtomicU64,
    /// Frames lost because their interface was removed or the kernel had no memory.
    pub lost: AtomicU64,
}

/// The thread that reinjects frames, until this value is dropped.
pub struct ReinjectThread {
    counters: Arc<ReinjectCounters>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ReinjectThread {
    /// Starts the thread for a number of workers, in the network namespace of the caller.
    pub fn start(
        trailer: Trailer,
        workers: usize,
    ) -> Result<(ReinjectThread, Vec<Reinjector>), ReinjectError> {
        let mut kernel = ReinjectProgram::load()?;
        let (counters, stop) = (Arc::new(ReinjectCounters::default()), Arc::new(AtomicBool::new(false)));
        let (ends, mut rings): (Vec<_>, Vec<_>) = (0..workers).map(ring).unzip();
        let (counted, stopped) = (Arc::clone(&counters), Arc::clone(&stop));
        let work = move || {
            while !stopped.load(Ordering::Relaxed) {
                if !kernel.receive_from(&mut rings, &counted) {
                    thread::park_timeout(IDLE_SLEEP);
                }
            }
        };
        let thread =
            thread::Builder::new().name("reinject".to_owned()).spawn(work).map_err(ReinjectError::Thread)?;
        let reinjector = |(free, full)| Reinjector {
            trailer,
            free,
            full,
            thread: thread.thread().clone(),
            has_queued: false,
            refused: 0,
        };
        let reinjectors = ends.into_iter().map(reinjector).collect();
        Ok((ReinjectThread { counters, stop, thread: Some(thread) }, reinjectors))
    }

    /// Counters of the frames of all workers.
    pub fn counters(&self) -> &ReinjectCounters {
        &self.counters
    }
}

impl Drop for ReinjectThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // If the thread panicked, it has ended all the same.
            let _ = thread.join();
        }
    }
}

/// Why frames cannot be reinjected.
#[derive(Debug, thiserror::Error)]
pub enum ReinjectError {
    /// The kernel refused the program.
    #[error(transparent)]
    Bpf(#[from] BpfError),
    /// The thread cannot be started.
    #[error("the thread that returns frames to the kernel cannot be started: {0}")]
    Thread(std::io::Error),
}

/// The thread's end of a ring.
struct ReinjectRing {
    full: Consumer<Box<ReinjectedFrame>>,
    free: Producer<Box<ReinjectedFrame>>,
}

type ReinjectorEnds = (Consumer<Box<ReinjectedFrame>>, Producer<Box<ReinjectedFrame>>);

/// Both ends of a worker's ring, with all buffers free.
fn ring(worker: usize) -> (ReinjectorEnds, ReinjectRing) {
    let (full_in, full) = RingBuffer::new(WAITING);
    let (mut free, free_out) = RingBuffer::new(WAITING);
    let buffers = || Box::new(ReinjectedFrame { interface: 0, worker, len: 0, bytes: [0; MOST] });
    while free.push(buffers()).is_ok() {}
    ((free_out, full_in), ReinjectRing { full, free })
}

/// The program that the kernel runs for each frame.
struct ReinjectProgram(LoadedObject);

impl ReinjectProgram {
    fn load() -> Result<ReinjectProgram, BpfError> {
        let mut loaded = REINJECT.load()?;
        loaded.xdp("reinject")?;
        Ok(ReinjectProgram(loaded))
    }

    /// Makes the kernel receive the frames of all rings; `false` if there were none.
    fn receive_from(&mut self, rings: &mut [ReinjectRing], counters: &ReinjectCounters) -> bool {
        let mut waiting = BTreeMap::<u32, Vec<Box<ReinjectedFrame>>>::new();
        for buffer in
            rings.iter_mut().flat_map(|ring| std::iter::from_fn(|| ring.full.pop().ok()).take(WAITING))
        {
            waiting.entry(buffer.interface).or_default().push(buffer);
        }
        for (interface, buffers) in &waiting {
            for batch in buffers.chunks(BATCH) {
                let received = self.receive(*interface, batch).is_ok();
                let counter = if received { &counters.received } else { &counters.lost };
                counter.fetch_add(batch.len() as u64, Ordering::Relaxed);
            }
        }
        let any = !waiting.is_empty();
        for buffer in waiting.into_values().flatten() {
            let ring = &mut rings[buffer.worker];
            let _ = ring.free.push(buffer); // the ring has room for all buffers
        }
        any
    }

    /// Makes the kernel receive these frames by an interface.
    fn receive(
        &mut self,
        interface: u32,
        batch: &[Box<ReinjectedFrame>],
    ) -> Result<(), Box<dyn std::error::Error>> {
        let mut frames: Array<&mut MapData, [u8; 4 + MOST]> = self.0.map("frames")?;
        for (number, buffer) in (0..).zip(batch) {
            frames.set(number, entry(buffer), 0)?;
        }
        let mut next: Array<&mut MapData, u32> = self.0.map("next")?;
        next.set(0, 0, 0)?;
        let context = context(interface);
        let options = TestRunOptions {
            data_in: Some(&[0; MOST]),
            ctx_in: Some(&context),
            repeat: batch.len() as u32,
            attrs: TestRunAttrs::new().xdp_live_frames(batch.len() as u32),
            ..TestRunOptions::new()
        };
        self.0.xdp("reinject")?.test_run(options)?;
        Ok(())
    }
}

/// `struct frame` in reinject.c.
fn entry(buffer: &ReinjectedFrame) -> [u8; 4 + MOST] {
    let mut entry = [0; 4 + MOST];
    entry[..4].copy_from_slice(&(buffer.len as u32).to_ne_bytes());
    entry[4..].copy_from_slice(&buffer.bytes);
    entry
}

/// `struct xdp_md`: begin and end of the data, no metadata, interface and queue.
fn context(interface: u32) -> [u8; 24] {
    let mut context = [0; 24];
    for (field, value) in context.chunks_exact_mut(4).zip([0, MOST as u32, 0, interface, 0, 0]) {
        field.copy_from_slice(&value.to_ne_bytes());
    }
    context
}
