//! What is made of results folders: comparisons of two, the noise floor, and plans that follow from it.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::support::{Ran, SMALL, run_in};

fn folder(experiment: &str) -> TempDir {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("small.toml"), experiment).unwrap();
    dir
}

/// Runs a command that has to succeed.
fn done(dir: &Path, arguments: &[&str]) -> Ran {
    let ran = run_in(dir, arguments);
    assert_eq!(ran.code, 0, "{arguments:?}: {}{}", ran.out, ran.err);
    ran
}

fn json(ran: &Ran) -> serde_json::Value {
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}", ran.out))
}

/// Checks that two folders are refused as bad input.
fn refused(dir: &Path, [before, after]: [&str; 2], words: &[&str]) {
    let ran = run_in(dir, &["compare", before, after]);
    assert_eq!(ran.code, 2, "{}{}", ran.out, ran.err);
    words.iter().for_each(|word| assert!(ran.err.contains(word), "{word:?} is missing in: {}", ran.err));
}

#[test]
fn two_folders_are_compared_with_the_reasons_why_that_is_weaker() {
    let dir = folder(SMALL);
    done(dir.path(), &["bench", "small.toml", "--out", "before"]);
    done(dir.path(), &["bench", "small.toml", "--out", "after", "--seed", "2"]);
    let compared = done(dir.path(), &["compare", "before", "after"]);
    for words in
        ["This is weaker", "different times", "no round in common", "radix, IPv4: ", "the rate before"]
    {
        assert!(compared.out.contains(words), "{words:?} is missing in: {}", compared.out);
    }
    let compared = json(&done(dir.path(), &["compare", "before", "after", "--json"]));
    assert_eq!(compared["cells"].as_array().unwrap().len(), 4);
    assert_eq!(compared["cells"][0]["blocks"], serde_json::json!([3, 3]));
    assert!(compared["cells"][0]["whole"]["estimate"].is_number(), "{compared}");
}

#[test]
fn folders_that_answer_other_questions_are_not_compared() {
    let dir = folder(&SMALL.replace("runs = 3", "runs = 1"));
    done(dir.path(), &["bench", "small.toml", "--smoke", "--out", "one"]);
    let metric = SMALL.replace("runs = 3", "runs = 1") + "[analysis]\nmetric = \"packets-per-hour\"\n";
    fs::write(dir.path().join("hour.toml"), metric).unwrap();
    done(dir.path(), &["bench", "hour.toml", "--smoke", "--out", "hour"]);
    refused(dir.path(), ["one", "hour"], &["count different things", "packets-per-hour"]);
    fs::write(dir.path().join("flows.toml"), SMALL.replace("flows = 200", "flows = 100")).unwrap();
    done(dir.path(), &["bench", "flows.toml", "--smoke", "--out", "flows"]);
    refused(dir.path(), ["one", "flows"], &["radix has other settings", "traffic.flows: 200 → 100"]);
    refused(dir.path(), ["one", "no-such-folder"], &["no-such-folder/campaign.toml", "cannot read"]);
    refused(dir.path(), ["small.toml", "one"], &["small.toml/campaign.toml", "cannot read"]);
    let unjudged = run_in(dir.path(), &["compare", "one", "one"]);
    assert_eq!(unjudged.code, 3, "{}", unjudged.out);
    assert!(unjudged.out.contains("not judged, with 1 valid blocks before and 1 after"), "{}", unjudged.out);
}

#[test]
fn the_noise_floor_is_measured_by_copies_and_a_plan_uses_it() {
    let dir = folder(SMALL);
    let ran = run_in(dir.path(), &["aa", "small.toml", "--blocks", "3", "--copies", "2", "--json"]);
    assert!([0, 5].contains(&ran.code), "{}", ran.err);
    let floor = json(&ran);
    assert_eq!(floor["untrusted"], ran.code == 5);
    assert_eq!((&floor["noise"]["blocks"], &floor["noise"]["of_copies"]), (&3.into(), &true.into()));
    assert_eq!(
        (&floor["comparisons"], &floor["noise"]["families"][1]["slice_us"]),
        (&2.into(), &1000.0.into())
    );
    let shown: Vec<&serde_json::Value> =
        floor["blocks"].as_array().unwrap().iter().map(|look| &look["blocks"]).collect();
    assert_eq!(shown, [5, 10, 20, 40]);
    assert!(floor["blocks"][0]["families"][0]["half_width"].as_f64().unwrap() > 0.0, "{floor}");
    let plan = done(dir.path(), &["plan", "small.toml", "--runs", "until-decided", "--minutes", "5"]);
    for words in
        ["4 cells (2 variants, 2 families), 2 comparisons", "noise: from results/small-aa", "5 minutes"]
    {
        assert!(plan.out.contains(words), "{words:?} is missing in: {}", plan.out);
    }
    fs::write(dir.path().join("other.toml"), SMALL.replace("flows = 200", "flows = 100")).unwrap();
    let other = run_in(dir.path(), &["plan", "other.toml", "--noise", "results/small-aa"]);
    assert!(other.code == 2 && other.err.contains("traffic.flows: 200 → 100"), "{}", other.err);
}

#[test]
fn the_noise_floor_is_printed_for_people_too() {
    let dir = folder(SMALL);
    let floor = done(dir.path(), &["aa", "small.toml", "--smoke", "--out", "floor"]);
    for words in ["copies of radix", "IPv6: turns of 1 ms", "of the rounds are left out", "half-width"] {
        assert!(floor.out.contains(words), "{words:?} is missing in: {}", floor.out);
    }
    let again = run_in(dir.path(), &["aa", "small.toml", "--smoke", "--out", "floor"]);
    assert!(again.code == 2 && again.err.contains("already contains a campaign"), "{}", again.err);
}

#[test]
fn files_that_are_not_results_are_never_replaced() {
    let dir = folder(SMALL);
    fs::write(dir.path().join("README.md"), "precious").unwrap();
    let mut commands = vec![vec!["bench", "small.toml"], vec!["aa", "small.toml"]];
    if cfg!(feature = "bpf") {
        commands.push(vec!["rates", "--devices", "kernel"]);
    }
    for (command, force) in commands.into_iter().flat_map(|one| [(one.clone(), false), (one, true)]) {
        let force: &[&str] = if force { &["--force"] } else { &[] };
        let ran = run_in(dir.path(), &[&command[..], &["--out", "."], force].concat());
        assert_eq!(ran.code, 2, "{command:?}: {}", ran.err);
        assert!(ran.err.contains("README.md is not a file of"), "{command:?}: {}", ran.err);
        assert!(ran.err.contains("choose another folder with --out"), "{command:?}: {}", ran.err);
    }
    assert_eq!(fs::read_to_string(dir.path().join("README.md")).unwrap(), "precious");
}

#[test]
fn a_plan_says_where_its_noise_comes_from() {
    let dir = folder(SMALL);
    let size = done(dir.path(), &["plan", "small.toml", "--no-pilot"]);
    assert!(size.out.contains("noise: not known"), "{}", size.out);
    let pilot = json(&done(dir.path(), &["plan", "small.toml", "--json"]));
    assert_eq!(pilot["noise_from"]["pilot"]["blocks"], 3);
    assert_eq!((&pilot["plan"]["arms"], &pilot["plan"]["looks"][0]["blocks"]), (&4.into(), &3.into()));
    assert!(!dir.path().join("results").exists(), "a pilot leaves nothing");
    let none = run_in(dir.path(), &["plan", "small.toml", "--noise", "no-such-folder"]);
    assert!(none.code == 2 && none.err.contains("no-such-folder"), "{}: {}", none.code, none.err);
}

#[test]
fn flags_of_the_length_are_checked_like_the_file() {
    let dir = folder(SMALL);
    for (flag, value, words) in [
        ("--runs", "soon", "give a number of blocks, or until-decided"),
        ("--runs", "0", "runs must be from 1 to 100000"),
        ("--minutes", "0", "max_minutes must be above 0"),
        ("--slice-ms", "0", "a slice is at least 0.001 milliseconds"),
        ("--slice-ms", "1000", "not longer than the measurement"),
        ("--seconds", "0", "measure_s must be above zero"),
        ("--seconds", "nan", "not a duration"),
        ("--seconds", "1e300", "measure_s = 1e300 is"),
    ] {
        let ran = run_in(dir.path(), &["bench", "small.toml", flag, value]);
        let said = ran.err.contains(flag) && ran.err.contains(words);
        assert!(ran.code == 2 && said && !ran.err.contains("small.toml:"), "{flag} {value}: {}", ran.err);
    }
    assert!(!dir.path().join("results").exists());
}
