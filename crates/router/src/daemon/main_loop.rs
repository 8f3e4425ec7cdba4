//! The daemon's loop. One thread learns what to forward from a [`ControlSource`], publishes it, answers queries, and keeps
//! a [`DataPath`] up to date.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fullview_plane::counters::Counters;
use fullview_plane::report_time::ReportTime;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::control_plane::ControlPlane;
use super::counts::{HandOver, NamedCounts};
use super::error::{DaemonError, system};
use super::host_driver::HostDriver;
use super::query_queue::QueryQueue;
use super::state::{HandoverState, RouterState};
use super::successor::Successor;
use super::watchdog::Watchdog;
use crate::events::EventKind;
use crate::follow::Statistics;
use crate::notify::Heartbeat;

/// The thread looks at everything at least this often.
pub const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// What the router learns its interfaces, routes and neighbours from: the kernel, or a configuration.
pub trait ControlSource {
    /// Descriptors that are readable when there is something to take in.
    fn fds(&self) -> Vec<BorrowedFd<'_>>;

    /// When there is something to do even if nothing is readable.
    fn next_deadline(&self) -> Option<Duration>;

    /// Takes in what there is, and commits it.
    fn advance(&mut self, plane: &mut ControlPlane) -> Result<(), DaemonError>;

    /// The line of the log with which forwarding begins.
    fn greeting(&self, plane: &ControlPlane) -> String;

    /// Logs a summary as the router ends.
    fn summary(&self, plane: &ControlPlane);

    /// Counts of netlink messages, if the source is the kernel.
    fn statistics(&self) -> Option<Statistics> {
        None
    }

    /// The router's own host, if the kernel is not the host.
    fn host(&mut self) -> Option<&mut HostDriver> {
        None
    }
}

/// What forwards packets: workers of this process, or a program in the kernel.
pub trait DataPath<S>: HandOver {
    /// Brings the path up to date with the mirror, and hands to the source what the path needs from it.
    fn follow(&mut self, plane: &mut ControlPlane, source: &mut S) -> Result<(), DaemonError>;

    /// When the last round of the worker began that has been silent for the longest time; `None` without workers.
    fn oldest_round(&self) -> Option<ReportTime> {
        None
    }

    /// Ends forwarding; returns what was counted. If another process takes over, what it uses too stays.
    fn stop(self, successor: Option<Successor<'_>>) -> Result<RouterCounts, DaemonError>;
}

/// What a router counted until its end.
pub enum RouterCounts {
    /// The counters of all workers.
    Workers(Box<Counters>),
    /// The counters of a program in the kernel, by name.
    Program(NamedCounts),
}

/// A router that is ready to run.
pub trait RunRouter {
    /// Forwards until `stop` is set; returns what was counted. A service manager is told meanwhile that the router works.
    fn run(
        self: Box<Self>,
        stop: &AtomicBool,
        manager: Option<Heartbeat>,
    ) -> Result<RouterCounts, DaemonError>;
}

pub struct Daemon<S, P> {
    pub plane: ControlPlane,
    pub source: S,
    pub path: P,
    pub queries: QueryQueue,
    handover: HandoverState,
    watchdog: Watchdog,
}

impl<S, P> Daemon<S, P> {
    pub fn new(plane: ControlPlane, source: S, path: P, queries: QueryQueue) -> Daemon<S, P> {
        Daemon { plane, source, path, queries, handover: HandoverState::None, watchdog: Watchdog::default() }
    }
}

impl<S: ControlSource, P: DataPath<S>> RunRouter for Daemon<S, P> {
    fn run(
        mut self: Box<Self>,
        stop: &AtomicBool,
        manager: Option<Heartbeat>,
    ) -> Result<RouterCounts, DaemonError> {
        manager.into_iter().for_each(|manager| self.watchdog.tell(manager));
        let greeting = self.source.greeting(&self.plane);
        self.plane.log.line(self.plane.now(), EventKind::Router, &greeting);
        while !stop.load(Ordering::Relaxed) && !matches!(self.handover, HandoverState::Done(_)) {
            wait(&self.plane, &self.source, &self.queries)?;
            self.source.advance(&mut self.plane)?;
            self.serve();
            self.path.follow(&mut self.plane, &mut self.source)?;
            self.watchdog.end_turn(self.path.oldest_round(), &self.plane);
        }
        let Daemon { plane, source, path, handover, .. } = *self;
        let successor = match handover {
            HandoverState::Done(connection) => Some(Successor { plane: &plane, connection }),
            HandoverState::None | HandoverState::Begun => None,
        };
        let counts = path.stop(successor)?;
        source.summary(&plane);
        Ok(counts)
    }
}

impl<S: ControlSource, P: DataPath<S>> Daemon<S, P> {
    /// Answers the queries that wait.
    fn serve(&mut self) {
        let Daemon { plane, source, path, queries, handover, watchdog } = self;
        let now = plane.now();
        let ControlPlane { mirror, path_algorithms, algorithm, filter, .. } = plane;
        let (path_algorithms, statistics) = (*path_algorithms, source.statistics());
        let host = source.host();
        let watchdog_timeout = watchdog.timeout();
        queries.serve(&mut RouterState {
            now,
            mirror,
            path_algorithms,
            algorithm,
            filter,
            path,
            handover,
            watchdog_timeout,
            statistics,
            host,
        });
    }
}

/// Waits until the source or a query has something to do, or something is due.
pub fn wait(
    plane: &ControlPlane,
    source: &impl ControlSource,
    queries: &QueryQueue,
) -> Result<(), DaemonError> {
    let deadlines = plane.mirror.next_deadline().into_iter().chain(source.next_deadline());
    let due = deadlines.min().map_or(LONGEST_WAIT, |due| due.saturating_sub(plane.now()).min(LONGEST_WAIT));
    let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(due.subsec_nanos()) };
    let fds = source.fds().into_iter().chain([queries.fd()]);
    let mut fds: Vec<_> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(system("waiting for something to do")(error)),
    }
}
