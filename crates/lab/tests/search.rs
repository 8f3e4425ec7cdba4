//! Searches on devices whose limits are known, and what a search refuses.
#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

use std::convert::Infallible;

use fullview_lab::search::{
    Measurer, MlrSearch, SearchConfig, SearchEnd, SearchError, SearchGoal, SearchResults, TrialPurpose,
    TrialRequest, TrialResult, receive_rate, search,
};

const CAPACITY: f64 = 123_456.0;

/// Loses everything above its capacity, and this share of everything.
struct Knee {
    loss: f64,
}

impl Measurer for Knee {
    type Error = Infallible;

    fn measure(&mut self, request: TrialRequest) -> Result<TrialResult, Infallible> {
        let over = (1.0 - CAPACITY / request.load).max(0.0);
        Ok(TrialResult { loss_ratio: (over + self.loss).min(1.0), effective_duration: request.duration })
    }
}

/// A measurer that cannot measure.
struct Broken;

impl Measurer for Broken {
    type Error = std::num::ParseIntError;

    fn measure(&mut self, _: TrialRequest) -> Result<TrialResult, Self::Error> {
        "none".parse::<u8>().map(|_| unreachable!("not a number"))
    }
}

fn config(goals: &[SearchGoal]) -> SearchConfig {
    SearchConfig { goals: goals.to_vec(), min_load: 1_000.0, max_load: 1e6, warmup_duration: 0.0 }
}

fn found(goals: &[SearchGoal], loss: f64) -> SearchResults {
    search(config(goals), &mut Knee { loss }, f64::INFINITY).expect("a search")
}

#[test]
fn bounds_enclose_the_capacity_within_the_width() {
    let results = found(&[SearchGoal::ndr(), SearchGoal::pdr()], 0.0);
    assert_eq!(results.end, SearchEnd::Complete);
    for (result, highest) in results.goals.iter().zip([CAPACITY, CAPACITY / 0.995]) {
        let lower = result.relevant_lower_bound.expect("a lower bound");
        let upper = result.relevant_upper_bound.expect("an upper bound");
        assert!(lower <= highest && highest < upper, "{lower} {highest} {upper}");
        assert!((upper - lower) / upper <= 0.005);
        let throughput = result.conditional_throughput.expect("a throughput");
        assert!((throughput - lower.min(CAPACITY)).abs() < 1e-6, "{throughput} {lower}");
    }
}

#[test]
fn the_throughput_of_rfc_2544_takes_one_trial_for_each_load() {
    let results = found(&[SearchGoal::rfc2544(60.0, 0.01)], 0.0);
    let mut loads: Vec<f64> = results.trials.iter().map(|trial| trial.request.load).collect();
    let lower = results.goals[0].relevant_lower_bound.expect("a lower bound");
    assert!(lower <= CAPACITY && CAPACITY < lower / 0.99);
    assert!(results.trials.iter().all(|trial| trial.request.duration == 60.0));
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    assert_eq!(loads.len(), results.trials.len());
}

#[test]
fn limits_of_the_load_are_results() {
    let never = found(&[SearchGoal::with_loss_ratio(0.999)], 0.0);
    assert_eq!(never.goals[0].relevant_lower_bound, Some(1e6));
    assert_eq!(never.goals[0].relevant_upper_bound, None);
    let always = found(&[SearchGoal::ndr()], 0.1);
    assert_eq!((always.end, always.goals[0].relevant_upper_bound), (SearchEnd::Complete, Some(1_000.0)));
    assert_eq!(always.goals[0].conditional_throughput, None);
    let failed = found(&[SearchGoal { fail_fast: true, ..SearchGoal::ndr() }], 0.1);
    assert_eq!(failed.end, SearchEnd::NoLowerBound(0));
}

#[test]
fn a_search_that_takes_too_long_keeps_its_trials() {
    let results = search(config(&[SearchGoal::ndr()]), &mut Knee { loss: 0.0 }, 10.0).expect("a search");
    assert_eq!((results.end, results.trials.len()), (SearchEnd::Stopped, 10));
}

#[test]
fn a_warm_up_is_kept_and_does_not_count() {
    let config = SearchConfig { warmup_duration: 3.0, ..config(&[SearchGoal::ndr()]) };
    let mut warmed = MlrSearch::new(config).expect("a search");
    let warmup = warmed.request().expect("a trial");
    assert_eq!((warmup.purpose, warmup.duration, warmup.load), (TrialPurpose::Warmup, 3.0, 1e6));
    warmed.record(TrialResult { loss_ratio: 1.0, effective_duration: 3.0 }).expect("a result");
    assert_eq!(warmed.request().expect("a trial").load, 1e6);
}

#[test]
fn the_receive_rate_is_the_mean_of_trials() {
    let rate = receive_rate(&mut Knee { loss: 0.0 }, 1e6, 1.0, 10).expect("trials");
    assert!((rate.mean - CAPACITY).abs() < 1e-6 && rate.standard_deviation.expect("of ten") < 1e-6);
    assert_eq!(rate.trials.len(), 10);
}

#[test]
fn impossible_goals_and_results_are_refused() {
    let ndr = SearchGoal::ndr();
    let refused = [
        (
            SearchGoal { loss_ratio: 1.0, ..ndr },
            "goal 2: loss_ratio is 1, and must be at least 0 and below 1",
        ),
        (SearchGoal { exceed_ratio: -0.5, ..ndr }, "exceed_ratio"),
        (SearchGoal { width: 0.0, ..ndr }, "width"),
        (SearchGoal { initial_trial_duration: 0.0, ..ndr }, "initial_trial_duration"),
        (SearchGoal { final_trial_duration: f64::NAN, ..ndr }, "final_trial_duration"),
        (SearchGoal { duration_sum: 0.5, ..ndr }, "duration_sum"),
        (SearchGoal { preceding_targets: 0, ..ndr }, "preceding_targets"),
        (SearchGoal { expansion: 1, ..ndr }, "expansion"),
        (SearchGoal { width: 1e-12, ..ndr }, "steps"),
    ];
    for (goal, said) in refused {
        let error = MlrSearch::new(config(&[ndr, goal])).expect_err(said).to_string();
        assert!(error.contains(said), "{error}");
    }
    assert!(matches!(MlrSearch::new(config(&[])), Err(SearchError::NoGoal)));
    let loads = SearchConfig { min_load: 2e6, ..config(&[ndr]) };
    assert!(matches!(MlrSearch::new(loads), Err(SearchError::Loads { .. })));
    let mut search = MlrSearch::new(config(&[ndr])).expect("a search");
    let wrong = TrialResult { loss_ratio: 2.61, effective_duration: 1.0 };
    assert!(matches!(search.record(wrong), Err(SearchError::Result { field: "loss_ratio", .. })));
}

#[test]
fn a_failed_trial_is_named() {
    let error = search(config(&[SearchGoal::ndr()]), &mut Broken, 1.0).expect_err("it cannot measure");
    assert_eq!(error.to_string(), "a trial at load 1000000 of 1 s: invalid digit found in string");
}
