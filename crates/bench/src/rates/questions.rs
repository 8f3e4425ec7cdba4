//! What is measured of a device beside its rates.

use std::sync::atomic::AtomicBool;

use fullview_lab::search::Measurer;

use super::bursts::{BurstPlan, longest_burst};
use super::convergence::{ConvergencePlan, failure_load};
use super::error::RatesError;
use super::lab::{RateDevice, RateLab};
use super::result::DeviceSearch;
use super::table_load::{ChangeRate, RoutesPlan, TableLoad};

/// What is asked.
#[derive(Clone, Debug, Default)]
pub struct Questions {
    /// The longest burst without loss.
    pub bursts: bool,
    /// Routes of the device's kernel while everything is measured.
    pub routes: Option<RoutesPlan>,
    /// How often each kind of failure is made; 0 for none.
    pub failures: u32,
}

/// The campaign's loads.
#[derive(Clone, Copy, Debug)]
pub struct CampaignLoads {
    /// Packets a second, at most.
    pub largest: f64,
    pub trial_seconds: f64,
}

impl Questions {
    /// Loads the routes into a device that has just started.
    pub fn prepare(&self, running: &mut dyn RateDevice) -> Result<Option<TableLoad>, RatesError> {
        self.routes.as_ref().map(|plan| running.load_routes(plan)).transpose()
    }

    /// Ends what `prepare` began.
    pub fn end_changes(&self, running: &mut dyn RateDevice) -> Result<Option<ChangeRate>, RatesError> {
        self.routes.as_ref().map_or(Ok(None), |plan| running.end_changes(plan))
    }

    /// The same, and keeps how fast the routes changed.
    pub fn finish(&self, running: &mut dyn RateDevice, search: &mut DeviceSearch) -> Result<(), RatesError> {
        search.changes = search.answer("--changes", self.end_changes(running))?.flatten();
        Ok(())
    }

    /// Asks a device that runs, after its search. What cannot be answered says why, and the rates stay, unless a host is lost.
    pub fn ask<M: Measurer<Error = RatesError>>(
        &self,
        loads: CampaignLoads,
        measurer: &mut M,
        search: &mut DeviceSearch,
    ) -> Result<(), RatesError> {
        let CampaignLoads { largest: load, trial_seconds } = loads;
        if self.bursts {
            let plan = BurstPlan::new(load, trial_seconds, search.ndr);
            search.burst = search.answer("--bursts", longest_burst(plan, measurer))?;
        }
        Ok(())
    }

    /// Has links and routes of further devices of this name fail: without changes of other routes, and with them.
    pub fn converge(
        &self,
        lab: &mut dyn RateLab,
        device: &str,
        largest: f64,
        search: &mut DeviceSearch,
        stop: &AtomicBool,
    ) -> Result<(), RatesError> {
        if self.failures == 0 {
            return Ok(());
        }
        for routes in self.spare_routes() {
            let (failures, load, routes) = (self.failures, failure_load(largest), routes.as_ref());
            let plan = ConvergencePlan { failures, load, routes, stop };
            let found = search.answer("--convergence", lab.converge(device, plan))?;
            search.convergence.extend(found.into_iter().flatten());
        }
        Ok(())
    }

    fn spare_routes(&self) -> Vec<Option<RoutesPlan>> {
        let Some(plan) = &self.routes else { return vec![None] };
        let changing = (plan.changes > 0).then(|| Some(plan.by_spare(plan.changes)));
        [Some(plan.by_spare(0))].into_iter().chain(changing).collect()
    }
}
