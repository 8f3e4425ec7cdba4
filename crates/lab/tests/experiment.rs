//! Errors in experiment files: each names its place and what to write instead.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops where it cannot go on"
)]

#[path = "mock/experiment.rs"]
mod definition;

use definition::{EXPERIMENT, MockSettings, parse};
use fullview_lab::{Experiment, ExperimentError};
use proptest::prelude::*;

fn error_of(text: &str) -> ExperimentError {
    Experiment::<MockSettings>::parse("experiment.toml", text).expect_err("the experiment should be refused")
}

/// The experiment with one text replaced by another.
fn with(written: &str, instead: &str) -> String {
    assert!(EXPERIMENT.contains(written), "{written}");
    EXPERIMENT.replacen(written, instead, 1)
}

#[test]
fn a_whole_experiment_is_read() {
    let experiment = parse(EXPERIMENT);
    assert_eq!(experiment.families[0].title, "IPv4");
    assert_eq!(experiment.families[1].title, "inet6");
    assert_eq!(experiment.baseline(), 0);
    assert_eq!(experiment.window.sample().as_millis(), 200);
    assert_eq!(experiment.analysis.metric, "packets-per-second forwarded");
    assert_eq!(experiment.comparisons().len(), 1);
    assert_eq!(experiment.variants[1].set.rate, Some(1_050_000.0));
}

#[test]
fn declared_comparisons_replace_the_default_ones() {
    let experiment =
        parse(&(EXPERIMENT.to_owned() + "[analysis]\ncomparisons = [[\"before\", \"after\"]]\n"));
    assert_eq!((experiment.comparisons()[0].variant, experiment.comparisons()[0].against), (0, 1));
}

#[test]
fn every_error_has_its_place_and_advice() {
    let analysis = |line: &str| format!("{EXPERIMENT}[analysis]\n{line}\n");
    let cases = [
        (with("runs = 4", "runz = 4"), 4, 1, "unknown field `runz`"),
        (with("runs = 4", ""), 1, 1, "missing field `runs`: add it"),
        (with("runs = 4", "runs = 0"), 4, 8, "runs must be from 1 to 100000"),
        (with("runs = 4", "runs = \"four\""), 4, 8, "invalid type"),
        (with("runs = 4", "runs = = 4"), 4, 8, ""),
        (with("\"Impact of a patch on forwarding\"", "\" \""), 2, 9, "title is empty"),
        (with("[\"2 static routes\"]", "[\"two\\nlines\"]"), 3, 15, "one line of text"),
        (with("[{ name = \"inet\", title = \"IPv4\" }, \"inet6\"]", "[]"), 6, 12, "no families"),
        (with("\"inet6\"", "\"inet\""), 6, 48, "a second time"),
        (with("\"inet6\"", "\"inet/6\""), 6, 48, "cannot be a name"),
        (with("\"inet6\"", "7"), 6, 48, "expected a name such as"),
        (with("title = \"IPv4\"", "titel = \"IPv4\""), 6, 30, "unknown field `titel`"),
        (with("warmup_s = 0.5", "warmup_s = -0.5"), 7, 23, "warmup_s = -0.5 is not a duration"),
        (with("measure_s = 2.0", "measure_s = nan"), 7, 40, "measure_s = NaN is not a duration"),
        (with("measure_s = 2.0", "measure_s = 0.0"), 7, 40, "must be above zero"),
        (with("measure_s = 2.0", "measure_s = 2.0, sample_ms = 3000"), 7, 57, "a sample must be"),
        (with("rate = 1000000.0", "rat = 1000000.0"), 8, 13, "unknown field `rat`"),
        (with("name = \"after\"", "name = \"before\""), 15, 8, "a second time"),
        (with("name = \"after\"", "name = \"../after\""), 15, 8, "cannot be a name"),
        (with("label = \"r368766\"", "label = \"\""), 12, 9, "text is empty"),
        (analysis("baseline = \"middle\""), 19, 12, "no variant \"middle\": name one of before, after"),
        (analysis("margin = 1.5"), 19, 10, "margin must be between 0 and 1"),
        (analysis("comparisons = [[\"after\", \"after\"]]"), 19, 16, "compared with itself"),
        (with("seed = 1", "seed = -1"), 5, 8, "invalid value"),
    ];
    for (text, line, column, message) in cases {
        let error = error_of(&text);
        assert_eq!((error.line, error.column), (line, column), "{error}");
        assert!(error.message.contains(message), "{error}\nshould say: {message}");
        assert!(error.to_string().starts_with("experiment.toml:"), "{error}");
    }
}

#[test]
fn a_change_after_reading_is_checked_too() {
    let mut experiment = parse(EXPERIMENT);
    experiment.runs = 0;
    assert!(experiment.check().unwrap_err().message.contains("runs must be from 1"));
}

proptest! {
    #[test]
    fn reading_any_text_does_not_panic(start in 0..EXPERIMENT.len(), removed in 0usize..40, added in "\\PC{0,12}") {
        let end = (start + removed).min(EXPERIMENT.len());
        let text = format!("{}{added}{}", &EXPERIMENT[..start], &EXPERIMENT[end..]);
        if let Err(error) = Experiment::<MockSettings>::parse("experiment.toml", &text) {
            prop_assert!(error.line <= text.lines().count() + 1, "{error}");
            prop_assert!(!error.message.is_empty());
        }
    }
}
