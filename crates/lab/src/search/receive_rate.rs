//! The maximum receive rate (MRR): what comes out when as much as possible is offered.

use serde::{Deserialize, Serialize};

use super::error::SearchError;
use super::trial::{Measurer, Trial, TrialPurpose, TrialRequest};

/// The rates of trials at one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReceiveRate {
    /// In the unit of the load.
    pub mean: f64,
    /// Of the rates of single trials; `None` of one trial.
    pub standard_deviation: Option<f64>,
    pub trials: Vec<Trial>,
}

/// Makes `count` trials at one load.
pub fn receive_rate<M: Measurer>(
    measurer: &mut M,
    load: f64,
    duration: f64,
    count: u32,
) -> Result<ReceiveRate, SearchError> {
    let request = TrialRequest { load, duration, purpose: TrialPurpose::Initial };
    let failed = |source: M::Error| SearchError::Trial { load, duration, source: Box::new(source) };
    let one = |_| Trial::new(request, measurer.measure(request).map_err(failed)?);
    let trials = (0..count).map(one).collect::<Result<Vec<_>, _>>()?;
    let rates: Vec<f64> = trials.iter().map(Trial::forwarding_rate).collect();
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    Ok(ReceiveRate { mean, standard_deviation: standard_deviation(&rates, mean), trials })
}

fn standard_deviation(rates: &[f64], mean: f64) -> Option<f64> {
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    (rates.len() > 1).then(|| (squares / (rates.len() - 1) as f64).sqrt())
}
