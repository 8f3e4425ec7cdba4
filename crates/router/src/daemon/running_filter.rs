//! The filter of a running router: the rules in force, and how its worker gets others.

use std::hash::{BuildHasher, Hasher, RandomState};

use fullview_filter::pf::files::FileSystem;
use fullview_filter::state::WorkerLimits;
use fullview_plane::forward::{
    BurstFilter, EnforceableRules, FilterClient, FilterServer, RuleChange, filter_link,
};
use fullview_plane::interface::Interface;
use fullview_plane::wire::ethernet::Mac;

use super::plan_events::with_planned_addresses;
use crate::filter::{self, CompiledFilter, FilterError, FilterOptions};
use crate::options::plan::{Plan, PlannedInterface};

/// The router's half of the filter.
pub struct RunningFilter {
    rules: EnforceableRules,
    limits: WorkerLimits,
    client: FilterClient,
}

/// The worker's half of the filter.
pub struct WorkerFilter {
    pub filter: BurstFilter,
    pub server: FilterServer,
}

impl RunningFilter {
    /// Both halves of a filter without states.
    pub fn start(compiled: CompiledFilter) -> (RunningFilter, WorkerFilter) {
        let CompiledFilter { rules, limits, .. } = compiled;
        let seed = RandomState::new().build_hasher().finish();
        let filter = BurstFilter::new(&rules, limits, seed);
        let (client, server) = filter_link();
        (RunningFilter { rules, limits, client }, WorkerFilter { filter, server })
    }

    /// Hands other rules to the worker. States and counters keep their rules.
    ///
    /// # Errors
    /// The rules have other limits, or the worker does not take them; the rules in force stay.
    pub fn change(&mut self, compiled: CompiledFilter) -> Result<(), FilterError> {
        let CompiledFilter { rules, limits, path } = compiled;
        if limits != self.limits {
            return Err(FilterError::OtherLimits { path });
        }
        self.client.send(RuleChange::new(&self.rules, &rules))?;
        self.rules = rules;
        Ok(())
    }

    /// Frees former rules that the worker has handed back.
    pub fn free_former(&mut self) {
        self.client.free_former();
    }
}

/// Reads and checks the rules that a router with this plan would enforce.
pub fn check_filter(options: &FilterOptions, plan: &Plan) -> Result<(), FilterError> {
    let named = |planned: &PlannedInterface| Interface {
        name: planned.name.clone(),
        ..Interface::new(planned.port, Mac::default())
    };
    let interfaces = plan.interfaces.iter().map(named).collect();
    let interfaces = with_planned_addresses(interfaces, &plan.interfaces, &[]);
    filter::compile(options, &FileSystem::default(), &interfaces)?;
    Ok(())
}
