//! What was found for each device.

use fullview_lab::search::{GoalResult, ReceiveRate, SearchEnd, SearchResults, Trial};
use fullview_lab::stats::median;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::block_contrast::BlockContrast;
use super::bursts::LongestBurst;
use super::convergence::Convergence;
use super::error::RatesError;
use super::lab::LabDescription;
use super::path_latency::LevelLatency;
use super::table_load::{ChangeRate, TableLoad};

/// One repetition of a device, in packets per second.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeviceSearch {
    /// From 1.
    pub repetition: u32,
    pub end: SearchEnd,
    /// The no drop rate: 0 if even the smallest load loses packets, nothing if the search ended before its bounds were near
    /// each other.
    pub ndr: Option<f64>,
    /// The same for the partial drop rate.
    pub pdr: Option<f64>,
    /// The maximum receive rate.
    pub mrr: f64,
    /// The bounds of NDR and PDR.
    pub goals: Vec<GoalResult>,
    /// At rising loads; empty if it was not measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency: Vec<LevelLatency>,
    /// The longest burst without loss, if it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<LongestBurst>,
    /// What loading the routes took, if there were some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routes: Option<TableLoad>,
    /// How fast they changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<ChangeRate>,
    /// What failures of links and routes cost, if some were made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub convergence: Vec<Convergence>,
    /// Why questions beside the rates have no answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unanswered: Vec<String>,
    #[serde(skip)]
    pub trials: Vec<Trial>,
}

/// A repetition without a result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FailedSearch {
    pub repetition: u32,
    pub reason: String,
}

/// All repetitions of a device.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeviceRates {
    pub device: String,
    /// What it is, if its name does not say that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub searches: Vec<DeviceSearch>,
    pub failed: Vec<FailedSearch>,
    /// Repetitions that were made again, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeated: Vec<FailedSearch>,
}

/// What a campaign found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RatesReport {
    pub seed: u64,
    pub repetitions: u32,
    pub trial_seconds: f64,
    /// Of all packets: `inet` or `inet6`.
    pub family: String,
    /// Bytes of consecutive frames without the FCS; they repeat from the start.
    pub frame_bytes: Vec<usize>,
    /// The loads that were searched, in packets per second.
    pub smallest_load: f64,
    pub largest_load: f64,
    pub debug_build: bool,
    pub interrupted: bool,
    /// The machines, if they are others than this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub testbed: Option<Value>,
    pub devices: Vec<DeviceRates>,
    /// Against the control, if there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<BlockContrast>,
    /// Where the time goes, if that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Value>,
    #[serde(skip)]
    pub lab: LabDescription,
}

/// The median of some rates with their range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateRange {
    pub median: f64,
    pub lowest: f64,
    pub highest: f64,
}

impl DeviceSearch {
    /// Of a search up to this load.
    pub fn new(
        repetition: u32,
        results: SearchResults,
        receive: ReceiveRate,
        largest_load: f64,
    ) -> DeviceSearch {
        let SearchResults { end, goals, mut trials } = results;
        let rate = |goal: usize| goals.get(goal).and_then(|goal| rate(goal, end, largest_load));
        let (ndr, pdr) = (rate(0), rate(1));
        trials.extend(receive.trials);
        DeviceSearch {
            repetition,
            end,
            ndr,
            pdr,
            mrr: receive.mean,
            goals,
            latency: Vec::new(),
            burst: None,
            routes: None,
            changes: None,
            convergence: Vec::new(),
            unanswered: Vec::new(),
            trials,
        }
    }

    /// Keeps the reason if there is no answer. A lost host is an error: the whole turn is made again when it is back.
    pub fn answer<T>(
        &mut self,
        question: &str,
        answer: Result<T, RatesError>,
    ) -> Result<Option<T>, RatesError> {
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if error.is_lost() => Err(error),
            Err(error) => {
                self.unanswered.push(format!("{question}: {error}"));
                Ok(None)
            }
        }
    }
}

/// The lower bound; 0 where a search that came to its end found none. That of a search without an end is a rate only if the
/// search has nothing left to decide: the true rate may be far above it.
fn rate(goal: &GoalResult, end: SearchEnd, largest_load: f64) -> Option<f64> {
    let lower = goal.relevant_lower_bound;
    if end == SearchEnd::Complete {
        return Some(lower.unwrap_or(0.0));
    }
    // Loads are powers of a step, so that a difference of exactly the width is rounded.
    let width = goal.goal.width * (1.0 + 1e-9);
    let is_near = |lower: f64| goal.relevant_upper_bound.is_some_and(|upper| upper - lower <= width * upper);
    lower.filter(|lower| *lower >= largest_load || is_near(*lower))
}

impl DeviceRates {
    /// Adds a repetition.
    pub fn add(&mut self, search: Option<DeviceSearch>, failed: &[FailedSearch]) {
        self.searches.extend(search);
        self.failed.extend_from_slice(failed);
    }

    /// One kind of rate over the repetitions that have it.
    pub fn range(&self, rate: impl Fn(&DeviceSearch) -> Option<f64>) -> Option<RateRange> {
        let rates: Vec<f64> = self.searches.iter().filter_map(rate).collect();
        let (lowest, highest) =
            (rates.iter().copied().reduce(f64::min)?, rates.iter().copied().reduce(f64::max)?);
        Some(RateRange { median: median(&rates)?, lowest, highest })
    }
}

impl RatesReport {
    /// Whether every search of every device came to its end, and every question has an answer.
    pub fn is_complete(&self) -> bool {
        let ended = |device: &DeviceRates| {
            let all = device.searches.len() == self.repetitions as usize && device.failed.is_empty();
            let is_whole =
                |search: &DeviceSearch| search.end == SearchEnd::Complete && search.unanswered.is_empty();
            all && device.searches.iter().all(is_whole)
        };
        !self.interrupted && self.devices.iter().all(ended)
    }
}

#[cfg(test)]
mod tests {
    use fullview_lab::search::SearchGoal;

    use super::*;

    #[test]
    fn a_question_without_an_answer_has_a_reason_unless_a_host_is_lost() {
        let results = SearchResults { end: SearchEnd::Complete, goals: vec![], trials: vec![] };
        let receive = ReceiveRate { mean: 1.0, standard_deviation: None, trials: vec![] };
        let mut search = DeviceSearch::new(1, results, receive, 1.0);
        assert_eq!(search.answer("--bursts", Ok(7)).unwrap(), Some(7));
        assert_eq!(search.answer::<u32>("--bursts", Err(RatesError::ForwardsNothing)).unwrap(), None);
        assert!(search.unanswered[0].starts_with("--bursts: "), "{:?}", search.unanswered);
        let lost = RatesError::LostHosts("dut: the connection was lost".into());
        assert!(search.answer::<u32>("--changes", Err(lost)).unwrap_err().is_lost());
        assert_eq!(search.unanswered.len(), 1);
    }

    #[test]
    fn the_lower_bound_of_a_search_without_an_end_is_a_rate_only_near_the_upper_one() {
        let bounds = |lower, upper| GoalResult {
            goal: SearchGoal::ndr(),
            relevant_lower_bound: lower,
            relevant_upper_bound: upper,
            conditional_throughput: None,
        };
        let of = |lower, upper| {
            [SearchEnd::Complete, SearchEnd::Stopped].map(|end| rate(&bounds(lower, upper), end, 2000.0))
        };
        assert_eq!(of(None, Some(1000.0)), [Some(0.0), None]);
        assert_eq!(of(Some(500.0), Some(1000.0)), [Some(500.0), None]);
        assert_eq!(of(Some(500.0), None), [Some(500.0), None]);
        assert_eq!(of(Some(995.0), Some(1000.0)), [Some(995.0); 2]);
        assert_eq!(of(Some(2000.0), None), [Some(2000.0); 2]);
    }
}
