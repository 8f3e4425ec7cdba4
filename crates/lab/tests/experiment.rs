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
use fullview_lab::{Experiment, ExperimentError, Runs};
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
    assert_eq!(experiment.window.slice(), None);
    assert_eq!((experiment.runs, experiment.first_look(), experiment.most_blocks()), (Runs::Blocks(4), 4, 4));
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

/// Published figures with one line replaced.
fn published(line: &str) -> String {
    let lines = [
        "[published]",
        "source = \"others\"",
        "comparable = \"nothing\"",
        "[[published.figures]]",
        "family = \"inet\"",
        "variant = \"after\"",
        "against = \"before\"",
        "rate = 2.0",
        "difference = 0.21",
    ];
    let key = |line: &str| line.split(' ').next().map(str::to_owned);
    let replaced =
        |written: &&str| if key(written) == key(line) { line.to_owned() } else { (*written).to_owned() };
    lines.iter().map(|written| replaced(written) + "\n").collect()
}

#[test]
fn an_experiment_runs_until_it_is_decided_unless_it_says_otherwise() {
    for text in [with("runs = 4\n", ""), with("runs = 4", "runs = \"until decided\"")] {
        let experiment = parse(&text);
        assert_eq!(experiment.runs, Runs::UntilDecided);
        assert_eq!((experiment.first_look(), experiment.most_blocks()), (5, 40));
    }
    let few = parse(&(with("runs = 4\n", "") + "[analysis]\nmax_blocks = 3\n"));
    assert_eq!((few.first_look(), few.most_blocks()), (3, 3));
}

#[test]
fn a_model_says_what_it_is_a_model_of() {
    let experiment = parse(&with("label = \"r368766 with the patch\"", "model_of = \"D27401\""));
    assert_eq!(experiment.variants[1].label, "fullview's model of D27401");
    assert_eq!(experiment.variants[1].spoken(), "fullview's model of D27401");
    assert_eq!(experiment.variants[0].spoken(), "before");
}

#[test]
fn published_figures_are_read() {
    let experiment = parse(&(EXPERIMENT.to_owned() + &published("difference = 0.29")));
    let published = experiment.published.unwrap();
    assert_eq!((published.figures[0].rate, published.figures[0].against_rate), (Some(2.0), None));
    assert_eq!(published.figures[0].relative_difference(), Some(0.29));
    assert!(published.figures[0].proven);
}

#[test]
fn without_a_published_difference_there_is_that_of_the_published_rates() {
    let figure = |published: &str| {
        let read = parse(&(EXPERIMENT.to_owned() + published)).published.unwrap();
        (read.figures[0].relative_difference(), read.figures[0].proven)
    };
    assert_eq!(figure(&published("against = \"before\"\nagainst_rate = 1.6")), (Some(0.21), true));
    let without = published("against = \"before\"\nagainst_rate = 1.6\nproven = false");
    assert_eq!(figure(&without.replace("difference = 0.21\n", "")), (Some(0.25), false));
}

#[test]
fn every_error_has_its_place_and_advice() {
    let analysis = |line: &str| format!("{EXPERIMENT}[analysis]\n{line}\n");
    let published = |line: &str| format!("{EXPERIMENT}{}", published(line));
    let cases = [
        (with("runs = 4", "runz = 4"), 4, 1, "unknown field `runz`"),
        (with("seed = 1", ""), 1, 1, "missing field `seed`: add it"),
        (with("runs = 4", "runs = 0"), 4, 8, "runs must be from 1 to 100000"),
        (with("runs = 4", "runs = \"four\""), 4, 8, "expected a number of blocks, or \"until decided\""),
        (with("runs = 4", "runs = 4.5"), 4, 8, "expected a number of blocks, or \"until decided\""),
        (with("runs = 4", "runs = -1"), 4, 8, "expected a number of blocks, or \"until decided\""),
        (with("runs = 4", "runs = = 4"), 4, 8, ""),
        (with("\"Impact of a patch on forwarding\"", "\" \""), 2, 9, "title is empty"),
        (with("[\"2 static routes\"]", "[\"two\\nlines\"]"), 3, 15, "one line of text"),
        (with("[{ name = \"inet\", title = \"IPv4\" }, \"inet6\"]", "[]"), 6, 12, "no families"),
        (with("\"inet6\"", "\"inet\""), 6, 48, "a second time"),
        (with("\"inet6\"", "\"inet/6\""), 6, 48, "cannot be a name"),
        (with("\"inet6\"", "7"), 6, 48, "expected a name such as"),
        (with("\"IPv4\" }", "\"IPv4\", at = 1 }"), 6, 51, "a position needs an axis"),
        (with("label = \"r368766\"\n", "label = \"r368766\"\nat = 1\n"), 13, 6, "a position needs an axis"),
        (analysis("axis = \"Rules\"").replacen("\"IPv4\" }", "\"IPv4\", at = 0 }", 1), 6, 51, "logarithmic"),
        (
            with("label = \"r368766\"\n", "label = \"r368766\"\ncurve = \"a\"\n"),
            13,
            9,
            "a point of a curve has both",
        ),
        (with("title = \"IPv4\"", "titel = \"IPv4\""), 6, 30, "unknown field `titel`"),
        (with("warmup_s = 0.005", "warmup_s = -0.5"), 7, 23, "warmup_s = -0.5 is not a duration"),
        (with("measure_s = 0.01", "measure_s = nan"), 7, 42, "measure_s = NaN is not a duration"),
        (with("measure_s = 0.01", "measure_s = 0.0"), 7, 42, "must be above zero"),
        (with("measure_s = 0.01", "measure_s = 0.01, slice_ms = 11.0"), 7, 59, "a slice is at least"),
        (with("measure_s = 0.01", "measure_s = 0.01, slice_ms = 0.0"), 7, 59, "leave slice_ms out"),
        (
            with("measure_s = 0.01", "measure_s = 0.01, sample_ms = 10"),
            7,
            48,
            "A panel has turns in place of samples",
        ),
        (with("measure_s = 0.01", "measure_s = 0.01, drain_ms = 10"), 7, 48, "drain_ms changed nothing"),
        (with("rate = 1000000.0", "rat = 1000000.0"), 8, 13, "unknown field `rat`"),
        (with("name = \"after\"", "name = \"before\""), 15, 8, "a second time"),
        (with("name = \"after\"", "name = \"../after\""), 15, 8, "cannot be a name"),
        (with("label = \"r368766\"", "label = \"\""), 12, 9, "text is empty"),
        (analysis("baseline = \"middle\""), 19, 12, "no variant \"middle\": name one of before, after"),
        (analysis("first_look = 0"), 19, 14, "first_look must be from 1"),
        (analysis("first_look = 5"), 19, 14, "first_look is more than all blocks"),
        (analysis("max_blocks = 0"), 19, 14, "max_blocks must be from 1"),
        (analysis("max_minutes = 0"), 19, 15, "max_minutes must be above 0"),
        (analysis("max_minutes = inf"), 19, 15, "at most a year"),
        (published("variant = \"middle\""), 23, 11, "no variant \"middle\""),
        (published("family = \"inet5\""), 22, 10, "no such family"),
        (published("rate = 0.0"), 25, 8, "a rate is above 0"),
        (published("difference = -1.0"), 26, 14, "0.21 is +21 %"),
        (published("source = \"\""), 19, 10, "text is empty"),
        (
            with("label = \"r368766 with", "model_of = \"D27401\"\nlabel = \"r368766 with"),
            17,
            9,
            "must say \"model of\"",
        ),
        (with("label = \"r368766 with the patch\"", ""), 14, 1, "text is empty"),
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
    experiment.runs = Runs::Blocks(0);
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
