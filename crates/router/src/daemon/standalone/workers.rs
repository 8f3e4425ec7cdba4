//! The data path of a router without a kernel: workers, each on a queue of every port.

use fullview_plane::counters::Counters;
use fullview_plane::forward::Forwarder;
use fullview_plane::report_time::ReportTime;

use super::ports::{Cards, OpenPorts};
use super::source::StandaloneSource;
use crate::daemon::control_plane::ControlPlane;
use crate::daemon::counts::{CountSnapshot, HandOver, PathCounts};
use crate::daemon::error::DaemonError;
use crate::daemon::main_loop::{DataPath, RouterCounts};
use crate::daemon::ports::AnyPort;
use crate::daemon::running_filter::{RunningFilter, WorkerFilter};
use crate::daemon::successor::Successor;
use crate::daemon::wakeup::Wakeup;
use crate::daemon::watch_hub::WatchHub;
use crate::daemon::worker_thread::{WorkerParts, WorkerThread, exchanges};
use crate::host::channel::WorkerEndpoint;
use crate::mirror::Mirror;
use crate::options::PortOptions;

pub struct StandaloneWorkers {
    threads: Vec<WorkerThread<AnyPort, WorkerEndpoint>>,
    /// Frames reach the workers as long as this exists.
    _cards: Cards,
}

impl StandaloneWorkers {
    /// Starts a worker on each set of ports. `wakeup` wakes the first, which sends for the host; with a filter, each has its part.
    pub fn start(
        opened: OpenPorts,
        ends: Vec<WorkerEndpoint>,
        options: &PortOptions,
        mirror: &Mirror,
        filters: Vec<WorkerFilter>,
        wakeup: Wakeup,
        hub: &WatchHub,
    ) -> StandaloneWorkers {
        let OpenPorts { ports, mut memory, cards } = opened;
        let (mut cores, mut first) = (options.cores.iter().copied(), Some(wakeup));
        let (mut exchanges, mut filters) = (exchanges(&filters).into_iter(), filters.into_iter());
        let start = |(ports, slow): (Vec<Option<AnyPort>>, WorkerEndpoint)| {
            let packets = memory.take(ports.len(), options);
            let mut forwarder = Forwarder::new(mirror.views().reader());
            hub.connect(&mut forwarder, ports.len());
            let of_filter = filters.next().map(|filter| filter.attach(&mut forwarder));
            let (core, wakeup) = (cores.next(), first.take().or(of_filter));
            let exchange = exchanges.next();
            WorkerThread::start(WorkerParts { forwarder, ports, packets, slow, core, wakeup, exchange })
        };
        let threads = ports.into_iter().zip(ends).map(start).collect();
        StandaloneWorkers { threads, _cards: cards }
    }

    /// Ends all workers; returns what they counted, and their parts of the filter.
    fn end(&mut self) -> Result<(Counters, Vec<WorkerFilter>), DaemonError> {
        self.threads.iter().for_each(WorkerThread::stop);
        let (mut counters, mut filters, mut exchanges) = (Counters::new(0), Vec::new(), Vec::new());
        for thread in self.threads.drain(..) {
            let ended = thread.join()?;
            filters.extend(ended.filter);
            exchanges.extend(ended.exchange);
            counters.add(&ended.result?);
        }
        // The memory ends with the workers.
        exchanges.into_iter().for_each(|exchange| drop(exchange.end(&mut counters)));
        Ok((counters, filters))
    }
}

impl DataPath<StandaloneSource> for StandaloneWorkers {
    /// Fails when a worker ended: with the worker's error, or because all its interfaces were removed.
    fn follow(
        &mut self,
        plane: &mut ControlPlane,
        _source: &mut StandaloneSource,
    ) -> Result<(), DaemonError> {
        let now = plane.now();
        plane.filter.iter_mut().for_each(RunningFilter::free_former);
        plane.log.record_overruns(now, &plane.mirror, self)?;
        if self.threads.iter().all(|thread| !thread.is_finished()) {
            return Ok(());
        }
        self.end()?;
        Err(DaemonError::NoPortLeft)
    }

    fn oldest_round(&self) -> Option<ReportTime> {
        self.threads.iter().filter_map(WorkerThread::round_began).min()
    }

    fn stop(mut self, successor: Option<Successor<'_>>) -> Result<RouterCounts, DaemonError> {
        let (counters, filters) = self.end()?;
        if let Some(successor) = successor {
            successor.send_states(filters);
        }
        Ok(RouterCounts::Workers(Box::new(counters)))
    }
}

impl HandOver for StandaloneWorkers {}

impl PathCounts for StandaloneWorkers {
    fn snapshots(&self) -> Result<Vec<CountSnapshot>, DaemonError> {
        Ok((0..).zip(&self.threads).map(|(number, thread)| thread.snapshot(number)).collect())
    }
}
