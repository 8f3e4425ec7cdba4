//! The workers of a router that mirrors the kernel. Each has its own end of every port, its own packet memory and its own
//! counters.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use fullview_plane::burst::{Packet, Slot};
use fullview_plane::counters::Counters;
use fullview_plane::forward::Forwarder;
use fullview_plane::kernel_flows::{FlowMemory, PortDevice, PortProgram};
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
use super::worker_thread::{Adaptation, PortChange, UnusedPorts, WorkerParts, WorkerPort, WorkerThread};
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
    /// Those that workers have ports on, by port, and what those are.
    links: Vec<Option<PortLink>>,
    ports: Vec<OpenPort>,
    running: Vec<KernelWorker>,
    /// Whether the router has begun: interfaces that come from then on do not end it.
    has_begun: bool,
    /// The sum of the counters of workers that have ended.
    counters: Counters,
    hub: Arc<WatchHub>,
}

/// What workers have on an interface.
#[derive(Clone, Default)]
struct OpenPort {
    /// Which of the classifier's programs runs there.
    program: Option<PortProgram>,
    /// Whether a worker has lost the interface.
    is_lost: Arc<AtomicBool>,
}

/// Ports by worker, their links, and why some links have none.
struct Opened {
    ports: Vec<WorkerPorts>,
    links: Vec<Option<PortLink>>,
    missing: Option<DaemonError>,
}

/// A running worker, and the destinations it could not send to.
struct KernelWorker {
    thread: WorkerThread<TrackingPort, ToKernel>,
    /// Slots that it has beside those of its ports.
    surplus: usize,
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
    /// Prepares `count` workers, which [`Self::change`] starts once their ports are known. With a filter there is one
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
            ports: Vec::new(),
            running: Vec::new(),
            has_begun: false,
            counters,
            hub,
        }
    }

    pub fn options(&self) -> &PortOptions {
        &self.options
    }

    /// Whether all workers run and have ports on these links, none of which has lost its interface while that is there.
    pub fn serve(&self, links: &[Option<PortLink>]) -> bool {
        self.are_running() && self.links == links && !(0..links.len()).any(|number| self.has_loss(number))
    }

    /// Whether a port's interface is one that workers use.
    pub fn has_port(&self, port: u16) -> bool {
        self.are_running() && self.links.get(usize::from(port)).is_some_and(Option::is_some)
    }

    /// Whether all workers run. If one ended with an error, the next restart returns it.
    pub fn are_running(&self) -> bool {
        !self.running.is_empty() && self.running.iter().all(|worker| !worker.thread.is_finished())
    }

    /// Whether the worker has a filter.
    pub fn are_filtering(&self) -> bool {
        self.wakeup.is_some()
    }

    /// An interface that left its namespace and came back as the same one causes no netlink message that would tell.
    fn has_loss(&self, number: usize) -> bool {
        let is_lost = self.ports.get(number).is_some_and(|port| port.is_lost.load(Ordering::Relaxed));
        let link = self.links.get(number).and_then(Option::as_ref);
        is_lost && link.is_some_and(|link| !is_gone(&link.name, link.index))
    }

    /// Configures the kernel's classifier from the mirror's present state.
    pub fn follow(&mut self, mirror: &Mirror) -> Result<(), DaemonError> {
        self.split.follow(mirror, self.oldest_round())
    }

    /// When the last round of the worker began that has been silent for the longest time; `None` while none runs. One without any
    /// interface has ended.
    pub fn oldest_round(&self) -> Option<ReportTime> {
        let running = self.running.iter().filter(|worker| !worker.thread.is_finished());
        running.filter_map(|worker| worker.thread.round_began()).min()
    }

    /// Gives the workers other ports where the links are others, or where a port has lost its interface; no other port changes. If the
    /// workers do not run, or cannot have the new ports beside the old ones, others are started ([`Self::restart`]). Returns why not
    /// all links have ports.
    pub fn change(
        &mut self,
        mirror: &Mirror,
        links: &[Option<PortLink>],
    ) -> Result<Option<DaemonError>, DaemonError> {
        let is_other = |number: usize| self.links.get(number) != links.get(number) || self.has_loss(number);
        let (others, stay): (Vec<usize>, Vec<usize>) = (0..links.len()).partition(|number| is_other(*number));
        let mut new = vec![None; links.len()];
        others.iter().for_each(|number| new[*number].clone_from(&links[*number]));
        if !self.have_room_beside(&new, &others) {
            return self.restart(mirror, links);
        }
        self.leave_others(&stay, mirror, new.iter().any(Option::is_some))?;
        let Ok(Opened { ports, links: mut now, missing }) = self.open(new) else {
            return self.restart(mirror, links);
        };
        stay.iter().for_each(|number| now[*number].clone_from(&links[*number]));
        self.follow_links(now);
        if !self.give_all(ports, &others, mirror)? {
            return self.restart(mirror, links);
        }
        Ok(missing)
    }

    /// Whether workers run that can have ports on these links before those of `others` are closed: a queue has one socket of AF_XDP.
    fn have_room_beside(&self, new: &[Option<PortLink>], others: &[usize]) -> bool {
        let old = || others.iter().filter_map(|number| self.links.get(*number)?.as_ref());
        let is_same = |one: &PortLink, other: &PortLink| (one.index, one.birth) == (other.index, other.birth);
        let moves = new.iter().flatten().any(|link| old().any(|old| is_same(link, old)));
        let ports = self.count * new.iter().flatten().count();
        self.are_running() && !moves && self.memory.has_room(ports, &self.options)
    }

    /// Detaches the classifier from all ports but these. While others are opened, the kernel forwards: workers would drop what leaves by
    /// them. With a filter the workers go on, because the kernel may forward nothing.
    fn leave_others(&mut self, stay: &[usize], mirror: &Mirror, opens: bool) -> Result<(), DaemonError> {
        let index = |number: &usize| Some(self.links.get(*number)?.as_ref()?.index);
        let stay: Vec<LinkIndex> = stay.iter().filter_map(index).collect();
        self.split.release_others(&stay);
        if opens && !self.are_filtering() {
            self.split.pause()?;
        } else {
            self.split.leave_others(mirror)?;
        }
        wait_for_processors();
        Ok(())
    }

    /// Gives all workers their ports in place of `others`; `false` if one has ended.
    fn give_all(
        &mut self,
        ports: Vec<WorkerPorts>,
        others: &[usize],
        mirror: &Mirror,
    ) -> Result<bool, DaemonError> {
        // All are asked before the first answers: one that sleeps takes a while.
        let asked: Vec<_> =
            (0..).zip(ports).map(|(worker, ports)| self.give(worker, ports, others)).collect();
        let unused: Vec<Option<UnusedPorts<_>>> =
            asked.into_iter().map(|unused| unused?.recv().ok()).collect();
        let go_on = unused.iter().all(Option::is_some);
        if go_on {
            self.split.follow(mirror, self.oldest_round())?;
        }
        self.close(unused);
        Ok(go_on)
    }

    /// Asks a worker to use these ports; `None` if it has ended.
    fn give(
        &mut self,
        worker: usize,
        mut ports: WorkerPorts,
        others: &[usize],
    ) -> Option<Receiver<UnusedPorts<TrackingPort>>> {
        let mut with_memory = |port| (port, self.memory.take(1, &self.options));
        let ports = others.iter().map(|number| (*number, ports[*number].take().map(&mut with_memory)));
        let ports = ports.collect();
        let (adapt, surplus) = (self.adaptation(), self.running[worker].surplus);
        let asked = self.running[worker].thread.change(PortChange { ports, surplus, adapt });
        let unsent = |change: PortChange<_, _>| {
            let packets = change.ports.into_iter().filter_map(|(_, port)| Some(port?.1));
            packets.for_each(|packets| self.memory.take_back(packets));
        };
        asked.map_err(unsent).ok()
    }

    /// Closes the ports that workers do not use any more, and takes their packet memory back. Slots that are at other ports come with
    /// the next change.
    fn close(&mut self, unused: Vec<Option<UnusedPorts<TrackingPort>>>) {
        let share = ports::slots_per_port(&self.options);
        for (worker, closed) in self.running.iter_mut().zip(closed_at_once(unused)) {
            let Some((ports, packets)) = closed else { continue };
            worker.surplus = (worker.surplus + ports * share).saturating_sub(packets.len());
            self.memory.take_back(packets);
        }
    }

    /// Tells a worker the links of its ports.
    fn adaptation(&mut self) -> Adaptation<ToKernel> {
        let (notes, numbers, devices) = (self.split.links(), self.numbers(), self.devices());
        Box::new(move |forwarder, slow| {
            forwarder.watch_links(notes, &numbers);
            forwarder.filter_mut().into_iter().for_each(|filter| filter.set_devices(devices.clone()));
            slow.links = numbers;
        })
    }

    /// Ends the workers, and starts others on these links, by port. Returns why not all links have ports, or why no worker runs now:
    /// then the kernel forwards. When the router begins, that is an error, unless an interface seems to be going.
    fn restart(
        &mut self,
        mirror: &Mirror,
        links: &[Option<PortLink>],
    ) -> Result<Option<DaemonError>, DaemonError> {
        self.end()?;
        let stays = |link: &&PortLink| self.links.iter().flatten().any(|known| known == *link);
        let stay: Vec<LinkIndex> = links.iter().flatten().filter(stays).map(|link| link.index).collect();
        self.split.release_others(&stay);
        // For two more, which come or take the place of others before those are closed.
        self.memory.ensure(self.count * (links.iter().flatten().count() + 2), &self.options);
        let opened = self.open(links.to_vec());
        let has_begun = std::mem::replace(&mut self.has_begun, true);
        let Opened { ports, links, missing } = match opened {
            Ok(opened) => opened,
            Err(error) if has_begun || names_missing_device(&error) => {
                self.follow_links(vec![None; links.len()]);
                return Ok(Some(error));
            }
            Err(error) => return Err(error),
        };
        self.follow_links(links);
        let mut cores = self.options.cores.clone().into_iter();
        self.running = ports.into_iter().map(|ports| self.start(ports, mirror, cores.next())).collect();
        // The classifier takes frames from the kernel from here on, and not before: no frame is forwarded twice, and none is
        // lost between the two.
        self.split.follow(mirror, self.oldest_round())?;
        Ok(missing)
    }

    fn start(&mut self, ports: WorkerPorts, mirror: &Mirror, core: Option<usize>) -> KernelWorker {
        let packets = self.memory.take(ports.iter().flatten().count(), &self.options);
        let mut forwarder = Forwarder::new(mirror.views().reader());
        self.hub.connect(&mut forwarder, ports.len());
        if let Some(WorkerFilter { filter, server }) = self.filter.take() {
            forwarder.set_filter(filter);
            forwarder.set_filter_server(server);
        }
        let (sender, unresolved) = sync_channel(MAX_UNRESOLVED);
        let mut slow =
            ToKernel { reinjector: self.split.reinjector(), links: Vec::new(), unresolved: sender };
        self.adaptation()(&mut forwarder, &mut slow);
        let wakeup = self.wakeup.clone();
        let parts = WorkerParts { forwarder, ports, packets, slow, core, wakeup };
        KernelWorker { thread: WorkerThread::start(parts), surplus: 0, unresolved }
    }

    /// The kernel's numbers of the links, by port; 0 where there is none.
    fn numbers(&self) -> Vec<LinkIndex> {
        self.links.iter().map(|link| link.as_ref().map_or(0, |link| link.index)).collect()
    }

    /// What the filter has to know of the ports.
    fn devices(&mut self) -> Vec<PortDevice> {
        let programs = self.ports.iter().map(|port| port.program);
        self.split.devices(self.numbers().into_iter().zip(programs))
    }

    /// Opens the ports of all workers on these links. One that is gone meanwhile gets none: no route leads there any more.
    fn open(&mut self, mut links: Vec<Option<PortLink>>) -> Result<Opened, DaemonError> {
        self.ports.resize_with(links.len(), OpenPort::default);
        let mut ports: Vec<WorkerPorts> = (0..self.count).map(|_| Vec::new()).collect();
        let mut missing = None;
        for (number, place) in links.iter_mut().enumerate() {
            let opened = place.as_ref().map(|link| self.open_group(number, &link.name)).transpose();
            let group = match (opened, &place) {
                (Ok(group), _) => group,
                (Err(error), Some(link)) if is_gone(&link.name, link.index) => {
                    (*place, missing) = (None, Some(error));
                    None
                }
                (Err(error), _) => return Err(error),
            };
            let mut group = group.into_iter().flatten();
            ports.iter_mut().for_each(|ports| ports.push(group.next()));
        }
        Ok(Opened { ports, links, missing })
    }

    /// Opens the ports of all workers on an interface.
    fn open_group(&mut self, number: usize, name: &str) -> Result<Vec<TrackingPort>, DaemonError> {
        let interface = (number as u16, name);
        let group = ports::open(interface, self.count, &self.options, &self.memory, &mut self.split)?;
        let program = group.first().and_then(program_of);
        self.ports[number] = OpenPort { program, is_lost: Arc::default() };
        let OpenPort { is_lost, .. } = &self.ports[number];
        let tracked =
            |port| TrackingPort { port, used: Arc::clone(&self.used), is_lost: Arc::clone(is_lost) };
        Ok(group.into_iter().map(tracked).collect())
    }

    /// Notes the links on which workers have ports now.
    fn follow_links(&mut self, links: Vec<Option<PortLink>>) {
        let absent = self.ports.iter_mut().zip(&links).filter(|(_, link)| link.is_none());
        absent.for_each(|(port, _)| *port = OpenPort::default());
        self.links = links;
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
fn program_of(port: &AnyPort) -> Option<PortProgram> {
    match port {
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

/// Closes the ports of each worker in a thread of their own, because the kernel takes 45 ms for the ring of a packet socket. Returns
/// how many ports and slots there were.
fn closed_at_once(
    unused: Vec<Option<UnusedPorts<TrackingPort>>>,
) -> Vec<Option<(usize, Vec<Packet<'static>>)>> {
    let close = |UnusedPorts { ports, mut packets }: UnusedPorts<TrackingPort>| {
        let count = ports.len();
        packets.extend(ports.into_iter().flat_map(TrackingPort::close));
        (count, packets)
    };
    thread::scope(|scope| {
        let threads: Vec<_> =
            unused.into_iter().map(|unused| scope.spawn(move || unused.map(close))).collect();
        threads.into_iter().map(|thread| thread.join().ok().flatten()).collect()
    })
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
