//! The threads that forward: each has its own end of every port, its own packet memory, its own counters.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::anyhow;
use fullview_plane::burst::{Arena, BURST, Burst};
use fullview_plane::counters::Counters;
use fullview_plane::forward::Forwarder;
use fullview_plane::kernel::event::LinkIndex;
use fullview_plane::kernel::mirror::Mirror;
use fullview_plane::port::packet::PacketPort;
use fullview_plane::port::{Port, PortError};
use fullview_plane::verdict::{Punt, Verdict};
use fullview_plane::view::ViewReader;
use fullview_plane::wire::ethernet::EtherType;
use fullview_plane::wire::{ethernet, ipv4, ipv6};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::resolve::Wanted;
use super::share::{Giver, Share};

/// Packets for each port of a worker: as many as wait at its two sides, and are on their way.
const PACKETS: usize = 5 * BURST;

/// Rounds without a packet before a worker sleeps until there is one.
const ROUNDS: u32 = 200;

/// How long it sleeps at most before it looks whether it is to stop.
const SLEEP: Duration = Duration::from_millis(50);

/// Destinations that may wait for the control thread.
const WANTED: usize = 64;

pub struct Workers {
    count: usize,
    share: Share,
    running: Vec<Worker>,
    /// Of those that ran before.
    counters: Counters,
}

struct Worker {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<(Giver, Result<Counters, PortError>)>,
    wanted: Receiver<Wanted>,
}

/// An end of an interface, and the interface's number in the kernel.
struct WorkerPort<'a> {
    link: LinkIndex,
    port: PacketPort<'a>,
}

/// By number; `None` is not there.
type WorkerPorts<'a> = Vec<Option<WorkerPort<'a>>>;

impl Workers {
    /// So many, once ports are known.
    pub fn new(count: usize) -> anyhow::Result<Workers> {
        Ok(Workers { count, share: Share::new(count)?, running: Vec::new(), counters: Counters::new(0) })
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
        let Some(ports) = unless_gone(self.open(links))? else { return Ok(()) };
        if unless_gone(links.iter().flatten().try_for_each(|(_, name)| self.share.take(name)))?.is_none() {
            return Ok(());
        }
        let share = &mut self.share;
        let start = |ports| Worker::start(mirror.views().reader(), ports, share.giver());
        self.running = ports.into_iter().map(start).collect();
        // From this moment on, and not before, frames are ours: none is forwarded twice, none by nobody.
        self.share.follow(mirror)
    }

    /// By worker and port.
    fn open(&mut self, links: &[Option<(LinkIndex, String)>]) -> anyhow::Result<Vec<WorkerPorts<'static>>> {
        let mut all: Vec<WorkerPorts<'static>> = (0..self.count).map(|_| Vec::new()).collect();
        for (number, link) in (0..).zip(links) {
            let Some((link, name)) = link else {
                all.iter_mut().for_each(|ports| ports.push(None));
                continue;
            };
            let group = PacketPort::open_group(number, name, self.count, self.share.options()?)?;
            let group = group.into_iter().map(|port| Some(WorkerPort { link: *link, port }));
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
        self.running.iter().for_each(|worker| worker.stop.store(true, Ordering::Relaxed));
        for worker in self.running.drain(..) {
            let (giver, counters) =
                worker.thread.join().map_err(|_| anyhow!("a worker panicked; this is a bug"))?;
            self.share.take_back(giver);
            self.counters.add(&counters?);
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

impl Worker {
    fn start(views: ViewReader, ports: WorkerPorts<'static>, mut giver: Giver) -> Worker {
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, wanted) = sync_channel(WANTED);
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let counters = work(views, ports, &mut giver, &sender, &stopped);
            (giver, counters)
        });
        Worker { stop, thread, wanted }
    }
}

/// Forwards until it is to stop, or a port is gone for good.
fn work(
    views: ViewReader,
    ports: WorkerPorts<'static>,
    giver: &mut Giver,
    wanted: &SyncSender<Wanted>,
    stop: &AtomicBool,
) -> Result<Counters, PortError> {
    let mut arena = Arena::new(PACKETS * ports.len().max(1));
    let mut path = Path::new(views, ports);
    let mut packets = arena.packets();
    let mut idle = 0;
    while !stop.load(Ordering::Relaxed) && !path.is_finished() {
        // What ports have taken of the free packets makes room for more.
        path.free.fill(&mut packets);
        idle = if path.round(giver, wanted)? > 0 { 0 } else { idle + 1 };
        if idle > ROUNDS {
            path.sleep();
            idle = 0;
        }
    }
    // What had come by then is not lost.
    for _ in 0..ROUNDS {
        if path.round(giver, wanted)? == 0 {
            break;
        }
    }
    Ok(path.forwarder.take_counters())
}

/// The ports and the bursts between them.
struct Path<'a> {
    forwarder: Forwarder,
    ports: WorkerPorts<'a>,
    egress: Vec<Burst<'a>>,
    burst: Burst<'a>,
    rejected: Burst<'a>,
    free: Burst<'a>,
}

impl<'a> Path<'a> {
    fn new(views: ViewReader, ports: WorkerPorts<'a>) -> Path<'a> {
        let egress = ports.iter().map(|_| Burst::new()).collect();
        let (burst, rejected, free) = (Burst::new(), Burst::new(), Burst::new());
        Path { forwarder: Forwarder::new(views), ports, egress, burst, rejected, free }
    }

    /// Every port once; returns how many packets there were.
    fn round(&mut self, giver: &mut Giver, wanted: &SyncSender<Wanted>) -> Result<usize, PortError> {
        let mut received = 0;
        for number in 0..self.ports.len() {
            let Some(WorkerPort { link, port }) = &mut self.ports[number] else { continue };
            port.recycle(&mut self.free);
            received += unless_down(port.receive(&mut self.burst, BURST))?;
            self.forwarder.process(&mut self.burst, &mut *self.egress, &mut self.rejected);
            for packet in self.rejected.iter() {
                giver.give(*link, packet);
                want(packet, wanted);
            }
            giver.flush();
            self.send()?;
            self.free.fill(self.rejected.drain());
        }
        Ok(received)
    }

    /// What a port does not take now is lost, as at any full queue.
    fn send(&mut self) -> Result<(), PortError> {
        for (port, burst) in self.ports.iter_mut().zip(&mut self.egress) {
            if let Some(WorkerPort { port, .. }) = port {
                unless_down(port.transmit(burst))?;
                port.reclaim(&mut self.free);
            }
            self.free.fill(burst.drain());
        }
        Ok(())
    }

    fn is_finished(&self) -> bool {
        self.ports.iter().flatten().any(|end| end.port.is_finished())
    }

    fn sleep(&self) {
        let ends = self.ports.iter().flatten();
        let fds = ends.map(|end| PollFd::from_borrowed_fd(end.port.as_fd(), PollFlags::IN));
        let timeout = Timespec { tv_sec: 0, tv_nsec: SLEEP.as_nanos() as i64 };
        // Whatever it says, the next round finds out.
        let _ = poll(&mut fds.collect::<Vec<_>>(), Some(&timeout));
    }
}

/// An interface may go while ports are opened: netlink will say so, and all is tried again then.
fn unless_gone<T>(result: anyhow::Result<T>) -> anyhow::Result<Option<T>> {
    const GONE: [Errno; 3] = [Errno::NODEV, Errno::NXIO, Errno::NETDOWN];
    let is_gone = |error: &anyhow::Error| {
        let codes = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>()?.raw_os_error());
        codes.into_iter().any(|code| GONE.contains(&Errno::from_raw_os_error(code)))
    };
    match result {
        Err(error) if is_gone(&error) => Ok(None),
        other => other.map(Some),
    }
}

/// An interface that is down goes on when it is up, and one that is gone is told of by netlink.
fn unless_down(result: Result<usize, PortError>) -> Result<usize, PortError> {
    match result {
        Err(PortError::Down { .. } | PortError::Removed { .. }) => Ok(0),
        other => other,
    }
}

/// Notes where a packet was to go whose neighbour is not known.
fn want(packet: &fullview_plane::burst::Slot, wanted: &SyncSender<Wanted>) {
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
