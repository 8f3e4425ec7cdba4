//! The control plane of a running router: its mirror, the algorithms its tables are pinned to, its log.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fullview_table::fib::framework::FamilyTables;
use fullview_table::fib::registry::{self, Registered};

use super::event_log::EventLog;
use super::running_filter::RunningFilter;
use crate::events::RecentEvents;
use crate::mirror::Mirror;
use crate::options::RouterOptions;

/// What the router's thread works on, whatever it learns routes from and whatever forwards.
pub struct ControlPlane {
    began: Instant,
    pub mirror: Mirror,
    /// The only algorithms that the data path can look up in; empty if it can use all.
    pub path_algorithms: &'static [&'static str],
    /// The configured algorithm. `None` leaves the choice to the framework, or to the data path.
    pub algorithm: Option<String>,
    /// The filter, if there is one.
    pub filter: Option<RunningFilter>,
    pub log: EventLog,
}

impl ControlPlane {
    pub fn new(
        options: &RouterOptions,
        path_algorithms: &'static [&'static str],
        events: &Arc<RecentEvents>,
    ) -> ControlPlane {
        let began = Instant::now();
        let mut mirror = Mirror::new(began.elapsed(), options.interfaces.clone(), options.framework.clone());
        mirror.set_policies(options.policies.clone());
        mirror.set_flow_seed(flow_seed());
        let (algorithm, log) = (options.algorithm.clone(), EventLog::new(Arc::clone(events)));
        ControlPlane { began, mirror, path_algorithms, algorithm, filter: None, log }
    }

    /// The time since the router began.
    pub fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Publishes what changed in the mirror, and pins new tables to their algorithms.
    pub fn commit(&mut self) {
        self.mirror.commit(self.now());
        let (now, configured) = (self.now(), self.algorithm.as_deref());
        let tables = self.mirror.tables_mut();
        let of_path = self.path_algorithms;
        for name in of_path.iter().copied().chain(configured.filter(|_| of_path.is_empty())) {
            pin(now, &mut tables.inet, name);
            pin(now, &mut tables.inet6, name);
        }
    }
}

/// The seed of the flow hash. It differs between routers, so that one does not choose as the one before it did, and others
/// cannot guess it; it stays the same when the router starts again, so that flows keep their way.
fn flow_seed() -> u64 {
    let mut hasher = DefaultHasher::new();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    boot.unwrap_or_else(|_| RandomState::new().hash_one(()).to_string()).hash(&mut hasher);
    let namespace = fs::read_link("/proc/self/ns/net").unwrap_or_default();
    namespace.hash(&mut hasher);
    hasher.finish()
}

/// Pins the tables of a family to an algorithm. A family that does not have it chooses by itself.
fn pin<A: Registered>(now: Duration, tables: &mut FamilyTables<A>, name: &str) {
    let Some(module) = registry::find::<A>(name) else { return };
    let other =
        |number: &u32| tables.attachment(*number).is_some_and(|table| table.pinned() != Some(module.name()));
    let others: Vec<u32> = tables.numbers().filter(other).collect();
    for number in others {
        // This cannot fail: the number was just read, and every table has all registered modules.
        let _ = tables.force(now, number, name);
    }
}
