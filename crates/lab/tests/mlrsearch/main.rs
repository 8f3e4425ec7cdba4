//! MLRsearch beside the published implementation, trial by trial.
#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

mod device;
mod questions;
mod reference;

use fullview_lab::search::{GoalResult, SearchConfig, SearchEnd, SearchResults, search};

use device::Simulation;
use questions::question;
use reference::{Answer, PublishedResult, Question, ask, interpreter};

const DEVICES: usize = 1_000;

fn ours(question: &Question) -> SearchResults {
    let config = SearchConfig {
        goals: question.goals.clone(),
        min_load: question.min_load,
        max_load: question.max_load,
        warmup_duration: question.warmup_duration,
    };
    search(config, &mut Simulation::of(&question.device), f64::INFINITY).expect("a search")
}

fn is_equal(ours: &GoalResult, theirs: &PublishedResult) -> bool {
    let (lower, upper, _, throughput) = *theirs;
    (ours.relevant_lower_bound, ours.relevant_upper_bound, ours.conditional_throughput)
        == (lower, upper, throughput)
}

/// Whether a rounding error changed the published conditional throughput.
fn is_rounded(theirs: &&PublishedResult) -> bool {
    theirs.2 != theirs.3
}

fn compare(question: &Question, ours: &SearchResults, theirs: &Answer) {
    let trials =
        ours.trials.iter().map(|trial| (trial.request.load, trial.request.duration, trial.result.loss_ratio));
    for (number, (one, other)) in trials.zip(&theirs.trials).enumerate() {
        assert_eq!(one, *other, "trial {number} of {question:?}");
    }
    assert_eq!(ours.trials.len(), theirs.trials.len(), "the number of trials of {question:?}");
    match &theirs.goals {
        Some(goals) => {
            assert_eq!(ours.end, SearchEnd::Complete, "{question:?}");
            let equal = ours.goals.iter().zip(goals).all(|(one, other)| is_equal(one, other));
            assert!(equal, "{:?} and {goals:?} of {question:?}", ours.goals);
        }
        None => {
            let failed = theirs.error.as_deref().unwrap_or_default();
            assert!(failed.starts_with("No lower bound"), "the published search failed: {failed}");
            assert!(matches!(ours.end, SearchEnd::NoLowerBound(_)), "{question:?}");
        }
    }
}

#[test]
fn every_trial_and_result_is_that_of_the_published_search() {
    let Some(interpreter) = interpreter() else { return };
    let questions: Vec<Question> = (0..DEVICES).map(question).collect();
    let answers = ask(&interpreter, &questions);
    assert_eq!(answers.len(), DEVICES);
    for (question, theirs) in questions.iter().zip(&answers) {
        compare(question, &ours(question), theirs);
    }
    let trials: usize = answers.iter().map(|answer| answer.trials.len()).sum();
    let failed = answers.iter().filter(|answer| answer.goals.is_none()).count();
    let rounded = answers.iter().flat_map(|answer| answer.goals.iter().flatten()).filter(is_rounded).count();
    println!("{rounded} conditional throughputs of the published search have a rounding error");
    println!("{trials} trials equal, {failed} of {DEVICES} searches ended without a lower bound in both");
}
