//! The filter of a running router: the rules in force, and how its worker gets others.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use fullview_filter::address_table::AddressTable;
use fullview_filter::interfaces::UnknownInterface;
use fullview_filter::pf::files::FileSystem;
use fullview_filter::rule::TableId;
use fullview_filter::state::WorkerLimits;
use fullview_plane::forward::{
    BurstFilter, EnforceableRules, FilterClient, FilterServer, RuleChange, filter_link,
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
    client: FilterClient,
    wakeup: Wakeup,
    handle: Arc<FilterHandle>,
    /// Changes that the worker has not taken yet.
    waiting: usize,
    /// How often the rules have changed.
    changes: u64,
}

/// A running filter, as queries find it.
pub struct FilterInForce {
    pub rules: EnforceableRules,
    pub limits: WorkerLimits,
    /// The file of the rules.
    pub path: String,
    pub handle: Arc<FilterHandle>,
}

/// The worker's half of the filter.
pub struct WorkerFilter {
    pub filter: BurstFilter,
    pub server: FilterServer,
}

impl RunningFilter {
    /// Both halves of a filter without states, for the worker that `wakeup` wakes.
    pub fn start(compiled: CompiledFilter, wakeup: Wakeup) -> (RunningFilter, WorkerFilter) {
        let CompiledFilter { rules, limits, path, sources, .. } = compiled;
        let seed = RandomState::new().build_hasher().finish();
        let filter = BurstFilter::new(&rules, limits, seed);
        let (client, inspector, server) = filter_link();
        let handle = Arc::new(FilterHandle::new(inspector, wakeup.clone()));
        let (waiting, changes) = (0, 0);
        let running =
            RunningFilter { rules, limits, path, sources, client, wakeup, handle, waiting, changes };
        (running, WorkerFilter { filter, server })
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

    /// Hands other rules to the worker. States and counters keep their rules.
    ///
    /// # Errors
    /// The rules have other limits, or the worker does not take them; the rules in force stay.
    pub fn change(&mut self, compiled: CompiledFilter) -> Result<(), FilterError> {
        let CompiledFilter { rules, limits, path, sources, .. } = compiled;
        if limits != self.limits {
            return Err(FilterError::OtherLimits { path });
        }
        self.client.send(RuleChange::new(&self.rules, &rules))?;
        self.wakeup.notify();
        self.waiting += 1;
        self.changes += 1;
        (self.rules, self.path, self.sources) = (rules, path, sources);
        Ok(())
    }

    /// Hands the same rules with other tables to the worker.
    ///
    /// # Errors
    /// The worker does not take them; the tables in force stay.
    pub fn change_tables(&mut self, rules: EnforceableRules) -> Result<(), FilterError> {
        self.client.send(RuleChange::of_tables(&rules))?;
        self.wakeup.notify();
        self.waiting += 1;
        self.rules = rules;
        Ok(())
    }

    /// Puts other tables in place of some in both halves, before the worker runs.
    pub fn begin_with(&mut self, worker: &mut WorkerFilter, tables: Vec<(TableId, Arc<AddressTable>)>) {
        self.rules = self.rules.with_tables(tables);
        worker.filter.replace_rules(Arc::clone(self.rules.rules()));
    }

    /// Frees former rules that the worker has handed back.
    pub fn free_former(&mut self) {
        self.waiting -= self.client.free_former();
    }

    /// Whether the worker has taken all changes.
    pub fn is_settled(&self) -> bool {
        self.waiting == 0
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
