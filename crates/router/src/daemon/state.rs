//! The router's state, as queries find it.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use fullview_plane::forward::EnforceableRules;
use fullview_plane::interface::Interface;
use fullview_table::Address;
use fullview_table::fib::framework::FamilyTables;

use super::counts::{CountSnapshot, HandOver, NamedCounts};
use super::engine_choice::EngineInUse;
use super::error::DaemonError;
use super::host_driver::HostDriver;
use super::plan_events::with_planned_addresses;
use super::punts::PuntCounts;
use super::running_filter::{FilterInForce, RunningFilter};
use crate::filter::{CompiledFilter, FilterError};
use crate::follow::Statistics;
use crate::host::HostCounters;
use crate::mirror::Mirror;
use crate::options::LiveOptions;
use crate::options::plan::PlannedInterface;

/// Why other options cannot be applied while the router runs.
#[derive(Debug, thiserror::Error)]
pub enum ReconfigureError {
    #[error(
        "router.algorithm: the program in the kernel has algorithms of its own; nothing was changed, leave it out or restart \
         the router with threads"
    )]
    OwnAlgorithms,
    #[error("filter: {0}; nothing was changed")]
    Filter(#[from] FilterError),
}

/// How far another process has taken this router's place.
#[derive(Debug, Default)]
pub enum HandoverState {
    #[default]
    None,
    /// A process has asked for it, and this router forwards.
    Begun,
    /// That process forwards, or will, and this one ends. The connection with it, if there is one.
    Done(Option<Arc<UnixStream>>),
}

/// The state that a query may read and change, borrowed from the router's thread.
pub struct RouterState<'a> {
    pub(super) now: Duration,
    pub(super) mirror: &'a mut Mirror,
    /// The only algorithms that the data path can look up in; empty if it can use all.
    pub(super) path_algorithms: &'static [&'static str],
    pub(super) algorithm: &'a mut Option<String>,
    pub(super) filter: &'a mut Option<RunningFilter>,
    pub(super) path: &'a mut dyn HandOver,
    pub(super) handover: &'a mut HandoverState,
    pub(super) watchdog_timeout: Option<Duration>,
    /// `None` in a router without a kernel.
    pub(super) statistics: Option<Statistics>,
    /// `None` if the kernel is the host.
    pub(super) host: Option<&'a mut HostDriver>,
}

impl RouterState<'_> {
    /// Tables, next hops, neighbours and views.
    pub fn mirror(&self) -> &Mirror {
        self.mirror
    }

    /// After how long the service manager restarts the service, if it does.
    pub fn watchdog_timeout(&self) -> Option<Duration> {
        self.watchdog_timeout
    }

    /// Counts of netlink messages. `None` in a router without a kernel.
    pub fn statistics(&self) -> Option<Statistics> {
        self.statistics
    }

    /// What each worker has counted, or each processor on which a program in the kernel runs.
    pub fn snapshots(&self) -> Result<Vec<CountSnapshot>, DaemonError> {
        self.path.snapshots()
    }

    /// What forwards the packets that come in by a port.
    pub fn engine(&self, port: u16) -> EngineInUse {
        self.path.engine(port)
    }

    /// What a program in the kernel has counted. Empty if workers forward.
    pub fn program_counts(&self) -> Result<NamedCounts, DaemonError> {
        self.path.program()
    }

    /// The packets that the kernel got, or would have got, by reason.
    pub fn punt_counts(&self) -> Result<PuntCounts, DaemonError> {
        self.path.punts()
    }

    /// Frames that a program in the kernel did not forward, by the interface they came in by.
    pub fn program_counts_by_interface(&self) -> Result<Vec<NamedCounts>, DaemonError> {
        self.path.program_by_interface()
    }

    /// The counters of the router's own host, and how many packets were lost on the way to it and from it. `None` if the
    /// kernel is the host.
    pub fn host(&self) -> Option<(HostCounters, u64)> {
        self.host.as_ref().map(|host| (host.counters(), host.lost()))
    }

    /// Begins to hand over; `false` if another process takes over already.
    pub fn begin_handover(&mut self) -> bool {
        let may_begin = matches!(self.handover, HandoverState::None);
        if may_begin {
            *self.handover = HandoverState::Begun;
        }
        may_begin
    }

    /// The link of a port's program, and the index of its interface.
    pub fn hand_over(&mut self, port: u16) -> Result<Option<(u32, OwnedFd)>, DaemonError> {
        self.path.hand_over(port)
    }

    /// Waits until the counters are final, after another process has taken over.
    pub fn settle(&mut self) -> Result<(), DaemonError> {
        self.path.settle()
    }

    /// The other process failed, and this router goes on.
    pub fn take_back(&mut self) -> Result<(), DaemonError> {
        *self.handover = HandoverState::None;
        self.path.take_back()
    }

    /// The other process forwards, and this router ends. It sends the states and tables of its filter by `connection`.
    pub fn end_handover(&mut self, connection: Option<Arc<UnixStream>>) {
        *self.handover = HandoverState::Done(connection);
    }

    /// The filter, if there is one.
    pub fn filter(&self) -> Option<FilterInForce> {
        self.filter.as_ref().map(RunningFilter::in_force)
    }

    /// Changes the tables of the filter to those of these rules, which are otherwise those in force.
    ///
    /// # Errors
    /// The worker does not take them; the tables in force stay.
    pub fn change_tables(&mut self, rules: EnforceableRules) -> Result<(), FilterError> {
        self.filter.as_mut().map_or(Ok(()), |filter| filter.change_tables(rules))
    }

    /// The interfaces that rules of the filter may name: those of the kernel, or without a kernel those of the router with the
    /// addresses that a plan gives them.
    pub fn filtered_interfaces(&self, plan: Option<&[PlannedInterface]>) -> Vec<Interface> {
        let view = self.mirror.views().current();
        let Some(plan) = plan else { return view.parts().interfaces.clone() };
        let ports = self.host.as_ref().map_or(&[][..], |host| host.ports());
        with_planned_addresses(view.parts().interfaces.clone(), plan, ports)
    }

    /// Applies other options, and other rules of the filter if there are any. Workers forward by them from their next burst
    /// on.
    ///
    /// # Errors
    /// The router cannot apply them as it runs; nothing was changed.
    pub fn reconfigure(
        &mut self,
        live: LiveOptions,
        rules: Option<CompiledFilter>,
    ) -> Result<(), ReconfigureError> {
        if live.algorithm.is_some() && !self.path_algorithms.is_empty() {
            return Err(ReconfigureError::OwnAlgorithms);
        }
        if let Some((filter, rules)) = self.filter.as_mut().zip(rules) {
            filter.change(rules)?;
        }
        self.mirror.set_policies(live.policies);
        if let (Some(host), Some(plan)) = (&mut self.host, &live.plan) {
            host.adopt(self.now, self.mirror, plan);
        }
        self.mirror.commit(self.now);
        // The host must never be behind the FIBs that workers have.
        self.host.iter_mut().for_each(|host| _ = host.follow(self.now, self.mirror));
        let tables = self.mirror.tables_mut();
        tables.configure(self.now, live.framework);
        if *self.algorithm != live.algorithm {
            release(self.now, &mut tables.inet);
            release(self.now, &mut tables.inet6);
        }
        // With its next commit, before any other work, the router's thread pins the tables to the new algorithm.
        *self.algorithm = live.algorithm;
        Ok(())
    }
}

/// Unpins all tables: the framework chooses their algorithms by preference again.
fn release<A: Address>(now: Duration, tables: &mut FamilyTables<A>) {
    let pinned = |number: &u32| tables.attachment(*number).is_some_and(|table| table.pinned().is_some());
    let numbers: Vec<u32> = tables.numbers().filter(pinned).collect();
    for number in numbers {
        // The number was read just now, so the table exists and `release` cannot fail.
        let _ = tables.release(now, number);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use fullview_table::fib::framework::Settings;

    use super::*;
    use crate::daemon::counts::PathCounts;
    use crate::daemon::engine_choice::NONE;

    /// A path whose interfaces do not exist now.
    struct WithoutInterfaces;

    impl PathCounts for WithoutInterfaces {
        fn snapshots(&self) -> Result<Vec<CountSnapshot>, DaemonError> {
            Ok(Vec::new())
        }

        fn engine(&self, _port: u16) -> EngineInUse {
            EngineInUse { name: NONE, why: "it is not there".into() }
        }
    }

    impl HandOver for WithoutInterfaces {}

    fn choose_dxr(path_algorithms: &'static [&'static str]) -> Result<(), ReconfigureError> {
        let live = LiveOptions {
            algorithm: Some("dxr".into()),
            framework: Settings::default(),
            policies: BTreeMap::new(),
            plan: None,
        };
        let mut state = RouterState {
            now: Duration::ZERO,
            mirror: &mut Mirror::new(Duration::ZERO, vec!["wan0".into()], Settings::default()),
            path_algorithms,
            algorithm: &mut None,
            filter: &mut None,
            path: &mut WithoutInterfaces,
            handover: &mut HandoverState::None,
            watchdog_timeout: None,
            statistics: None,
            host: None,
        };
        state.reconfigure(live, None)
    }

    #[test]
    fn only_a_path_with_algorithms_of_its_own_refuses_one() {
        assert!(choose_dxr(&[]).is_ok(), "also while there are no interfaces");
        assert!(matches!(choose_dxr(&["dir18"]), Err(ReconfigureError::OwnAlgorithms)));
    }
}
