//! The threads that forward: each has its own end of every port, its own packet memory, its own counters.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use crate::mirror::Mirror;
use crate::route::LinkIndex;
use fullview_plane::burst::Slot;
use fullview_plane::counters::Counters;
use fullview_plane::forward::Forwarder;
use fullview_plane::verdict::{Punt, Verdict};
use fullview_plane::wire::ethernet;
use fullview_plane::wire::ethernet::EtherType;
use fullview_plane::wire::ipv4::Ipv4Packet;
use fullview_plane::wire::ipv6::Ipv6Packet;
use fullview_plane::worker::{Rejected, SlowPath};
use rustix::io::Errno;
use rustix::thread::{MembarrierCommand, membarrier};

use super::freshness::{Notes, NotingPort};
use super::links::is_gone;
use super::ports::{self, Memory, PortOptions};
use super::resolve::Wanted;
use super::share::{Giver, Share};
use super::show::{Counting, Snapshot};
use super::thread::{Job, Thread};
use crate::operations::hub::Hub;

/// How long a frame is on its way between the kernel's decision that it is ours and our ring, where the kernel does not
/// say when that is over.
const ON_ITS_WAY: Duration = Duration::from_millis(2);

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

/// A worker's thread, and what it could not send.
struct Running {
    thread: Thread<ToKernel>,
    wanted: Receiver<Wanted>,
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

    /// Whether a port has lost its interface.
    pub fn have_loss(&self) -> bool {
        self.notes.has_loss()
    }

    /// Tells the kernel what is ours, as the mirror has it now.
    pub fn follow(&mut self, mirror: &Mirror) -> anyhow::Result<()> {
        self.share.follow(mirror)
    }

    /// New workers on these interfaces, by port; `None` is not there.
    pub fn restart(&mut self, mirror: &Mirror, links: &[Option<(LinkIndex, String)>]) -> anyhow::Result<()> {
        self.end()?;
        self.notes.forget_loss();
        let there: Vec<LinkIndex> = links.iter().flatten().map(|(link, _)| *link).collect();
        self.share.keep(&there);
        let opened = self.open(links);
        let Some(ports) = unless_gone(opened, links)? else { return Ok(()) };
        let Workers { options, memory, share, hub, .. } = self;
        let numbers: Vec<LinkIndex> =
            links.iter().map(|link| link.as_ref().map_or(0, |(link, _)| *link)).collect();
        let mut cores = options.cores.clone().into_iter();
        let start = |ports: WorkerPorts| {
            let packets = memory.take(ports.iter().flatten().count(), options);
            let mut forwarder = Forwarder::new(mirror.views().reader());
            forwarder.set_tracer(hub.connect());
            let (sender, wanted) = sync_channel(WANTED);
            let slow = ToKernel { giver: share.giver(), links: numbers.clone(), wanted: sender };
            let core = cores.next();
            Running {
                thread: Thread::start(Job { forwarder, ports, packets, slow, core, bell: None }),
                wanted,
            }
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
            wait_for_processors();
        }
        self.running.iter().for_each(|worker| worker.thread.stop());
        for worker in self.running.drain(..) {
            let ended = worker.thread.join()?;
            self.share.take_back(ended.slow.giver);
            self.memory.take_back(ended.packets);
            self.counters.add(&ended.result?);
        }
        Ok(())
    }

    /// Ends all; what they counted.
    pub fn stop(mut self) -> anyhow::Result<Counters> {
        self.end()?;
        self.memory.tell();
        Ok(self.counters)
    }
}

impl Counting for Workers {
    /// Before those that run, what earlier ones had.
    fn snapshots(&self) -> anyhow::Result<Vec<Snapshot>> {
        let earlier = Snapshot::of_earlier(self.counters.clone());
        let running = (0..).zip(&self.running).map(|(number, worker)| worker.thread.snapshot(number));
        Ok(std::iter::once(earlier).chain(running).collect())
    }
}

/// Until every processor is done with the frames that it was about to hand over: on a busy machine that may be long after
/// it was decided that they are ours. A global barrier is a grace period of RCU, which the kernel's receive path holds up.
fn wait_for_processors() {
    if membarrier(MembarrierCommand::Global).is_err() {
        thread::sleep(ON_ITS_WAY);
    }
}

/// Gives rejected packets to the kernel, and notes neighbours that are missing.
struct ToKernel {
    giver: Giver,
    /// The kernel's numbers of the ports.
    links: Vec<LinkIndex>,
    wanted: SyncSender<Wanted>,
}

impl SlowPath for ToKernel {
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
            let packet = Ipv4Packet::new_checked(frame.payload()).ok()?;
            Some(IpAddr::V4(packet.destination().into()))
        }
        EtherType::IPV6 => {
            let packet = Ipv6Packet::new_checked(frame.payload()).ok()?;
            Some(IpAddr::V6(packet.destination().into()))
        }
        _ => None,
    }
}
