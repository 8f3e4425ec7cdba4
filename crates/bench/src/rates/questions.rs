//! What is measured of a device beside its rates.

use fullview_lab::search::Measurer;

use super::bursts::{BurstPlan, longest_burst};
use super::error::RatesError;
use super::lab::RateDevice;
use super::result::DeviceSearch;
use super::table_load::{RoutesPlan, TableLoad};

/// What is asked.
#[derive(Clone, Debug, Default)]
pub struct Questions {
    /// The longest burst without loss.
    pub bursts: bool,
    /// Routes of the device's kernel while everything is measured.
    pub routes: Option<RoutesPlan>,
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
    pub fn finish(&self, running: &mut dyn RateDevice, search: &mut DeviceSearch) {
        let Some(plan) = &self.routes else { return };
        search.changes = search.answer("--changes", running.end_changes(plan)).flatten();
    }

    /// Asks a device that runs, after its search. What cannot be answered says why, and the rates stay.
    pub fn ask<M: Measurer<Error = RatesError>>(
        &self,
        loads: CampaignLoads,
        measurer: &mut M,
        search: &mut DeviceSearch,
    ) {
        let CampaignLoads { largest: load, trial_seconds } = loads;
        if self.bursts {
            let plan = BurstPlan { load, most: (load * trial_seconds) as u64, ndr: search.ndr };
            search.burst = search.answer("--bursts", longest_burst(plan, measurer));
        }
    }
}
