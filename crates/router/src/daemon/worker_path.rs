//! The data path of a router that mirrors the kernel and forwards by workers.

use std::sync::Arc;

use fullview_plane::kernel_flows::FlowMemory;
use fullview_plane::noted_links::NotedLinks;
use fullview_plane::report_time::ReportTime;
use fullview_plane::view::ViewLinkFailures;

use super::control_plane::ControlPlane;
use super::counts::{CountSnapshot, HandOver, PathCounts};
use super::engine_choice::{EngineInUse, NONE};
use super::error::DaemonError;
use super::followed_ports::FollowedPorts;
use super::kernel_filter::KernelFilter;
use super::kernel_source::KernelSource;
use super::link_alarm::{FailureNotes, LinkAlarm};
use super::main_loop::{DataPath, RouterCounts};
use super::punts::PuntCounts;
use super::successor::Successor;
use super::workers::KernelWorkers;
use crate::events::EventKind;
use crate::netlink::event::Link;

/// What the log and `show interfaces` say about known flows.
const SHARES_FLOWS: &str = "a program in the kernel forwards known flows of the filter";

/// Workers, and the interfaces that they have ports on.
pub struct WorkerPath {
    interfaces: Vec<String>,
    workers: KernelWorkers,
    ports: FollowedPorts,
    filter: Option<KernelFilter>,
    _alarm: LinkAlarm,
    /// Why threads forward.
    why: String,
}

/// Where threads learn of failed links: packets to those are the kernel's. They leave what is noted until the view has left it.
struct WorkerNotes {
    links: Arc<NotedLinks>,
    failures: ViewLinkFailures,
    flows: Option<Arc<FlowMemory>>,
    /// The network namespace whose failed links a program in the kernel can note, if there is one.
    namespace: Option<u32>,
}

impl WorkerNotes {
    /// Ends what a program in the kernel knows, after a link was noted: what is shared from now on does not go there.
    fn end_flows(&self) {
        self.flows.iter().for_each(|flows| flows.end_generation());
    }
}

impl FailureNotes for WorkerNotes {
    fn begin(&self) {
        self.namespace.iter().for_each(|namespace| self.links.begin(*namespace));
    }

    fn note(&self, link: &Link, has_failed: bool) {
        self.links.note(link.index, has_failed);
        if self.failures.note(&link.name, has_failed) {
            self.end_flows();
        }
    }

    fn forget(&self) {
        self.links.forget();
        if self.failures.forget() {
            self.end_flows();
        }
    }

    fn end(&self) {
        self.links.end();
        self.forget();
    }
}

impl WorkerPath {
    /// Starts the workers on the interfaces that exist.
    pub fn start(
        interfaces: &[String],
        mut workers: KernelWorkers,
        filter: Option<KernelFilter>,
        why: &str,
        plane: &ControlPlane,
    ) -> Result<WorkerPath, DaemonError> {
        let mut why = why.to_owned();
        if workers.shares_flows() {
            plane.log.line(plane.now(), EventKind::Router, SHARES_FLOWS);
            why = format!("{why}; {SHARES_FLOWS}");
        }
        let (interfaces, ports) = (interfaces.to_vec(), FollowedPorts::default());
        let (alarm, failures) = (LinkAlarm::start()?, plane.mirror.views().link_failures());
        alarm.note_in(Box::new(WorkerNotes {
            links: workers.links(),
            failures,
            flows: workers.flow_memory(),
            namespace: workers.note_failed_links(),
        }));
        let mut path = WorkerPath { interfaces, workers, ports, filter, _alarm: alarm, why };
        path.follow_ports(plane)?;
        Ok(path)
    }

    fn follow_ports(&mut self, plane: &ControlPlane) -> Result<(), DaemonError> {
        let log = (plane.now(), &plane.log);
        self.ports.follow(&plane.mirror, &self.interfaces, &mut self.workers, log)
    }
}

impl DataPath<KernelSource> for WorkerPath {
    fn follow(&mut self, plane: &mut ControlPlane, source: &mut KernelSource) -> Result<(), DaemonError> {
        let now = plane.now();
        plane.log.record_overruns(now, &plane.mirror, &self.workers)?;
        source.resolve(plane, self.workers.unresolved())?;
        if self.workers.shares_flows() {
            source.refresh_all(plane)?
        } else {
            source.refresh_used(plane)?
        }
        self.filter.as_mut().map_or(Ok(()), |filter| filter.follow(plane))?;
        self.follow_ports(plane)
    }

    fn oldest_round(&self) -> Option<ReportTime> {
        self.workers.oldest_round()
    }

    /// A router that takes over puts its own fence in the place of this one.
    fn stop(self, successor: Option<Successor<'_>>) -> Result<RouterCounts, DaemonError> {
        let (counters, filters) = self.workers.stop()?;
        match successor {
            Some(successor) => successor.send_states(filters),
            None => self.filter.map_or(Ok(()), KernelFilter::end)?,
        }
        Ok(RouterCounts::Workers(Box::new(counters)))
    }
}

impl HandOver for WorkerPath {}

impl PathCounts for WorkerPath {
    fn snapshots(&self) -> Result<Vec<CountSnapshot>, DaemonError> {
        self.workers.snapshots()
    }

    fn punts(&self) -> Result<PuntCounts, DaemonError> {
        self.workers.punts()
    }

    fn engine(&self, port: u16) -> EngineInUse {
        match self.workers.has_port(port) {
            true => EngineInUse::threads(&self.why),
            false => {
                EngineInUse { name: NONE, why: "it is not there, is down, or is part of another one".into() }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use fullview_table::fib::framework::{Settings, Time};

    use super::*;
    use crate::daemon::link_alarm::tests::link;
    use crate::mirror::Mirror;

    #[test]
    fn a_link_is_noted_for_threads_until_it_works_or_that_is_not_reported() {
        let mirror = Mirror::new(Time::ZERO, Vec::new(), Settings::default());
        let (links, failures) = (Arc::<NotedLinks>::default(), mirror.views().link_failures());
        let notes = WorkerNotes { links: Arc::clone(&links), failures, flows: None, namespace: None };
        let works: [&dyn Fn(); 3] =
            [&|| notes.note(&link(7, true), false), &|| notes.forget(), &|| notes.end()];
        for works in works {
            notes.note(&link(7, false), true);
            assert!(links.has_failed(7));
            works();
            assert!(!links.has_failed(7));
        }
        // A program in the kernel has noted it.
        links.note(7, true);
        notes.note(&link(7, true), false);
        assert!(!links.has_failed(7));
    }
}
