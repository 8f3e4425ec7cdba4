//! The report of fixed runs: the whole text against a golden file, and its texts for incomplete campaigns.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops where it cannot go on"
)]

mod mock;

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use fullview_lab::stats::Verdict;
use fullview_lab::{Archive, Opening, Report, ReportStatus, report, run};
use mock::bench::{MockBench, ProgressLog};
use mock::experiment::{EXPERIMENT, parse};

/// The provenance that replaces that of the machine running the test.
const HOST: &str = r#"{
  "started": "2026-11-21T08:00:00Z",
  "command": ["fullview", "bench", "an experiment.toml", "--label", "x"],
  "build": { "version": "0.1.0", "rustc": "rustc 1.95.0", "commit": "0123456789ab", "debug": false },
  "host": { "cpu": "Some CPU", "cores": 2, "threads": 4, "kernel": "Linux 6.1.0", "memory_bytes": 17179869184,
            "caches": ["L1d 32K"], "virtual_machine": true, "load": [0.1, 0.2, 0.3] },
  "conditions": ["a mock", "5000 flows"]
}"#;

fn measured(text: &str, folder: &Path, mock: &mut MockBench) {
    let experiment = parse(text);
    let mut archive = Archive::open(folder, &experiment, Opening::New).unwrap();
    run(&experiment, &mut archive, mock, &mut ProgressLog::default(), &AtomicBool::new(false)).unwrap();
    fs::write(folder.join("host.json"), HOST).unwrap();
}

fn report_of(text: &str) -> Report {
    let folder = tempfile::tempdir().unwrap();
    measured(text, folder.path(), &mut MockBench::default());
    report(folder.path()).unwrap()
}

#[test]
fn the_report_equals_the_golden_file() {
    let text =
        EXPERIMENT.replace("subject = {", "subject = { invalid_runs = 2,").replace("runs = 4", "runs = 5");
    let made = report_of(&text);
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/README.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&golden, made.readme()).unwrap();
    }
    assert_eq!(made.readme(), fs::read_to_string(golden).unwrap());
}

#[test]
fn the_same_folder_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    measured(EXPERIMENT, folder.path(), &mut MockBench::default());
    let first = report(folder.path()).unwrap();
    first.write(folder.path()).unwrap();
    assert_eq!(report(folder.path()).unwrap(), first);
    for name in ["README.md", "graph.svg", "graph.png", "report.json"] {
        assert!(folder.path().join(name).metadata().unwrap().len() > 500, "{name}");
    }
    assert!(fs::read(folder.path().join("graph.png")).unwrap().starts_with(b"\x89PNG\r\n"));
}

#[test]
fn the_terminal_gets_one_line_per_comparison() {
    let made = report_of(EXPERIMENT);
    assert_eq!(made.verdicts(), [Some(Verdict::Better), Some(Verdict::Better)]);
    let lines = made.verdict_lines();
    assert_eq!(lines.len(), 2);
    assert!(
        lines[0].starts_with("IPv4: r368766 with the patch against r368766: better, +5."),
        "{}",
        lines[0]
    );
}

#[test]
fn the_json_contains_the_same_figures() {
    let json: serde_json::Value = serde_json::from_str(report_of(EXPERIMENT).json()).unwrap();
    assert_eq!(json["cells"].as_array().unwrap().len(), 4);
    assert_eq!(json["comparisons"][0]["verdict"], "better");
    assert_eq!(json["cells"][0]["values"].as_array().unwrap().len(), 4);
}

#[test]
fn too_few_valid_runs_are_reported_and_not_judged() {
    let made = report_of(&EXPERIMENT.replace("runs = 4", "runs = 2"));
    assert!(
        made.verdict_lines()[0]
            .contains("not judged: r368766 with the patch has 2 valid runs, and at least 3 are needed")
    );
    assert!(
        made.readme()
            .contains("r368766 is not in this block: it has 2 valid runs, and at least 3 are needed.")
    );
}

#[test]
fn a_campaign_without_a_valid_run_has_a_report() {
    let patient = EXPERIMENT.to_owned() + "[analysis]\nmax_repeats = 100\n";
    let made = report_of(&patient.replace("subject = {", "subject = { invalid_runs = 1000,"));
    assert!(made.readme().contains("12 × generator limited"));
    assert!(made.verdict_lines()[0].contains("has 0 valid runs"));
}

#[test]
fn a_campaign_has_a_status() {
    assert_eq!(report_of(EXPERIMENT).status(), ReportStatus::Ok);
    assert_eq!(report_of(&EXPERIMENT.replace("1050000.0", "950000.0")).status(), ReportStatus::Worse);
    assert_eq!(report_of(&EXPERIMENT.replace("runs = 4", "runs = 1")).status(), ReportStatus::Incomplete);
    let unmeasured = EXPERIMENT.replace("subject = {", "subject = { invalid_runs = 1000,");
    assert_eq!(report_of(&unmeasured).status(), ReportStatus::Incomplete);
}

#[test]
fn the_graph_names_the_number_of_valid_runs() {
    let folder = tempfile::tempdir().unwrap();
    let text =
        EXPERIMENT.replace("subject = {", "subject = { invalid_runs = 3,") + "[analysis]\nretries = 0\n";
    measured(&text, folder.path(), &mut MockBench::default());
    report(folder.path()).unwrap().write(folder.path()).unwrap();
    let svg = fs::read_to_string(folder.path().join("graph.svg")).unwrap();
    assert!(svg.contains("minimum, median, maximum of 3 to 4 runs"));
}

#[test]
fn the_settings_of_a_variant_are_among_the_conditions() {
    let readme = report_of(&EXPERIMENT.replace("rate = 1050000.0", "rate = 1050000.0, wrong = false"))
        .readme()
        .to_owned();
    let lines = "  - what each variant changes:\n    - r368766: nothing\n    \
                 - r368766 with the patch: rate = 1050000.0, wrong = false\n";
    assert!(readme.contains(lines), "{readme}");
    assert!(!report_of(&EXPERIMENT.replace("set = {", "# {")).readme().contains("what each variant changes"));
}

/// If one of the variants has no valid run in one block, the runs are no longer paired.
#[test]
fn only_complete_blocks_are_judged_as_pairs() {
    let tests = |report: &Report| -> Vec<String> {
        let json: serde_json::Value = serde_json::from_str(report.json()).unwrap();
        let comparisons = json["comparisons"].as_array().unwrap();
        comparisons.iter().map(|one| one["test"].as_str().unwrap().to_owned()).collect()
    };
    let whole = report_of(EXPERIMENT);
    assert_eq!(tests(&whole), ["paired", "paired"]);
    assert!(whole.verdict_lines()[0].ends_with("; paired)"), "{:?}", whole.verdict_lines());
    let incomplete =
        EXPERIMENT.replace("subject = {", "subject = { invalid_runs = 1,") + "[analysis]\nretries = 0\n";
    let incomplete = report_of(&incomplete);
    assert_eq!(tests(&incomplete).iter().filter(|test| *test == "independent").count(), 1);
    assert!(incomplete.readme().contains("| Welch "));
}

#[test]
fn rates_of_zero_are_described_and_not_judged() {
    let made = report_of(&EXPERIMENT.replace("1050000.0", "0.0"));
    assert!(
        made.verdict_lines()[0].contains("a run has the value zero, so there is no ratio"),
        "{:?}",
        made.verdict_lines()
    );
}

#[test]
fn one_variant_alone_is_reported_without_verdicts() {
    let (alone, _) = EXPERIMENT.rsplit_once("[[variants]]").unwrap();
    let made = report_of(alone);
    assert!(made.verdict_lines().is_empty());
    assert!(made.readme().contains("No variants are compared."));
}

#[test]
fn more_variants_than_ministat_has_symbols_fill_several_blocks() {
    let more: String = (0..8)
        .map(|number| format!("[[variants]]\nname = \"v{number}\"\nlabel = \"variant {number}\"\n"))
        .collect();
    let made = report_of(&(EXPERIMENT.to_owned() + &more));
    assert_eq!(made.readme().matches("\nx r368766: inet packets-per-second forwarded\n").count(), 2);
    assert!(made.readme().contains("variant 7: inet6 packets-per-second forwarded\n"));
}

#[test]
fn a_run_of_an_unknown_variant_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    measured(EXPERIMENT, folder.path(), &mut MockBench::default());
    let runs = folder.path().join("runs.jsonl");
    let text = fs::read_to_string(&runs).unwrap().replacen("\"before\"", "\"unknown\"", 1);
    fs::write(&runs, text).unwrap();
    let error = report(folder.path()).unwrap_err().to_string();
    assert!(error.contains("runs.jsonl: block 0 has a run of unknown"), "{error}");
}

#[test]
fn an_incomplete_line_has_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    measured(EXPERIMENT, folder.path(), &mut MockBench::default());
    let runs = folder.path().join("runs.jsonl");
    let whole = fs::read(&runs).unwrap();
    fs::write(&runs, &whole[..whole.len() - 9]).unwrap();
    assert!(report(folder.path()).unwrap().readme().contains("line 16 of runs.jsonl is incomplete"));
}
