//! The filter of a running router: the rules in force, and how its workers get others.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use fullview_filter::address_table::AddressTable;
use fullview_filter::interfaces::UnknownInterface;
use fullview_filter::pf::files::FileSystem;
use fullview_filter::rule::TableId;
use fullview_filter::state::WorkerLimits;
use fullview_plane::forward::{
    BurstFilter, EnforceableRules, FilterBusy, FilterClient, FilterServer, Forwarder, RuleChange, filter_link,
};
use fullview_plane::interface::Interface;
use fullview_plane::wire::ethernet::Mac;

use super::filter_handle::FilterHandle;
use super::plan_events::with_planned_addresses;
use super::wakeup::Wakeup;
use crate::filter::{self, CompiledFilter, FilterError, FilterOptions, FilterSources};
use crate::options::plan::{Plan, PlannedInterface};

/// The router's half of the filter.
pub struct RunningFilter {
    rules: EnforceableRules,
    limits: WorkerLimits,
    path: String,
    sources: FilterSources,
    workers: Vec<WorkerEnd>,
    handle: Arc<FilterHandle>,
    /// How often the rules have changed.
    changes: u64,
}

/// Where a worker gets changes from.
struct WorkerEnd {
    client: FilterClient,
    wakeup: Wakeup,
    /// Changes that it has not taken yet.
    waiting: usize,
}

/// A running filter, as queries find it.
pub struct FilterInForce {
    pub rules: EnforceableRules,
    /// What all workers remember together.
    pub limits: WorkerLimits,
    /// The file of the rules.
    pub path: String,
    pub handle: Arc<FilterHandle>,
}

/// A worker's part of the filter.
pub struct WorkerFilter {
    pub filter: BurstFilter,
    pub server: FilterServer,
    /// Wakes the worker.
    pub wakeup: Wakeup,
}

impl WorkerFilter {
    /// Has a worker's loop filter by it. Returns what wakes the worker.
    pub fn attach(self, forwarder: &mut Forwarder) -> Wakeup {
        forwarder.set_filter(self.filter);
        forwarder.set_filter_server(self.server);
        self.wakeup
    }
}

impl RunningFilter {
    /// A filter without states, and the parts of the workers that are woken so.
    pub fn start(compiled: CompiledFilter, wakeups: Vec<Wakeup>) -> (RunningFilter, Vec<WorkerFilter>) {
        let CompiledFilter { rules, limits, path, sources, .. } = compiled;
        let (mut workers, mut inspectors, mut parts) = (Vec::new(), Vec::new(), Vec::new());
        let count = wakeups.len() as u32;
        for wakeup in wakeups {
            let mut filter = BurstFilter::new(&rules, limits.share(count), random_seed());
            filter.parts().1.be_one_of(count);
            let (client, inspector, server) = filter_link();
            workers.push(WorkerEnd { client, wakeup: wakeup.clone(), waiting: 0 });
            inspectors.push((inspector, wakeup.clone()));
            parts.push(WorkerFilter { filter, server, wakeup });
        }
        let handle = Arc::new(FilterHandle::new(inspectors));
        (RunningFilter { rules, limits, path, sources, workers, handle, changes: 0 }, parts)
    }

    /// The filter for threads that ask.
    pub fn in_force(&self) -> FilterInForce {
        FilterInForce {
            rules: self.rules.clone(),
            limits: self.limits,
            path: self.path.clone(),
            handle: Arc::clone(&self.handle),
        }
    }

    /// Hands other rules to the workers. States and counters keep their rules.
    ///
    /// # Errors
    /// The rules have other limits, or a worker does not take them; the rules in force stay.
    pub fn change(&mut self, compiled: CompiledFilter) -> Result<(), FilterError> {
        let CompiledFilter { rules, limits, path, sources, .. } = compiled;
        if limits != self.limits {
            return Err(FilterError::OtherLimits { path });
        }
        self.send(|before| RuleChange::new(before, &rules))?;
        self.changes += 1;
        (self.rules, self.path, self.sources) = (rules, path, sources);
        Ok(())
    }

    /// Hands the same rules with other tables to the workers.
    ///
    /// # Errors
    /// A worker does not take them; the tables in force stay.
    pub fn change_tables(&mut self, rules: EnforceableRules) -> Result<(), FilterError> {
        self.send(|_| RuleChange::of_tables(&rules))?;
        self.rules = rules;
        Ok(())
    }

    /// Hands a change from the rules in force to all workers, or to none.
    fn send(&mut self, change: impl Fn(&EnforceableRules) -> RuleChange) -> Result<(), FilterBusy> {
        if !self.workers.iter().all(|worker| worker.client.has_room()) {
            return Err(FilterBusy);
        }
        for WorkerEnd { client, wakeup, waiting } in &mut self.workers {
            // It does not fail: only this thread fills the ring, which had room.
            client.send(change(&self.rules))?;
            wakeup.notify();
            *waiting += 1;
        }
        Ok(())
    }

    /// Has all workers begin a round now, in which they see what was published.
    pub fn wake_workers(&self) {
        self.workers.iter().for_each(|worker| worker.wakeup.notify());
    }

    /// Puts other tables in place of some in all parts, before the workers run.
    pub fn begin_with<'w>(
        &mut self,
        workers: impl Iterator<Item = &'w mut WorkerFilter>,
        tables: Vec<(TableId, Arc<AddressTable>)>,
    ) {
        self.rules = self.rules.with_tables(tables);
        for worker in workers {
            worker.filter.replace_rules(Arc::clone(self.rules.rules()));
        }
    }

    /// Frees former rules that the workers have handed back.
    pub fn free_former(&mut self) {
        for WorkerEnd { client, waiting, .. } in &mut self.workers {
            *waiting -= client.free_former();
        }
    }

    /// Whether the workers have taken all changes.
    pub fn is_settled(&self) -> bool {
        self.workers.iter().all(|worker| worker.waiting == 0)
    }

    /// How often the rules have changed.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Makes the rules in force again for other interfaces, from the same text. `None`: another thread changes them now.
    ///
    /// # Errors
    /// They cannot be enforced with these interfaces, or the worker does not take them; the rules in force stay.
    pub fn follow_interfaces(&mut self, interfaces: &[Interface]) -> Option<Result<(), FilterError>> {
        let handle = Arc::clone(&self.handle);
        let _changing = handle.try_lock_changes()?;
        let FilterSources { options, files } = &self.sources;
        let compiled = filter::compile_after(Some(&self.rules), options, files, interfaces);
        Some(compiled.and_then(|compiled| self.change(compiled)))
    }
}

/// Another one for each worker, so that a place in one table says nothing about those in others.
fn random_seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Reads and checks the rules that a router with this plan would enforce. Returns the names in them that stand for no
/// interface.
pub fn check_filter(options: &FilterOptions, plan: &Plan) -> Result<Vec<UnknownInterface>, FilterError> {
    let named = |planned: &PlannedInterface| Interface {
        name: planned.name.clone(),
        ..Interface::new(planned.port, Mac::default())
    };
    let interfaces = plan.interfaces.iter().map(named).collect();
    let interfaces = with_planned_addresses(interfaces, &plan.interfaces, &[]);
    Ok(filter::compile(options, &FileSystem::default(), &interfaces)?.unknown)
}
