//! The threads that forward: each has its own end of every port, its own packet memory, its own counters.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::anyhow;
use fullview_plane::burst::{Packet, Slot};
use fullview_plane::counters::Counters;
use fullview_plane::forward::Forwarder;
use fullview_plane::kernel::event::LinkIndex;
use fullview_plane::kernel::mirror::Mirror;
use fullview_plane::port::PortError;
use fullview_plane::verdict::{Punt, Verdict};
use fullview_plane::wire::ethernet::EtherType;
use fullview_plane::wire::{ethernet, ipv4, ipv6};
use fullview_plane::worker::{Rejected, Slow, Wait, Worker};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::freshness::{Notes, NotingPort};
use super::links::is_gone;
use super::ports::{self, Memory, PortOptions};
use super::resolve::Wanted;
use super::share::{Giver, Share};
use super::show::{Counting, Shown, Snapshot};
use crate::operations::hub::Hub;

/// How long a frame may be on its way between the kernel's decision that it is ours and our ring.
const ON_ITS_WAY: Duration = Duration::from_millis(2);

/// Rounds at most for what came before the end.
const LAST_ROUNDS: u32 = 64;

/// How long a worker without packets sleeps at most before it looks whether it is to stop.
const SLEEP: Duration = Duration::from_millis(50);

/// Destinations that may wait for the control thread.
const WANTED: usize = 64;

pub struct Workers {
    count: usize,
    options: PortOptions,
    memory: Memory,
    share: Share,
    notes: Arc<Notes>,
    running: Vec<Running>,
    /// Of those that ran before.
    counters: Counters,
    hub: Arc<Hub>,
}

/// A worker's thread.
struct Running {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Ended>,
    wanted: Receiver<Wanted>,
    shown: Arc<Shown>,
}

/// What a worker leaves.
struct Ended {
    giver: Giver,
    packets: Vec<Packet<'static>>,
    result: Result<Counters, PortError>,
}

/// By number; `None` is not there.
type WorkerPorts = Vec<Option<NotingPort>>;

impl Workers {
    /// So many, once ports are known; `hub` is for those who watch packets.
    pub fn new(
        count: usize,
        options: PortOptions,
        notes: Arc<Notes>,
        hub: Arc<Hub>,
    ) -> anyhow::Result<Workers> {
        let (share, memory, counters) = (Share::new(count)?, Memory::new(), Counters::new(0));
        Ok(Workers { count, options, memory, share, notes, running: Vec::new(), counters, hub })
    }

    /// How its ports are wanted.
    pub fn options(&self) -> &PortOptions {
        &self.options
    }

    /// Whether all go on. One that ended has something to say: the next restart returns it.
    pub fn are_running(&self) -> bool {
        !self.running.is_empty() && self.running.iter().all(|worker| !worker.thread.is_finished())
    }

    /// Tells the kernel what is ours, as the mirror has it now.
    pub fn follow(&mut self, mirror: &Mirror) -> anyhow::Result<()> {
        self.share.follow(mirror)
    }

    /// New workers on these interfaces, by port; `None` is not there.
    pub fn restart(&mut self, mirror: &Mirror, links: &[Option<(LinkIndex, String)>]) -> anyhow::Result<()> {
        self.end()?;
        let opened = self.open(links);
        let Some(ports) = unless_gone(opened, links)? else { return Ok(()) };
        let Workers { options, memory, share, hub, .. } = self;
        let numbers: Vec<LinkIndex> =
            links.iter().map(|link| link.as_ref().map_or(0, |(link, _)| *link)).collect();
        let start = |ports: WorkerPorts| {
            let packets = memory.take(ports.iter().flatten().count(), options);
            let mut forwarder = Forwarder::new(mirror.views().reader());
            forwarder.watch(hub.connect());
            Running::start(forwarder, ports, packets, share.giver(), numbers.clone())
        };
        self.running = ports.into_iter().map(start).collect();
        // From this moment on, and not before, frames are ours: none is forwarded twice, none by nobody.
        self.share.follow(mirror)
    }

    /// By worker and port.
    fn open(&mut self, links: &[Option<(LinkIndex, String)>]) -> anyhow::Result<Vec<WorkerPorts>> {
        self.memory.ensure(self.count * links.iter().flatten().count(), &self.options);
        let mut all: Vec<WorkerPorts> = (0..self.count).map(|_| Vec::new()).collect();
        for (number, link) in (0..).zip(links) {
            let Some((_, name)) = link else {
                all.iter_mut().for_each(|ports| ports.push(None));
                continue;
            };
            let interface = (number, name.as_str());
            let group = ports::open(interface, self.count, &self.options, &self.memory, &mut self.share)?;
            let group =
                group.into_iter().map(|port| Some(NotingPort { port, notes: Arc::clone(&self.notes) }));
            all.iter_mut().zip(group).for_each(|(ports, port)| ports.push(port));
        }
        Ok(all)
    }

    /// Destinations that workers could not send to.
    pub fn unresolved(&mut self) -> Vec<Wanted> {
        self.running.iter().flat_map(|worker| worker.wanted.try_iter()).collect()
    }

    /// Frames are the kernel's from now on, and what we have already is still forwarded.
    fn end(&mut self) -> anyhow::Result<()> {
        self.share.pause()?;
        if !self.running.is_empty() {
            thread::sleep(ON_ITS_WAY);
        }
        self.running.iter().for_each(|worker| worker.stop.store(true, Ordering::Relaxed));
        for worker in self.running.drain(..) {
            let ended = worker.thread.join().map_err(|_| anyhow!("a worker panicked; this is a bug"))?;
            self.share.take_back(ended.giver);
            self.memory.take_back(ended.packets);
            self.counters.add(&ended.result?);
        }
        self.share.release();
        Ok(())
    }

    /// Ends all; what they counted.
    pub fn stop(mut self) -> anyhow::Result<Counters> {
        self.end()?;
        Ok(self.counters)
    }
}

impl Counting for Workers {
    /// Before those that run, what earlier ones had.
    fn snapshots(&self) -> anyhow::Result<Vec<Snapshot>> {
        let earlier = Snapshot::of_earlier(self.counters.clone());
        let running = (0..).zip(&self.running).map(|(number, worker)| worker.shown.snapshot(number));
        Ok(std::iter::once(earlier).chain(running).collect())
    }
}

impl Running {
    fn start(
        forwarder: Forwarder,
        ports: WorkerPorts,
        packets: Vec<Packet<'static>>,
        giver: Giver,
        links: Vec<LinkIndex>,
    ) -> Running {
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, wanted) = sync_channel(WANTED);
        let stopped = Arc::clone(&stop);
        let slow = ToKernel { giver, links, wanted: sender };
        let shown = Arc::<Shown>::default();
        let show = Arc::clone(&shown);
        let thread = thread::spawn(move || work(forwarder, ports, packets, slow, &stopped, show));
        Running { stop, thread, wanted, shown }
    }
}

/// Forwards until it is to stop, or all ports are gone.
fn work(
    forwarder: Forwarder,
    ports: WorkerPorts,
    packets: Vec<Packet<'static>>,
    mut slow: ToKernel,
    stop: &AtomicBool,
    shown: Arc<Shown>,
) -> Ended {
    let sleep = Sleep(Arc::clone(&shown));
    let mut worker = Worker::new(forwarder, ports, packets.into_iter(), &mut slow, sleep);
    shown.show(worker.published());
    let mut result = worker.run(stop);
    // What had come by then is not lost.
    for _ in 0..LAST_ROUNDS {
        match worker.round() {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => result = Err(error),
        }
    }
    let counters = worker.published().counters();
    let (ports, mut packets) = worker.into_parts();
    packets.extend(ports.into_iter().flatten().flat_map(|noting| noting.port.close()));
    Ended { giver: slow.giver, packets, result: result.map(|()| counters) }
}

/// Waits for frames.
struct Sleep(Arc<Shown>);

impl Wait<NotingPort> for Sleep {
    fn wait(&mut self, ports: &[Option<NotingPort>]) {
        let fds = ports.iter().flatten().map(|noting| noting.port.as_fd());
        let fds = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let timeout = Timespec { tv_sec: 0, tv_nsec: SLEEP.as_nanos() as i64 };
        // Whatever it says, the next round finds out.
        self.0.asleep(|| {
            let _ = poll(&mut fds.collect::<Vec<_>>(), Some(&timeout));
        });
    }
}

/// Gives rejected packets to the kernel, and notes neighbours that are missing.
struct ToKernel {
    giver: Giver,
    /// The kernel's numbers of the ports.
    links: Vec<LinkIndex>,
    wanted: SyncSender<Wanted>,
}

impl Slow for &mut ToKernel {
    fn take(&mut self, rejected: Rejected<'_, '_>) {
        for packet in rejected.packets.iter() {
            if let Some(link) = self.links.get(usize::from(packet.port)) {
                self.giver.give(*link, packet);
            }
            want(packet, &self.wanted);
        }
        self.giver.flush();
    }
}

/// An interface may go while ports are opened: netlink will say so, and all is tried again then. Not every error names
/// that cause, so it is looked for as well.
fn unless_gone<T>(
    result: anyhow::Result<T>,
    links: &[Option<(LinkIndex, String)>],
) -> anyhow::Result<Option<T>> {
    const GONE: [Errno; 3] = [Errno::NODEV, Errno::NXIO, Errno::NETDOWN];
    let says_so = |error: &anyhow::Error| {
        let codes = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>()?.raw_os_error());
        codes.into_iter().any(|code| GONE.contains(&Errno::from_raw_os_error(code)))
    };
    let is_any_gone = || links.iter().flatten().any(|(index, name)| is_gone(name, *index));
    match result {
        Err(error) if says_so(&error) || is_any_gone() => Ok(None),
        other => other.map(Some),
    }
}

/// Notes where a packet was to go whose neighbour is not known.
fn want(packet: &Slot, wanted: &SyncSender<Wanted>) {
    if packet.verdict != Verdict::Punt(Punt::Glean) {
        return;
    }
    if let Some(destination) = destination(packet.frame()) {
        // If there are more than the control thread can take, the next packet asks again.
        let _ = wanted.try_send(Wanted { interface: packet.interface, destination });
    }
}

fn destination(frame: &[u8]) -> Option<IpAddr> {
    let frame = ethernet::Frame::new_checked(frame).ok()?;
    match frame.ethertype() {
        EtherType::IPV4 => {
            let packet = ipv4::Packet::new_checked(frame.payload()).ok()?;
            Some(IpAddr::V4(packet.destination().into()))
        }
        EtherType::IPV6 => {
            let packet = ipv6::Packet::new_checked(frame.payload()).ok()?;
            Some(IpAddr::V6(packet.destination().into()))
        }
        _ => None,
    }
}
