//! Mistakes in experiment files: the place, and what to write instead.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops where it cannot go on"
)]

#[path = "mock/question.rs"]
mod question;

use fullview_lab::{Experiment, ExperimentError};
use proptest::prelude::*;
use question::{Knobs, QUESTION, experiment};

fn mistake(text: &str) -> ExperimentError {
    Experiment::<Knobs>::parse("question.toml", text).expect_err("a mistake")
}

/// The question with one text replaced by another.
fn with(written: &str, instead: &str) -> String {
    assert!(QUESTION.contains(written), "{written}");
    QUESTION.replacen(written, instead, 1)
}

#[test]
fn reads_a_whole_question() {
    let asked = experiment(QUESTION);
    assert_eq!(asked.families[0].title, "IPv4");
    assert_eq!(asked.families[1].title, "inet6");
    assert_eq!(asked.baseline(), 0);
    assert_eq!(asked.window.sample().as_millis(), 200);
    assert_eq!(asked.analysis.metric, "packets-per-second forwarded");
    assert_eq!(asked.comparisons().len(), 1);
    assert_eq!(asked.variants[1].set.rate, Some(1_050_000.0));
}

#[test]
fn declared_comparisons_replace_the_default_ones() {
    let asked = experiment(&(QUESTION.to_owned() + "[analysis]\ncomparisons = [[\"before\", \"after\"]]\n"));
    assert_eq!((asked.comparisons()[0].variant, asked.comparisons()[0].against), (0, 1));
}

#[test]
fn every_mistake_has_its_place_and_its_mend() {
    let analysis = |line: &str| format!("{QUESTION}[analysis]\n{line}\n");
    let cases = [
        (with("runs = 4", "runz = 4"), 4, 1, "unknown field `runz`"),
        (with("runs = 4", ""), 1, 1, "missing field `runs`: add it"),
        (with("runs = 4", "runs = 0"), 4, 8, "zero runs"),
        (with("runs = 4", "runs = \"four\""), 4, 8, "invalid type"),
        (with("runs = 4", "runs = = 4"), 4, 8, ""),
        (with("\"Impact of a patch on forwarding\"", "\" \""), 2, 9, "title is empty"),
        (with("[\"2 static routes\"]", "[\"two\\nlines\"]"), 3, 15, "one plain line"),
        (with("[{ name = \"inet\", title = \"IPv4\" }, \"inet6\"]", "[]"), 6, 12, "no families"),
        (with("\"inet6\"", "\"inet\""), 6, 48, "a second time"),
        (with("\"inet6\"", "\"inet/6\""), 6, 48, "cannot be a name"),
        (with("\"inet6\"", "7"), 6, 48, "expected a name such as"),
        (with("title = \"IPv4\"", "titel = \"IPv4\""), 6, 30, "unknown field `titel`"),
        (with("warmup_s = 0.5", "warmup_s = -0.5"), 7, 23, "warmup_s = -0.5 is no duration"),
        (with("measure_s = 2.0", "measure_s = nan"), 7, 40, "measure_s = NaN is no duration"),
        (with("measure_s = 2.0", "measure_s = 0.0"), 7, 40, "no length"),
        (with("measure_s = 2.0", "measure_s = 2.0, sample_ms = 3000"), 7, 57, "a sample must be"),
        (with("rate = 1000000.0", "rat = 1000000.0"), 8, 13, "unknown field `rat`"),
        (with("name = \"after\"", "name = \"before\""), 15, 8, "a second time"),
        (with("name = \"after\"", "name = \"../after\""), 15, 8, "cannot be a name"),
        (with("label = \"r368766\"", "label = \"\""), 12, 9, "empty text"),
        (analysis("baseline = \"middle\""), 19, 12, "no variant \"middle\": name one of before, after"),
        (analysis("margin = 1.5"), 19, 10, "margin lies between 0 and 1"),
        (analysis("comparisons = [[\"after\", \"after\"]]"), 19, 16, "compared with itself"),
        (with("seed = 1", "seed = -1"), 5, 8, "invalid value"),
    ];
    for (text, line, column, message) in cases {
        let error = mistake(&text);
        assert_eq!((error.line, error.column), (line, column), "{error}");
        assert!(error.message.contains(message), "{error}\nshould say: {message}");
        assert!(error.to_string().starts_with("question.toml:"), "{error}");
    }
}

#[test]
fn a_change_after_reading_is_checked_too() {
    let mut asked = experiment(QUESTION);
    asked.runs = 0;
    assert!(asked.check().unwrap_err().message.contains("zero runs"));
}

proptest! {
    #[test]
    fn no_text_makes_reading_panic(start in 0..QUESTION.len(), removed in 0usize..40, added in "\\PC{0,12}") {
        let end = (start + removed).min(QUESTION.len());
        let text = format!("{}{added}{}", &QUESTION[..start], &QUESTION[end..]);
        if let Err(error) = Experiment::<Knobs>::parse("question.toml", &text) {
            prop_assert!(error.line <= text.lines().count() + 1, "{error}");
            prop_assert!(!error.message.is_empty());
        }
    }
}
