//! The thread of one worker: it forwards until it is stopped, and sleeps while no packets come in.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use fullview_filter::ruleset::Language;
use fullview_plane::burst::Packet;
use fullview_plane::counters::Counters;
use fullview_plane::forward::Forwarder;
use fullview_plane::port::{Port, PortError};
use fullview_plane::report_time::ReportTime;
use fullview_plane::worker::{Exchange, SlowPath, Wait, WakeWorker, Worker};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::{CpuSet, sched_setaffinity, set_name};

use super::counts::{CountSnapshot, WorkerState};
use super::error::DaemonError;
use super::running_filter::WorkerFilter;
use super::wakeup::Wakeup;
use crate::log;

/// A worker that is stopped still forwards what came in before, in this many rounds at most. It pauses after a round in
/// which the kernel did not send.
const LAST_ROUNDS: u32 = 64;
const LAST_PAUSE: Duration = Duration::from_millis(5);

/// A worker without packets looks at least this often whether it is stopped, and what was published. Next hops that were released
/// meanwhile stay reserved until then: the kernel reports far fewer than there are indices.
const SLEEP: Duration = Duration::from_millis(50);

/// How workers with these parts of a filter hand packets over to each other; nothing if there are not several.
pub fn exchanges(filters: &[WorkerFilter]) -> Vec<Exchange<'static>> {
    let [first, _, ..] = filters else { return Vec::new() };
    let wakes = filters.iter().map(|filter| {
        let wakeup = filter.wakeup.clone();
        Box::new(move || wakeup.notify()) as WakeWorker
    });
    // ipfw has states for errors themselves. The language stays as long as the router runs.
    Exchange::between(wakes, first.filter.rules().language() == Language::Pf)
}

/// A port that a worker can wait for.
pub trait WorkerPort: Port<'static> + Send + 'static {
    /// Readable when there are frames to receive.
    fn as_fd(&self) -> BorrowedFd<'_>;

    /// Whether a worker that sleeps may wait for it.
    fn may_be_polled(&self) -> bool;

    /// Closes the port, and returns those of its slots that the kernel no longer writes to.
    fn close(self) -> Vec<Packet<'static>>;
}

/// The parts of a worker.
pub struct WorkerParts<P, S> {
    pub forwarder: Forwarder,
    /// Ports by number; `None` for an interface that does not exist now.
    pub ports: Vec<Option<P>>,
    pub packets: Vec<Packet<'static>>,
    pub slow: S,
    /// The core to run on; `None` for any.
    pub core: Option<usize>,
    /// Wakes the worker while it sleeps.
    pub wakeup: Option<Wakeup>,
    /// What it hands packets over by if there are several workers with a filter.
    pub exchange: Option<Exchange<'static>>,
}

/// Other ports for a worker that runs.
pub struct PortChange<P, S> {
    /// By number, with packet memory of their own; `None` takes a port out.
    pub ports: Vec<(usize, Option<PortAndMemory<P>>)>,
    /// Slots of ports that were taken out before, which the worker gives back now.
    pub surplus: usize,
    /// Tells the forwarder and the slow path the links of the ports.
    pub adapt: Adaptation<S>,
}

/// A change of a forwarder and a slow path.
pub type Adaptation<S> = Box<dyn FnOnce(&mut Forwarder, &mut S) + Send>;

/// A port, and its packet memory.
pub type PortAndMemory<P> = (P, Vec<Packet<'static>>);

/// What a worker does not need any more. To close a packet socket takes longer than a ring has room for.
pub struct UnusedPorts<P> {
    pub ports: Vec<P>,
    pub packets: Vec<Packet<'static>>,
}

/// A change, and where what is unused then goes.
type PortRequest<P, S> = (PortChange<P, S>, SyncSender<UnusedPorts<P>>);

/// A worker's running thread.
pub struct WorkerThread<P, S> {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<EndedWorker<S>>,
    status: Arc<WorkerState>,
    changes: SyncSender<PortRequest<P, S>>,
}

/// What a worker returns when it ends.
pub struct EndedWorker<S> {
    pub slow: S,
    pub packets: Vec<Packet<'static>>,
    /// The filter, for a worker that goes on in place of this one.
    pub filter: Option<WorkerFilter>,
    /// It may hold packets until all workers have ended.
    pub exchange: Option<Exchange<'static>>,
    pub result: Result<Counters, PortError>,
}

impl<P: WorkerPort, S: SlowPath + Send + 'static> WorkerThread<P, S> {
    /// Starts the thread, and waits until its ports have memory: before that, frames would find no slot.
    pub fn start(parts: WorkerParts<P, S>) -> WorkerThread<P, S> {
        let (stop, status) = (Arc::<AtomicBool>::default(), Arc::<WorkerState>::default());
        let (stopped, published) = (Arc::clone(&stop), Arc::clone(&status));
        let (ready, is_ready) = sync_channel(1);
        let (changes, changed) = sync_channel(1);
        let commands = Commands { stop: stopped, changes: changed };
        let thread = std::thread::spawn(move || work(parts, &commands, &published, &ready));
        // This fails if the thread panicked, which `join` reports.
        let _ = is_ready.recv();
        WorkerThread { stop, thread, status, changes }
    }

    /// Asks the worker to use other ports, from its next round on. What is unused then comes by the channel, which ends if the worker
    /// does. A worker that has ended leaves the change.
    pub fn change(&self, change: PortChange<P, S>) -> Result<Receiver<UnusedPorts<P>>, PortChange<P, S>> {
        let (done, unused) = sync_channel(1);
        self.changes.send((change, done)).map_err(|unsent| unsent.0.0)?;
        self.stop();
        Ok(unused)
    }

    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// When the worker's last round began.
    pub fn round_began(&self) -> Option<ReportTime> {
        self.status.round_began()
    }

    /// Asks the worker to end, without waiting for it.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Waits until the worker has ended.
    pub fn join(self) -> Result<EndedWorker<S>, DaemonError> {
        self.thread.join().map_err(|_| DaemonError::WorkerPanicked)
    }

    pub fn snapshot(&self, number: usize) -> CountSnapshot {
        self.status.snapshot(number)
    }
}

/// What the router's thread asks of a worker.
struct Commands<P, S> {
    /// The worker is to end, or a change waits.
    stop: Arc<AtomicBool>,
    changes: Receiver<PortRequest<P, S>>,
}

impl<P: WorkerPort, S: SlowPath> Commands<P, S> {
    /// Forwards until the worker is to end, or all its ports are gone.
    fn follow<W: Wait<P>>(&self, worker: &mut Worker<'static, P, &mut S, W>) -> Result<(), PortError> {
        loop {
            worker.run(&self.stop)?;
            let Ok((change, done)) = self.changes.try_recv() else { return Ok(()) };
            // The router's thread sets it after it has sent the change.
            while !self.stop.swap(false, Ordering::Acquire) {
                std::hint::spin_loop();
            }
            // The router's thread waits for it.
            let _ = done.send(apply(change, worker)?);
        }
    }
}

fn apply<P: WorkerPort, S: SlowPath, W: Wait<P>>(
    change: PortChange<P, S>,
    worker: &mut Worker<'static, P, &mut S, W>,
) -> Result<UnusedPorts<P>, PortError> {
    let mut unused = UnusedPorts { ports: Vec::new(), packets: worker.take_packets(change.surplus) };
    for (number, port) in change.ports {
        let (before, packets) = worker.take_port(number)?;
        unused.ports.extend(before);
        unused.packets.extend(packets);
        port.into_iter().for_each(|(port, packets)| worker.put_port(number, port, packets));
    }
    worker.adapt(|forwarder, slow| (change.adapt)(forwarder, slow));
    Ok(unused)
}

/// Forwards until the worker is stopped, or all its ports are gone.
fn work<P: WorkerPort, S: SlowPath>(
    parts: WorkerParts<P, S>,
    commands: &Commands<P, S>,
    status: &Arc<WorkerState>,
    ready: &SyncSender<()>,
) -> EndedWorker<S> {
    let WorkerParts { forwarder, ports, packets, mut slow, core, wakeup, exchange } = parts;
    // Tools such as `top -H` show the name; without it they show that of the program.
    let _ = set_name(c"worker");
    core.into_iter().for_each(stay_on);
    let sleep = Sleep { status: Arc::clone(status), wakeup: wakeup.clone() };
    let mut worker = Worker::new(forwarder, ports, packets.into_iter(), &mut slow, sleep);
    exchange.into_iter().for_each(|exchange| worker.set_exchange(exchange));
    status.publish(worker.published());
    // The channel has room, and the thread that started this one waits for it.
    let _ = ready.send(());
    let mut result = commands.follow(&mut worker);
    if let Err(error) = work_off(&mut worker) {
        result = Err(error);
    }
    let counters = worker.published().counters();
    let filter = worker.take_filter().zip(wakeup);
    let filter = filter.map(|((filter, server), wakeup)| WorkerFilter { filter, server, wakeup });
    let exchange = worker.take_exchange();
    let (ports, mut packets) = worker.into_parts();
    packets.extend(ports.into_iter().flatten().flat_map(P::close));
    EndedWorker { slow, packets, filter, exchange, result: result.map(|()| counters) }
}

/// Still forwards what came in before the stop, also what other workers hand over meanwhile.
fn work_off<P: WorkerPort, S: SlowPath, W: Wait<P>>(
    worker: &mut Worker<'static, P, &mut S, W>,
) -> Result<(), PortError> {
    let (mut result, mut are_all_done) = (Ok(()), false);
    for _ in 0..LAST_ROUNDS {
        match worker.round() {
            // What the others handed over came before they were done, so it was among this round's.
            Ok(0) if are_all_done && !worker.has_unsent() => break,
            Ok(0) => {
                let were_all_done = std::mem::replace(&mut are_all_done, worker.finish());
                if were_all_done == are_all_done {
                    std::thread::sleep(LAST_PAUSE);
                }
            }
            Ok(_) => {}
            Err(error) => result = Err(error),
        }
    }
    // Also one whose packets do not end lets the others go.
    worker.finish();
    result
}

/// Binds this thread to a core. The cores were available when the router started. One that was taken away since is no
/// reason to end: the worker runs on any core then.
fn stay_on(core: usize) {
    let mut only = CpuSet::new();
    only.set(core);
    if let Err(error) = sched_setaffinity(None, &only) {
        log::warning(&format!("a worker cannot be kept on core {core}: {error}; it runs on any core"));
    }
}

/// Waits for frames.
struct Sleep {
    status: Arc<WorkerState>,
    wakeup: Option<Wakeup>,
}

impl<P: WorkerPort> Wait<P> for Sleep {
    fn wait(&mut self, ports: &[Option<P>]) {
        // A port whose interface was removed is left out: its descriptor would report an error at once, each time.
        let present = ports.iter().flatten().filter(|port| !port.is_finished() && port.may_be_polled());
        let fds = present.map(WorkerPort::as_fd).chain(self.wakeup.iter().map(Wakeup::fd));
        let mut fds: Vec<_> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let timeout = Timespec { tv_sec: 0, tv_nsec: SLEEP.as_nanos() as i64 };
        // The result does not matter: the next round finds out what there is.
        self.status.asleep(|| {
            let _ = poll(&mut fds, Some(&timeout));
        });
        self.wakeup.iter().for_each(Wakeup::clear);
    }
}
