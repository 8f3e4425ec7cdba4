//! The workers of a router that mirrors the kernel. Each has its own end of every port, its own packet memory and its own
//! counters.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Duration;

use fullview_plane::counters::Counters;
use fullview_plane::forward::Forwarder;
use fullview_plane::kernel_flows::{FlowMemory, PortDevice};
use fullview_plane::noted_links::NotedLinks;
use fullview_plane::port::spread::Spread;
use fullview_plane::report_time::ReportTime;
use fullview_plane::worker::Exchange;
use rustix::io::Errno;
use rustix::thread::{MembarrierCommand, membarrier};

use super::counts::{CountSnapshot, PathCounts};
use super::error::DaemonError;
use super::kernel_slow_path::ToKernel;
use super::kernel_split::KernelSplit;
use super::neighbor_refresh::{TrackingPort, UsedNeighbors};
use super::neighbor_resolution::UnresolvedDestination;
use super::ports::{self, PacketMemory};
use super::punts::PuntCounts;
use super::running_filter::WorkerFilter;
use super::watch_hub::WatchHub;
use super::worker_ports::{OpenPort, OpenedPorts, PortLink, PortOpener, WorkerPorts, closed_at_once};
use super::worker_thread::{Adaptation, PortChange, UnusedPorts, WorkerParts, WorkerThread, exchanges};
use crate::error::causes;
use crate::mirror::Mirror;
use crate::options::PortOptions;
use crate::route::LinkIndex;

/// How long a frame may take from the classifier's decision that it is the router's to the router's ring, where the kernel
/// has no barrier to wait for.
const TRANSIT: Duration = Duration::from_millis(2);

pub struct KernelWorkers {
    count: usize,
    options: PortOptions,
    memory: PacketMemory,
    split: KernelSplit,
    /// The workers' parts of the filter while they do not run; none without a filter.
    filters: Vec<WorkerFilter>,
    is_filtering: bool,
    used: Arc<UsedNeighbors>,
    /// What workers have, by port.
    ports: Vec<Option<OpenPort>>,
    running: Vec<KernelWorker>,
    /// Whether the router has begun: interfaces that come from then on do not end it.
    has_begun: bool,
    /// The sum of the counters of workers that have ended.
    counters: Counters,
    hub: Arc<WatchHub>,
}

/// A running worker, and the destinations it could not send to.
struct KernelWorker {
    thread: WorkerThread<TrackingPort, ToKernel>,
    /// Slots that it has beside those of its ports.
    surplus: usize,
    unresolved: Receiver<UnresolvedDestination>,
}

impl KernelWorkers {
    /// Prepares `count` workers, which [`Self::change`] starts once their ports are known. With a filter, each gets its part of it.
    pub fn new(
        count: usize,
        options: PortOptions,
        split: KernelSplit,
        used: Arc<UsedNeighbors>,
        hub: Arc<WatchHub>,
        filters: Option<Vec<WorkerFilter>>,
    ) -> KernelWorkers {
        let (memory, counters) = (PacketMemory::new(), Counters::new(0));
        let (is_filtering, mut filters) = (filters.is_some(), filters.unwrap_or_default());
        for (worker, WorkerFilter { filter, .. }) in (0..).zip(&mut filters) {
            split.flow_sharing(worker).into_iter().for_each(|sharing| filter.share_flows(sharing));
        }
        KernelWorkers {
            count,
            options,
            memory,
            split,
            filters,
            is_filtering,
            used,
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
        self.are_running() && !(0..links.len()).any(|number| self.is_other(number, links))
    }

    /// Whether there has to be another port for a link than there is.
    fn is_other(&self, number: usize, links: &[Option<PortLink>]) -> bool {
        let port = self.ports.get(number).and_then(Option::as_ref);
        port.map(|port| &port.link) != links[number].as_ref() || port.is_some_and(OpenPort::has_loss)
    }

    /// Whether a port's interface is one that workers use.
    pub fn has_port(&self, port: u16) -> bool {
        self.are_running() && self.ports.get(usize::from(port)).is_some_and(Option::is_some)
    }

    /// Whether all workers run. If one ended with an error, the next restart returns it.
    pub fn are_running(&self) -> bool {
        !self.running.is_empty() && self.running.iter().all(|worker| !worker.thread.is_finished())
    }

    /// Whether the workers have a filter.
    pub fn are_filtering(&self) -> bool {
        self.is_filtering
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
        let others: Vec<usize> = (0..links.len()).filter(|number| self.is_other(*number, links)).collect();
        let mut new = vec![None; links.len()];
        others.iter().for_each(|number| new[*number].clone_from(&links[*number]));
        if !self.have_room_beside(&new, &others) {
            return self.restart(mirror, links);
        }
        self.leave(&others, mirror, new.iter().any(Option::is_some))?;
        let Ok(OpenedPorts { mut ports, by_worker, missing }) = self.open(&new) else {
            return self.restart(mirror, links);
        };
        others.iter().for_each(|number| self.ports[*number] = ports[*number].take());
        self.split.release_others(&self.numbers());
        if !self.give_all(by_worker, &others, mirror)? {
            return self.restart(mirror, links);
        }
        Ok(missing)
    }

    /// Whether workers run that can have ports on these links before those of `others` are closed: a queue has one socket of AF_XDP.
    fn have_room_beside(&self, new: &[Option<PortLink>], others: &[usize]) -> bool {
        let old = || others.iter().filter_map(|number| self.ports.get(*number)?.as_ref());
        let moves = new.iter().flatten().any(|link| old().any(|old| old.link.is_device_of(link)));
        let ports = self.count * new.iter().flatten().count();
        self.are_running() && !moves && self.memory.has_room(ports, &self.options)
    }

    /// Detaches the classifier from these ports. While others are opened, the kernel forwards: workers would drop what leaves by them.
    /// With a filter the workers go on, because the kernel may forward nothing.
    fn leave(&mut self, others: &[usize], mirror: &Mirror, opens: bool) -> Result<(), DaemonError> {
        let stays = |(number, port): (usize, &Option<OpenPort>)| {
            port.as_ref().filter(|_| !others.contains(&number)).map(|port| port.link.index)
        };
        let stay: Vec<LinkIndex> = self.ports.iter().enumerate().filter_map(stays).collect();
        self.split.release_others(&stay);
        if opens && !self.are_filtering() {
            self.split.pause()?;
        } else {
            self.split.pause_others(mirror)?;
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
            if let Some(filter) = forwarder.filter_mut() {
                filter.set_devices(devices);
            }
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
        let stays = |link: &&PortLink| self.ports.iter().flatten().any(|port| port.link == **link);
        let stay: Vec<LinkIndex> = links.iter().flatten().filter(stays).map(|link| link.index).collect();
        self.split.release_others(&stay);
        self.ports.clear();
        // For two more, which come or take the place of others before those are closed.
        self.memory.ensure(self.count * (links.iter().flatten().count() + 2), &self.options);
        let opened = self.open(links);
        let has_begun = std::mem::replace(&mut self.has_begun, true);
        let OpenedPorts { ports, by_worker, missing } = match opened {
            Ok(opened) => opened,
            Err(error) if has_begun || names_missing_device(&error) => return Ok(Some(error)),
            Err(error) => return Err(error),
        };
        self.ports = ports;
        self.split.release_others(&self.numbers());
        self.running = self.start_all(by_worker, mirror);
        // The classifier takes frames from the kernel from here on, and not before: no frame is forwarded twice, and none is
        // lost between the two.
        self.split.follow(mirror, self.oldest_round())?;
        Ok(missing)
    }

    fn start_all(&mut self, ports: Vec<WorkerPorts>, mirror: &Mirror) -> Vec<KernelWorker> {
        let mut cores = self.options.cores.clone().into_iter();
        let filters = std::mem::take(&mut self.filters);
        let mut exchanges = exchanges(&filters).into_iter();
        // A worker without its part would forward past the rules: there is none then.
        let unfiltered = if self.is_filtering { 0 } else { ports.len() };
        let filters = filters.into_iter().map(Some).chain((0..unfiltered).map(|_| None));
        let start = |(ports, filter)| self.start(ports, mirror, (filter, exchanges.next()), cores.next());
        ports.into_iter().zip(filters).map(start).collect()
    }

    fn start(
        &mut self,
        ports: WorkerPorts,
        mirror: &Mirror,
        (filter, exchange): (Option<WorkerFilter>, Option<Exchange<'static>>),
        core: Option<usize>,
    ) -> KernelWorker {
        let packets = self.memory.take(ports.iter().flatten().count(), &self.options);
        let mut forwarder = Forwarder::new(mirror.views().reader());
        self.hub.connect(&mut forwarder, ports.len());
        let wakeup = filter.map(|filter| filter.attach(&mut forwarder));
        let (mut slow, unresolved) = ToKernel::new(self.split.reinjector());
        self.adaptation()(&mut forwarder, &mut slow);
        let parts = WorkerParts { forwarder, ports, packets, slow, core, wakeup, exchange };
        KernelWorker { thread: WorkerThread::start(parts), surplus: 0, unresolved }
    }

    /// The kernel's numbers of the links, by port; 0 where there is none.
    fn numbers(&self) -> Vec<LinkIndex> {
        self.ports.iter().map(|port| port.as_ref().map_or(0, |port| port.link.index)).collect()
    }

    /// What the filter has to know of the ports.
    fn devices(&mut self) -> Vec<PortDevice> {
        let programs = self.ports.iter().map(|port| port.as_ref().and_then(|port| port.program));
        self.split.devices(self.numbers().into_iter().zip(programs))
    }

    fn open(&mut self, links: &[Option<PortLink>]) -> Result<OpenedPorts, DaemonError> {
        let KernelWorkers { count, options, memory, split, used, is_filtering, has_begun, .. } = self;
        let spread = if *is_filtering { Spread::Owners } else { Spread::Flows };
        // The kernel would forward for workers without a filter, what leaves by the interface too.
        let leaves_out = *is_filtering && *has_begun;
        PortOpener { workers: (*count, spread), options, memory, split, used, leaves_out }.open(links)
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
        let mut exchanges = Vec::new();
        for worker in self.running.drain(..) {
            let ended = worker.thread.join()?;
            self.split.take_back(ended.slow.reinjector);
            self.memory.take_back(ended.packets);
            self.filters.extend(ended.filter);
            exchanges.extend(ended.exchange);
            self.counters.add(&ended.result?);
        }
        for exchange in exchanges {
            self.memory.take_back(exchange.end(&mut self.counters));
        }
        Ok(())
    }

    /// Ends the workers for good; returns what they counted, and the parts of the filter.
    pub fn stop(mut self) -> Result<(Counters, Vec<WorkerFilter>), DaemonError> {
        self.end()?;
        self.memory.log_returned();
        Ok((self.counters, self.filters))
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

/// Waits until each processor has handed over the frames that it classified before. On a busy machine that may be long
/// after the decision. A global barrier waits for a grace period of RCU, which the kernel's receive path holds up.
fn wait_for_processors() {
    if membarrier(MembarrierCommand::Global).is_err() {
        thread::sleep(TRANSIT);
    }
}

/// Whether a cause of the error is the system's error for an interface that does not exist or is down.
fn names_missing_device(error: &DaemonError) -> bool {
    const GONE: [Errno; 3] = [Errno::NODEV, Errno::NXIO, Errno::NETDOWN];
    causes(error).any(|cause| {
        let code = cause.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
        code.is_some_and(|code| GONE.contains(&Errno::from_raw_os_error(code)))
    })
}
