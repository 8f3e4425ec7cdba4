//! One worker's thread: it forwards until it is to stop, and sleeps while nothing comes in.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::anyhow;
use fullview_plane::burst::Packet;
use fullview_plane::counters::Counters;
use fullview_plane::forward::Forwarder;
use fullview_plane::port::{Port, PortError};
use fullview_plane::worker::{SlowPath, Wait, Worker};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::{CpuSet, sched_setaffinity};

use super::bell::Bell;
use super::show::{Shown, Snapshot};
use crate::log;

/// Rounds at most for what came before the end, and how long each waits for a kernel that has no time to send.
const LAST_ROUNDS: u32 = 64;
const LAST_PAUSE: Duration = Duration::from_millis(5);

/// How long a worker without packets sleeps at most before it looks whether it is to stop.
const SLEEP: Duration = Duration::from_millis(50);

/// A port that can be waited on.
pub trait WorkerPort: Port<'static> + Send + 'static {
    /// Readable when there is something to receive.
    fn as_fd(&self) -> BorrowedFd<'_>;

    /// Closes it; the slots that it had and nobody writes to any more.
    fn close(self) -> Vec<Packet<'static>>;
}

/// What a worker is made of.
pub struct Job<P, S> {
    pub forwarder: Forwarder,
    /// By number; `None` is not there.
    pub ports: Vec<Option<P>>,
    pub packets: Vec<Packet<'static>>,
    pub slow: S,
    /// Where it is to run; anywhere, if nobody says.
    pub core: Option<usize>,
    /// Wakes it.
    pub bell: Option<Bell>,
}

/// A worker's thread.
pub struct Thread<S> {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Ended<S>>,
    shown: Arc<Shown>,
}

/// What a worker leaves.
pub struct Ended<S> {
    pub slow: S,
    pub packets: Vec<Packet<'static>>,
    pub result: Result<Counters, PortError>,
}

impl<S: SlowPath + Send + 'static> Thread<S> {
    pub fn start<P: WorkerPort>(job: Job<P, S>) -> Thread<S> {
        let (stop, shown) = (Arc::<AtomicBool>::default(), Arc::<Shown>::default());
        let (stopped, show) = (Arc::clone(&stop), Arc::clone(&shown));
        let (tell, ready) = sync_channel(1);
        let thread = std::thread::spawn(move || work(job, &stopped, Beginning { show, tell }));
        // Nobody answers if it panicked, which is found out when it is joined.
        let _ = ready.recv();
        Thread { stop, thread, shown }
    }

    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Asks it to end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Waits until it has ended.
    pub fn join(self) -> anyhow::Result<Ended<S>> {
        self.thread.join().map_err(|_| anyhow!("a worker panicked; this is a bug"))
    }

    /// What it has counted up to now.
    pub fn snapshot(&self, number: usize) -> Snapshot {
        self.shown.snapshot(number)
    }
}

/// To whom a worker shows itself.
struct Beginning {
    show: Arc<Shown>,
    /// Told when its ports have memory: until then frames would find no slot.
    tell: SyncSender<()>,
}

/// Forwards until it is to stop, or all ports are gone.
fn work<P: WorkerPort, S: SlowPath>(job: Job<P, S>, stop: &AtomicBool, beginning: Beginning) -> Ended<S> {
    let Beginning { show, tell } = beginning;
    let Job { forwarder, ports, packets, mut slow, core, bell } = job;
    core.into_iter().for_each(stay_on);
    let sleep = Sleep { shown: Arc::clone(&show), bell };
    let mut worker = Worker::new(forwarder, ports, packets.into_iter(), &mut slow, sleep);
    show.show(worker.published());
    // Whoever began this waits for it.
    let _ = tell.send(());
    let mut result = worker.run(stop);
    // What had come by then is not lost.
    for _ in 0..LAST_ROUNDS {
        match worker.round() {
            Ok(0) if !worker.has_unsent() => break,
            Ok(0) => std::thread::sleep(LAST_PAUSE),
            Ok(_) => {}
            Err(error) => result = Err(error),
        }
    }
    let counters = worker.published().counters();
    let (ports, mut packets) = worker.into_parts();
    packets.extend(ports.into_iter().flatten().flat_map(P::close));
    Ended { slow, packets, result: result.map(|()| counters) }
}

/// The cores were there when the router began; one that was taken away since is missed, but no reason to end.
fn stay_on(core: usize) {
    let mut only = CpuSet::new();
    only.set(core);
    if let Err(error) = sched_setaffinity(None, &only) {
        log::line(&format!("a worker cannot be kept on core {core}: {error}; it runs anywhere"));
    }
}

/// Waits for frames.
struct Sleep {
    shown: Arc<Shown>,
    bell: Option<Bell>,
}

impl<P: WorkerPort> Wait<P> for Sleep {
    fn wait(&mut self, ports: &[Option<P>]) {
        // What is gone has an error to tell at once, for ever.
        let there = ports.iter().flatten().filter(|port| !port.is_finished());
        let fds = there.map(WorkerPort::as_fd).chain(self.bell.iter().map(Bell::fd));
        let mut fds: Vec<_> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let timeout = Timespec { tv_sec: 0, tv_nsec: SLEEP.as_nanos() as i64 };
        // Whatever it says, the next round finds out.
        self.shown.asleep(|| {
            let _ = poll(&mut fds, Some(&timeout));
        });
        self.bell.iter().for_each(Bell::quiet);
    }
}
