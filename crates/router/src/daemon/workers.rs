//! The workers of a router that mirrors the kernel. Each has its own end of every port, its own packet memory and its own
//! counters.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use fullview_plane::burst::Slot;
use fullview_plane::counters::Counters;
use fullview_plane::forward::Forwarder;
use fullview_plane::kernel_flows::{FlowMemory, PortProgram};
use fullview_plane::noted_links::NotedLinks;
use fullview_plane::report_time::ReportTime;
use fullview_plane::verdict::{Punt, Verdict};
use fullview_plane::wire::ethernet;
use fullview_plane::wire::ethernet::EtherType;
use fullview_plane::wire::ipv4::Ipv4Packet;
use fullview_plane::wire::ipv6::Ipv6Packet;
use fullview_plane::worker::{Rejected, SlowPath};
use rustix::io::Errno;
use rustix::thread::{MembarrierCommand, membarrier};

use super::counts::{CountSnapshot, PathCounts};
use super::error::DaemonError;
use super::kernel_split::{KernelSplit, Reinjector};
use super::link_presence::is_gone;
use super::neighbor_refresh::{TrackingPort, UsedNeighbors};
use super::neighbor_resolution::UnresolvedDestination;
use super::ports::{self, AnyPort, PacketMemory};
use super::punts::PuntCounts;
use super::running_filter::WorkerFilter;
use super::wakeup::Wakeup;
use super::watch_hub::WatchHub;
use super::worker_thread::{WorkerParts, WorkerThread};
use crate::error::causes;
use crate::mirror::Mirror;
use crate::options::PortOptions;
use crate::route::LinkIndex;

/// How long a frame may take from the classifier's decision that it is the router's to the router's ring, where the kernel
/// has no barrier to wait for.
const TRANSIT: Duration = Duration::from_millis(2);

/// Destinations that may wait for the router's thread.
const MAX_UNRESOLVED: usize = 64;

/// The link that a port is opened on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortLink {
    pub index: LinkIndex,
    /// See [`Mirror::link_birth`].
    pub birth: u64,
    pub name: String,
}

pub struct KernelWorkers {
    count: usize,
    options: PortOptions,
    memory: PacketMemory,
    split: KernelSplit,
    /// The filter of the only worker while it does not run, and what wakes that worker.
    filter: Option<WorkerFilter>,
    wakeup: Option<Wakeup>,
    used: Arc<UsedNeighbors>,
    /// Those that the last workers were started on.
    links: Vec<PortLink>,
    running: Vec<KernelWorker>,
    /// Whether the router has begun: interfaces that come from then on do not end it.
    has_begun: bool,
    /// The sum of the counters of workers that have ended.
    counters: Counters,
    hub: Arc<WatchHub>,
}

/// A running worker, and the destinations it could not send to.
struct KernelWorker {
    thread: WorkerThread<ToKernel>,
    unresolved: Receiver<UnresolvedDestination>,
}

/// What the only worker of a router with a filter gets.
pub struct FilteringWorker {
    pub filter: WorkerFilter,
    /// Wakes the worker.
    pub wakeup: Wakeup,
    /// Known flows that a program in the kernel forwards at most.
    pub kernel_flows: u16,
}

/// The ports of a worker by number; `None` for an interface that does not exist now.
type WorkerPorts = Vec<Option<TrackingPort>>;

impl KernelWorkers {
    /// Prepares `count` workers, which [`Self::restart`] starts once their ports are known. With a filter there is one
    /// worker.
    pub fn new(
        count: usize,
        options: PortOptions,
        split: KernelSplit,
        used: Arc<UsedNeighbors>,
        hub: Arc<WatchHub>,
        filter: Option<FilteringWorker>,
    ) -> KernelWorkers {
        let (memory, counters) = (PacketMemory::new(), Counters::new(0));
        let (mut filter, wakeup) = filter.map(|worker| (worker.filter, worker.wakeup)).unzip();
        if let (Some(WorkerFilter { filter, .. }), Some(sharing)) = (&mut filter, split.flow_sharing()) {
            filter.share_flows(sharing);
        }
        KernelWorkers {
            count,
            options,
            memory,
            split,
            filter,
            wakeup,
            used,
            links: Vec::new(),
            running: Vec::new(),
            has_begun: false,
            counters,
            hub,
        }
    }

    pub fn options(&self) -> &PortOptions {
        &self.options
    }

    /// Whether all workers run. If one ended with an error, the next restart returns it.
    pub fn are_running(&self) -> bool {
        !self.running.is_empty() && self.running.iter().all(|worker| !worker.thread.is_finished())
    }

    /// Whether the worker has a filter.
    pub fn are_filtering(&self) -> bool {
        self.wakeup.is_some()
    }

    /// Whether a port has lost its interface.
    pub fn have_loss(&self) -> bool {
        self.used.has_loss()
    }

    /// Configures the kernel's classifier from the mirror's present state.
    pub fn follow(&mut self, mirror: &Mirror) -> Result<(), DaemonError> {
        self.split.follow(mirror, self.oldest_round())
    }

    /// When the last round of the worker began that has been silent for the longest time; `None` while none runs.
    pub fn oldest_round(&self) -> Option<ReportTime> {
        self.running.iter().filter_map(|worker| worker.thread.round_began()).min()
    }

    /// Ends the workers, and starts others on these links, by port. Returns why none runs now, if an interface cannot be
    /// opened: then the kernel forwards. When the router begins, that is an error, unless the interface is going, or seems to be.
    pub fn restart(
        &mut self,
        mirror: &Mirror,
        links: &[Option<PortLink>],
    ) -> Result<Option<DaemonError>, DaemonError> {
        self.end()?;
        self.used.clear_loss();
        let stays = |link: &&PortLink| self.links.contains(link);
        let stay: Vec<LinkIndex> = links.iter().flatten().filter(stays).map(|link| link.index).collect();
        self.split.release_others(&stay);
        self.links = links.iter().flatten().cloned().collect();
        let opened = self.open(links);
        let has_begun = std::mem::replace(&mut self.has_begun, true);
        let ports = match opened {
            Ok(ports) => ports,
            Err(error) if has_begun || is_of_missing(&error, links) => return Ok(Some(error)),
            Err(error) => return Err(error),
        };
        let numbers: Vec<LinkIndex> =
            links.iter().map(|link| link.as_ref().map_or(0, |link| link.index)).collect();
        let mut cores = self.options.cores.clone().into_iter();
        self.running =
            ports.into_iter().map(|ports| self.start(ports, mirror, &numbers, cores.next())).collect();
        // The classifier takes frames from the kernel from here on, and not before: no frame is forwarded twice, and none is
        // lost between the two.
        self.split.follow(mirror, self.oldest_round())?;
        Ok(None)
    }

    fn start(
        &mut self,
        ports: WorkerPorts,
        mirror: &Mirror,
        links: &[LinkIndex],
        core: Option<usize>,
    ) -> KernelWorker {
        let packets = self.memory.take(ports.iter().flatten().count(), &self.options);
        let mut forwarder = Forwarder::new(mirror.views().reader());
        self.hub.connect(&mut forwarder, ports.len());
        forwarder.watch_links(self.split.links(), links);
        let devices = self.split.devices(links.iter().copied().zip(ports.iter().map(program_of)));
        if let Some(WorkerFilter { mut filter, server }) = self.filter.take() {
            filter.set_devices(devices);
            forwarder.set_filter(filter);
            forwarder.set_filter_server(server);
        }
        let (sender, unresolved) = sync_channel(MAX_UNRESOLVED);
        let slow =
            ToKernel { reinjector: self.split.reinjector(), links: links.to_vec(), unresolved: sender };
        let wakeup = self.wakeup.clone();
        let parts = WorkerParts { forwarder, ports, packets, slow, core, wakeup };
        KernelWorker { thread: WorkerThread::start(parts), unresolved }
    }

    /// Opens the ports of all workers: by worker and port.
    fn open(&mut self, links: &[Option<PortLink>]) -> Result<Vec<WorkerPorts>, DaemonError> {
        self.memory.ensure(self.count * links.iter().flatten().count(), &self.options);
        let mut all: Vec<WorkerPorts> = (0..self.count).map(|_| Vec::new()).collect();
        for (number, link) in (0..).zip(links) {
            let Some(PortLink { name, .. }) = link else {
                all.iter_mut().for_each(|ports| ports.push(None));
                continue;
            };
            let interface = (number, name.as_str());
            let group = ports::open(interface, self.count, &self.options, &self.memory, &mut self.split)?;
            let group =
                group.into_iter().map(|port| Some(TrackingPort { port, used: Arc::clone(&self.used) }));
            all.iter_mut().zip(group).for_each(|(ports, port)| ports.push(port));
        }
        Ok(all)
    }

    /// The failed links that workers leave.
    pub fn links(&self) -> Arc<NotedLinks> {
        self.split.links()
    }

    /// Attaches a program that notes failed links there within the kernel, if it can. It begins when the network namespace that is
    /// returned is noted there.
    pub fn note_failed_links(&mut self) -> Option<u32> {
        self.split.note_failed_links()
    }

    /// The known flows that a program in the kernel forwards.
    pub fn flow_memory(&self) -> Option<Arc<FlowMemory>> {
        self.split.flow_memory()
    }

    /// Whether a program in the kernel forwards packets of known flows.
    pub fn shares_flows(&self) -> bool {
        self.split.shares_flows()
    }

    /// Takes the destinations that workers could not send to since the last call.
    pub fn unresolved(&mut self) -> Vec<UnresolvedDestination> {
        self.running.iter().flat_map(|worker| worker.unresolved.try_iter()).collect()
    }

    /// Ends the workers. New frames stay with the kernel from here on; the workers still forward those they have.
    fn end(&mut self) -> Result<(), DaemonError> {
        self.split.pause()?;
        if !self.running.is_empty() {
            wait_for_processors();
        }
        self.running.iter().for_each(|worker| worker.thread.stop());
        for worker in self.running.drain(..) {
            let ended = worker.thread.join()?;
            self.split.take_back(ended.slow.reinjector);
            self.memory.take_back(ended.packets);
            self.filter = ended.filter;
            self.counters.add(&ended.result?);
        }
        Ok(())
    }

    /// Ends the workers for good; returns what they counted, and the filter.
    pub fn stop(mut self) -> Result<(Counters, Option<WorkerFilter>), DaemonError> {
        self.end()?;
        self.memory.log_returned();
        Ok((self.counters, self.filter))
    }
}

impl PathCounts for KernelWorkers {
    /// The first snapshot is that of workers that have ended.
    fn snapshots(&self) -> Result<Vec<CountSnapshot>, DaemonError> {
        let ended = CountSnapshot::of_ended(self.counters.clone());
        let running = (0..).zip(&self.running).map(|(number, worker)| worker.thread.snapshot(number));
        Ok(std::iter::once(ended).chain(running).collect())
    }

    fn punts(&self) -> Result<PuntCounts, DaemonError> {
        self.split.punts()
    }
}

/// Which of the classifier's programs runs on a port.
fn program_of(port: &Option<TrackingPort>) -> Option<PortProgram> {
    match port.as_ref()?.port {
        AnyPort::Packet(_) => Some(PortProgram::Tc),
        AnyPort::Xdp(_) => Some(PortProgram::Xdp),
        AnyPort::Tap(_) => None,
    }
}

/// Waits until each processor has handed over the frames that it classified before. On a busy machine that may be long
/// after the decision. A global barrier waits for a grace period of RCU, which the kernel's receive path holds up.
fn wait_for_processors() {
    if membarrier(MembarrierCommand::Global).is_err() {
        thread::sleep(TRANSIT);
    }
}

/// The slow path of a worker: it gives rejected packets to the kernel, and reports destinations whose neighbour is not
/// known.
struct ToKernel {
    reinjector: Reinjector,
    /// The kernel's link number of each port.
    links: Vec<LinkIndex>,
    unresolved: SyncSender<UnresolvedDestination>,
}

impl SlowPath for ToKernel {
    fn take(&mut self, rejected: Rejected<'_, '_>) {
        if rejected.packets.is_empty() {
            return;
        }
        self.reinjector.begin_burst();
        for packet in rejected.packets.iter() {
            if let Some(link) = self.links.get(usize::from(packet.port)) {
                self.reinjector.reinject(*link, packet);
            }
            report_unresolved(packet, &self.unresolved);
        }
        self.reinjector.flush();
    }
}

/// Whether one of the links is no longer the interface of its name.
pub fn is_any_gone(links: &[Option<PortLink>]) -> bool {
    links.iter().flatten().any(|link| is_gone(&link.name, link.index))
}

/// Whether ports cannot be opened because an interface went meanwhile: netlink will report that, and they are opened again
/// then. Not every error names that cause, so the interfaces are looked for as well.
fn is_of_missing(error: &DaemonError, links: &[Option<PortLink>]) -> bool {
    names_missing_device(error) || is_any_gone(links)
}

/// Whether a cause of the error is the system's error for an interface that does not exist or is down.
fn names_missing_device(error: &DaemonError) -> bool {
    const GONE: [Errno; 3] = [Errno::NODEV, Errno::NXIO, Errno::NETDOWN];
    causes(error).any(|cause| {
        let code = cause.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
        code.is_some_and(|code| GONE.contains(&Errno::from_raw_os_error(code)))
    })
}

/// Reports the destination of a packet if its neighbour is not known.
fn report_unresolved(packet: &Slot, unresolved: &SyncSender<UnresolvedDestination>) {
    if packet.verdict != Verdict::Punt(Punt::Glean) {
        return;
    }
    if let Some(destination) = destination(packet.frame()) {
        // If the channel is full, the next packet to the destination reports it again.
        let _ = unresolved.try_send(UnresolvedDestination { interface: packet.interface, destination });
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
