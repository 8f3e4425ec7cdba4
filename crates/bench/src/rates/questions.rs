//! What is measured of a device beside its rates.

use fullview_lab::search::Measurer;

use super::bursts::{BurstPlan, longest_burst};
use super::error::RatesError;
use super::result::DeviceSearch;

/// What is asked.
#[derive(Clone, Debug, Default)]
pub struct Questions {
    /// The longest burst without loss.
    pub bursts: bool,
}

/// The campaign's loads.
#[derive(Clone, Copy, Debug)]
pub struct CampaignLoads {
    /// Packets a second, at most.
    pub largest: f64,
    pub trial_seconds: f64,
}

impl Questions {
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
