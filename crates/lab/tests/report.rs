//! The report of fixed campaigns: the whole text against a golden file, and its texts for campaigns that are incomplete,
//! disturbed or old.

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
use fullview_lab::{Archive, LabError, Opening, Report, ReportStatus, report, run};
use mock::bench::{Machine, MockBench, ProgressLog};
use mock::experiment::{EXPERIMENT, parse};

const OK: ReportStatus = ReportStatus {
    untrusted: false,
    trust_unknown: false,
    misrouted: false,
    incomplete: false,
    worse: false,
};
const INCOMPLETE: ReportStatus = ReportStatus { incomplete: true, ..OK };
const UNTRUSTED: ReportStatus = ReportStatus { untrusted: true, ..OK };
const WORSE: ReportStatus = ReportStatus { worse: true, ..OK };

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
    drop(archive);
    fs::write(folder.join("host.json"), HOST).unwrap();
    set_times(&folder.join("panels.jsonl"));
}

/// Makes the times of the panels those of every machine: each took ten seconds.
fn set_times(journal: &Path) {
    let text = fs::read_to_string(journal).unwrap();
    let line = |line: &str| {
        let mut record: serde_json::Value = serde_json::from_str(line).unwrap();
        record["seconds"] = 10.0.into();
        record["started"] = "2026-11-21T08:00:00Z".into();
        record.to_string() + "\n"
    };
    fs::write(journal, text.lines().map(line).collect::<String>()).unwrap();
}

fn report_with(text: &str, machine: Machine) -> Report {
    let folder = tempfile::tempdir().unwrap();
    measured(text, folder.path(), &mut MockBench { machine, ..MockBench::default() });
    report(folder.path()).unwrap()
}

fn report_of(text: &str) -> Report {
    report_with(text, Machine::default())
}

fn json_of(report: &Report) -> serde_json::Value {
    serde_json::from_str(report.json()).unwrap()
}

fn with_settings(settings: &str) -> String {
    EXPERIMENT.replace("subject = {", &format!("subject = {{ {settings},"))
}

/// The experiment whose second variant has this rate.
fn with_rate(rate: f64) -> String {
    EXPERIMENT.replace("1050000.0", &format!("{rate:.1}"))
}

fn compare_with_golden(name: &str, made: &Report) {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&golden, made.readme()).unwrap();
    }
    let expected = fs::read_to_string(golden).unwrap();
    let mut lines = made.readme().lines().zip(expected.lines()).enumerate();
    if let Some((number, (made, expected))) = lines.find(|(_, (made, expected))| made != expected) {
        panic!("{name}:{}: made\n{made}\nand expected\n{expected}", number + 1);
    }
    assert_eq!(made.readme().len(), expected.len());
}

fn has_warning(report: &Report, words: &str) -> bool {
    report.warnings().iter().any(|line| line.contains(words))
}

#[test]
fn the_report_equals_the_golden_file() {
    let published = "\n[published]\nsource = \"others, on 16 cores\"\ncomparable = \"Only the order is.\"\n\
                     [[published.figures]]\nfamily = \"inet\"\nvariant = \"after\"\nagainst = \"before\"\n\
                     rate = 28.2e6\nagainst_rate = 22.5e6\ndifference = 0.21\n";
    let text = with_settings("invalid_panels = 1").replace("runs = 4", "runs = 5") + published;
    compare_with_golden("README.md", &report_of(&text));
}

#[test]
fn a_published_difference_that_was_not_proven_is_marked() {
    let published = "\n[published]\nsource = \"others\"\ncomparable = \"Only the order is.\"\n[[published.figures]]\n\
                     family = \"inet\"\nvariant = \"after\"\nagainst = \"before\"\nrate = 99e6\nagainst_rate = 100e6\n\
                     proven = false\n";
    let page = report_of(&(EXPERIMENT.to_owned() + published)).readme().to_owned();
    assert!(page.contains("| -1.00 %, no difference proven |"), "{page}");
}

/// An archive of whole runs that version 0.1 wrote.
#[test]
fn the_report_of_an_old_archive_equals_its_golden_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(OLD);
    let made = report(&folder).unwrap();
    compare_with_golden("schema-1.md", &made);
    assert_eq!(made.verdicts(), [Some(Verdict::Better), Some(Verdict::Better)]);
    assert_eq!(made.status(), OK);
    assert!(made.verdict_lines()[0].starts_with("after forwards 5.15 % more IPv4 packets than before ("));
    assert_eq!(json_of(&made)["copies"].as_array().unwrap().len(), 0);
}

/// The report of the old archive after a change to its records.
fn old_report(change: impl Fn(usize, &mut serde_json::Value)) -> Result<Report, LabError> {
    let (folder, source) = (tempfile::tempdir().unwrap(), Path::new(env!("CARGO_MANIFEST_DIR")).join(OLD));
    for name in ["campaign.toml", "host.json", "runs.jsonl"] {
        fs::copy(source.join(name), folder.path().join(name)).unwrap();
    }
    let text = fs::read_to_string(source.join("runs.jsonl")).unwrap();
    let line = |(number, line): (usize, &str)| {
        let mut record: serde_json::Value = serde_json::from_str(line).unwrap();
        change(number, &mut record);
        record.to_string() + "\n"
    };
    let changed: String = text.lines().enumerate().map(line).collect();
    fs::write(folder.path().join("runs.jsonl"), changed).unwrap();
    report(folder.path())
}

const OLD: &str = "tests/data/schema-1";

fn is_of(record: &serde_json::Value, variant: &str, family: &str) -> bool {
    record["variant"] == variant && record["family"] == family
}

/// If one of the variants has no valid run in one block, the runs are not paired.
#[test]
fn only_complete_blocks_of_whole_runs_are_judged_as_pairs() {
    let tests = |report: &Report| -> Vec<String> {
        let comparisons = json_of(report)["comparisons"].as_array().unwrap().clone();
        comparisons.iter().map(|one| one["test"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(tests(&old_report(|_, _| {}).unwrap()), ["paired", "paired"]);
    let incomplete = old_report(|_, record| {
        if is_of(record, "after", "inet") && record["block"] == 2 {
            record["validity"] = serde_json::json!(["drift"]);
        }
    });
    let incomplete = incomplete.unwrap();
    assert_eq!(tests(&incomplete), ["independent", "paired"]);
    assert!(incomplete.readme().contains("| Welch "));
    assert!(has_warning(&incomplete, "1 of the 20 planned runs have no valid result, in 1 cell"));
}

#[test]
fn whole_runs_that_are_too_few_or_zero_are_not_judged() {
    let few = old_report(|_, record| {
        if is_of(record, "after", "inet") && record["block"].as_u64() > Some(1) {
            record["validity"] = serde_json::json!(["drift"]);
        }
    });
    let few = few.unwrap();
    let words = "not judged: r368766 with the patch has 2 valid runs, and at least 3 are needed";
    assert!(few.verdict_lines()[0].contains(words), "{:?}", few.verdict_lines());
    assert_eq!(few.status(), INCOMPLETE);
    let zero = old_report(|_, record| {
        if is_of(record, "after", "inet") {
            record["value"] = 0.0.into();
        }
    });
    let words = "a run has the value zero, so there is no ratio";
    assert!(zero.unwrap().verdict_lines().iter().any(|line| line.contains(words)));
}

#[test]
fn a_run_of_an_unknown_variant_is_an_error() {
    let error = old_report(|number, record| {
        if number == 0 {
            record["variant"] = "unknown".into();
        }
    });
    let error = error.unwrap_err().to_string();
    assert!(error.contains("runs.jsonl: block 0 has a run of unknown"), "{error}");
}

#[test]
fn the_same_folder_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    measured(EXPERIMENT, folder.path(), &mut MockBench::default());
    let first = report(folder.path()).unwrap();
    first.write(folder.path()).unwrap();
    assert_eq!(report(folder.path()).unwrap(), first);
    for name in ["README.md", "graph.svg", "graph.png", "ratios.svg", "ratios.png", "report.json"] {
        assert!(folder.path().join(name).metadata().unwrap().len() > 500, "{name}");
    }
    assert!(fs::read(folder.path().join("graph.png")).unwrap().starts_with(b"\x89PNG\r\n"));
}

/// Variants are points of a curve for each family, and families are points of a curve for each variant.
#[test]
fn an_experiment_with_an_axis_has_a_graph_of_curves() {
    let of_variants = EXPERIMENT
        .replace("label = \"r368766\"\n", "label = \"r368766\"\ncurve = \"patched\"\nat = 10\n")
        .replace("set =", "curve = \"patched\"\nat = 1000\nset =");
    let of_families = EXPERIMENT.replace("title = \"IPv4\" }", "title = \"IPv4\", at = 64 }");
    let cases = [
        (of_variants, ["patched, IPv4", "patched, inet6", "1k"]),
        (of_families, ["r368766 with the patch", "r368766", "64"]),
    ];
    for (text, words) in cases {
        let folder = tempfile::tempdir().unwrap();
        measured(&format!("{text}[analysis]\naxis = \"Rules\"\n"), folder.path(), &mut MockBench::default());
        report(folder.path()).unwrap().write(folder.path()).unwrap();
        let svg = fs::read_to_string(folder.path().join("curves.svg")).unwrap();
        words.into_iter().chain(["Rules"]).for_each(|word| assert!(svg.contains(word), "{word}"));
        assert!(fs::read(folder.path().join("curves.png")).unwrap().starts_with(b"\x89PNG\r\n"));
        assert!(fs::read_to_string(folder.path().join("README.md")).unwrap().contains("(curves.png)"));
    }
}

/// No variant and no family has a place on the axis.
#[test]
fn an_axis_without_a_point_has_no_second_graph() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("{EXPERIMENT}[analysis]\naxis = \"Rules\"\n");
    measured(&text, folder.path(), &mut MockBench::default());
    let names = ["curves.svg", "curves.png"].map(|name| folder.path().join(name));
    names.iter().for_each(|name| fs::write(name, "of an earlier report").unwrap());
    report(folder.path()).unwrap().write(folder.path()).unwrap();
    assert!(!fs::read_to_string(folder.path().join("README.md")).unwrap().contains("curves.png"));
    names.iter().for_each(|name| assert!(!name.exists(), "{}", name.display()));
}

#[test]
fn the_ratios_have_a_graph() {
    let folder = tempfile::tempdir().unwrap();
    measured(EXPERIMENT, folder.path(), &mut MockBench::default());
    report(folder.path()).unwrap().write(folder.path()).unwrap();
    let svg = fs::read_to_string(folder.path().join("ratios.svg")).unwrap();
    let texts =
        ["r368766 with the patch", "better", "multiple of r368766", "within the margin of ±1 %", "inet6"];
    texts.iter().for_each(|text| assert!(svg.contains(text), "{text}"));
    let two_sets = "with a probability of 95 %, and so do those of the share";
    let text = svg.split('<').filter_map(|tag| tag.split_once('>')).map(|(_, text)| text.trim());
    let text = text.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ");
    assert!(text.contains(two_sets), "{text}");
    assert_eq!(svg.matches(" ×\n").count(), 2, "one ratio in each family: {svg}");
    assert!(!svg.contains("against") && !svg.contains("undecided"));
    assert!(fs::read_to_string(folder.path().join("README.md")).unwrap().contains("(ratios.png)"));
}

#[test]
fn a_report_without_a_judged_comparison_has_no_graph_of_ratios() {
    let folder = tempfile::tempdir().unwrap();
    measured(&EXPERIMENT.replace("runs = 4", "runs = 1"), folder.path(), &mut MockBench::default());
    let names = ["ratios.svg", "ratios.png"].map(|name| folder.path().join(name));
    names.iter().for_each(|name| fs::write(name, "of an earlier report").unwrap());
    report(folder.path()).unwrap().write(folder.path()).unwrap();
    assert!(!fs::read_to_string(folder.path().join("README.md")).unwrap().contains("ratios.png"));
    names.iter().for_each(|name| assert!(!name.exists(), "{}", name.display()));
}

/// In one family the variant has a rate of zero in a block.
#[test]
fn a_comparison_that_was_not_judged_has_no_row() {
    let folder = tempfile::tempdir().unwrap();
    let text = EXPERIMENT.replace("set = {", "set = { stalls_in = 2,");
    measured(&text, folder.path(), &mut MockBench::default());
    report(folder.path()).unwrap().write(folder.path()).unwrap();
    let svg = fs::read_to_string(folder.path().join("ratios.svg")).unwrap();
    assert_eq!(svg.matches(" ×\n").count(), 1, "{svg}");
}

#[test]
fn the_answer_is_one_sentence_per_comparison_and_the_report_begins_with_it() {
    let made = report_of(EXPERIMENT);
    assert_eq!(made.verdicts(), [Some(Verdict::Better), Some(Verdict::Better)]);
    let lines = made.verdict_lines();
    assert_eq!(lines.len(), 2);
    assert!(
        lines[0].starts_with("after forwards 4.9") || lines[0].starts_with("after forwards 5.0"),
        "{lines:?}"
    );
    assert!(lines[0].contains(" % more IPv4 packets than before (4."), "{lines:?}");
    assert!(lines[1].contains(" % more inet6 packets than before ("), "{lines:?}");
    assert!(made.readme().starts_with(&format!("  - {}\n  - {}\n\nImpact of a patch", lines[0], lines[1])));
    assert_eq!(json_of(&made)["answer"][0], lines[0].as_str());
}

/// The bench makes the members, and so their beds, in an order that differs from panel to panel.
#[test]
fn the_machine_is_judged_by_the_bed_of_the_baseline_in_every_panel() {
    let text = EXPERIMENT.replace("runs = 4", "runs = 12");
    let text = text.replace("{ rate = 1050000.0 }", "{ rate = 1050000.0, bed = 2.0 }");
    let folder = tempfile::tempdir().unwrap();
    measured(&text, folder.path(), &mut MockBench::default());
    let made = report(folder.path()).unwrap();
    let json = json_of(&made);
    let panels = json["machine"][0]["panels"].as_array().unwrap();
    assert_eq!(panels.len(), 12);
    for panel in panels {
        let factor = panel["factor"].as_f64().unwrap();
        assert!((0.8..1.25).contains(&factor), "another bed has twice the rate: {panels:?}");
    }
    let beds = fullview_lab::beds::differences(folder.path()).unwrap();
    assert_eq!(beds.len(), 2, "one for each family: {beds:?}");
    assert!(beds.iter().all(|bed| (0.99..1.01).contains(&bed.effect.estimate)), "{beds:?}");
}

#[test]
fn the_best_variant_comes_first() {
    let more = "[[variants]]\nname = \"fast\"\nlabel = \"fast\"\nset = { rate = 3000000.0 }\n\
                [[variants]]\nname = \"slow\"\nlabel = \"slow\"\nset = { rate = 500000.0 }\n\
                [[variants]]\nname = \"absent\"\nlabel = \"absent\"\nset = { refuses = true }\n";
    let made = report_of(&(EXPERIMENT.to_owned() + more));
    let lines = made.verdict_lines();
    let begins = |line: usize, words: &str| assert!(lines[line].starts_with(words), "{lines:?}");
    begins(0, "fast forwards 3.00 × as many IPv4 packets as before (2.9");
    begins(1, "after forwards ");
    begins(2, "slow forwards 0.50");
    assert!(lines[2].contains(" × as many IPv4 packets as before (0."), "{lines:?}");
    begins(3, "absent against before, IPv4 packets: not judged: absent took no turns (refused)");
    begins(4, "fast forwards 3.00 × as many inet6 packets as before (");
    assert_eq!(made.status(), ReportStatus { worse: true, ..INCOMPLETE });
    assert!(made.readme().contains("absent: took no turns (refused in 4 of 4 panels)"));
    assert!(made.overview(&[]).unwrap().contains("[1] it has no such table"));
}

/// The panel is made again, and what counts says that it is faster.
#[test]
fn a_variant_whose_output_was_wrong_once_is_no_faster_one() {
    let made = report_of(&EXPERIMENT.replace("1050000.0", "1050000.0, misroutes_in = 3"));
    assert_eq!(made.verdicts(), [Some(Verdict::Better); 2]);
    assert_eq!(made.status(), ReportStatus { misrouted: true, ..OK });
    let said = "The output of after was wrong in 1 of 5 times that it was measured (";
    assert!(made.verdict_lines()[0].starts_with(said), "{:?}", made.verdict_lines());
    assert!(made.readme().starts_with(&format!("**{said}")), "{}", made.readme());
    assert!(json_of(&made)["misrouted"][0].as_str().unwrap().starts_with(said));
}

#[test]
fn fewer_packets_are_said_with_a_range_in_the_same_order() {
    let line = report_of(&with_rate(950_000.0)).verdict_lines()[0].clone();
    let (said, range) = line.split_once(" % fewer IPv4 packets than before (").unwrap();
    let percent: f64 = said.strip_prefix("after forwards ").unwrap().parse().unwrap();
    let (low, high) = range.strip_suffix(" %)").unwrap().split_once('–').unwrap();
    let (low, high): (f64, f64) = (low.parse().unwrap(), high.parse().unwrap());
    assert!(low < percent && percent < high && (4.5..5.5).contains(&percent), "{line}");
}

#[test]
fn equal_variants_are_said_to_be_equal_within_the_margin() {
    let made = report_of(&with_rate(1_000_000.0));
    assert_eq!(made.verdicts()[0], Some(Verdict::Equivalent));
    let line = &made.verdict_lines()[0];
    assert!(line.starts_with("after forwards as many IPv4 packets as before, to within 1 % ("), "{line}");
}

#[test]
fn what_is_undecided_has_advice_in_blocks_and_minutes() {
    let made = report_of(&with_rate(1_010_050.0));
    assert_eq!(made.verdicts()[0], Some(Verdict::Undecided));
    let line = &made.verdict_lines()[0];
    let words =
        "after forwards more IPv4 packets than before, but whether by more than 1 % is undecided (+0.";
    assert!(line.starts_with(words), "{line}");
    // Two families of ten seconds each: the next look is one block away.
    assert!(line.contains("): 1 more block (20 seconds) to tell apart a difference of 1."), "{line}");
    let advice = &json_of(&made)["comparisons"][0]["advice"];
    assert_eq!((advice["blocks"].as_u64(), advice["seconds"].as_f64()), (Some(1), Some(20.0)));
    assert_eq!(made.status(), OK);
}

#[test]
fn a_direction_that_no_interval_shows_is_undecided() {
    let text = with_rate(1_000_000.0) + "[analysis]\nmargin = 0.0\n";
    let line = report_of(&text).verdict_lines()[0].clone();
    let words = "whether after forwards more or fewer IPv4 packets than before is undecided (-0.";
    assert!(line.starts_with(words), "{line}");
}

/// The whole loop is decided, and what remains without the bed lies around the margin.
#[test]
fn an_open_share_is_named_with_its_interval() {
    let text = EXPERIMENT.replace("rate = 1000000.0", "rate = 3600000.0").replace("1050000.0", "3603600.0");
    let line = report_of(&text).verdict_lines()[0].clone();
    assert!(line.starts_with("after forwards as many IPv4 packets as before, to within 1 % ("), "{line}");
    assert!(
        line.contains("%), but whether its share of the loop differs by more than 1 % is undecided ("),
        "{line}"
    );
}

/// The whole loop differs by less than the margin, and what remains without the bed by more.
#[test]
fn whole_loop_and_share_that_disagree_give_no_single_answer() {
    let text = EXPERIMENT.replace("rate = 1000000.0", "rate = 3600000.0").replace("1050000.0", "3618000.0");
    let made = report_of(&text);
    assert_eq!(made.verdicts()[0], Some(Verdict::Undecided));
    let json = json_of(&made);
    let (whole, share) = (&json["comparisons"][0]["whole"], &json["comparisons"][0]["share"]);
    assert!(share["low"].as_f64() > whole["high"].as_f64(), "{whole} {share}");
    let line = &made.verdict_lines()[0];
    assert_eq!(line.contains("no single answer"), json["comparisons"][0]["settled"] == true, "{line}");
    assert!(line.contains("no single answer, because the whole loop differs by +0."), "{line}");
}

#[test]
fn a_share_that_cannot_be_told_leaves_the_comparison_undecided() {
    let text = EXPERIMENT.replace("rate = 1000000.0", "rate = 4000000.0").replace("1050000.0", "4400000.0");
    let made = report_of(&text);
    assert_eq!(made.verdicts()[0], Some(Verdict::Undecided));
    let line = &made.verdict_lines()[0];
    assert!(line.starts_with("after forwards "), "{line}");
    let words =
        "%), but the comparison is undecided, because a share of the loop is too small to be told apart";
    assert!(line.contains(words), "{line}");
    assert!(made.readme().contains(" or more "), "{}", made.readme());
    assert!(json_of(&made)["cells"][1]["shares"][0].is_null());
}

#[test]
fn rates_are_those_of_the_whole_loop_at_the_median_machine_speed() {
    let made = report_of(EXPERIMENT);
    let json = json_of(&made);
    let cell = &json["cells"][0];
    assert_eq!((&cell["variant"], &cell["family"]), (&"before".into(), &"inet".into()));
    let numbers = |name: &str| -> Vec<f64> {
        cell[name].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
    };
    let spread = |values: &[f64]| {
        values.iter().copied().fold(0.0, f64::max) / values.iter().copied().fold(f64::INFINITY, f64::min)
            - 1.0
    };
    let (values, raw, shares) = (numbers("values"), numbers("raw"), numbers("shares"));
    assert!(spread(&values) < 0.005 && spread(&raw) > 0.02, "{values:?} {raw:?}");
    // The bed takes a quarter of the time of the slower variant.
    assert!(values.iter().zip(&shares).all(|(whole, share)| (share / whole - 4.0 / 3.0).abs() < 0.01));
    let factors = json["machine"][0]["panels"].as_array().unwrap();
    for ((panel, value), raw) in factors.iter().zip(&values).zip(&raw) {
        assert!((raw * panel["factor"].as_f64().unwrap() / value - 1.0).abs() < 1e-3);
    }
    assert!(made.readme().contains(" to 1,3"), "{}", made.readme());
}

#[test]
fn the_raw_blocks_have_the_values_as_they_were_measured() {
    let made = report_of(EXPERIMENT);
    let lowest = |text: &str| -> f64 {
        let line = text.lines().find(|line| line.starts_with("x   4")).unwrap();
        line.split_whitespace().nth(2).unwrap().parse().unwrap()
    };
    let json = json_of(&made);
    let least = |name: &str| {
        let values = json["cells"][0][name].as_array().unwrap().iter();
        values.map(|value| value.as_f64().unwrap()).fold(f64::INFINITY, f64::min)
    };
    // ministat prints eight digits.
    assert!((lowest(made.readme()) - least("values")).abs() < 1.0);
    assert!((lowest(made.raw()) - least("raw")).abs() < 1.0);
    assert!(made.readme().contains("`fullview report --raw .` shows them as they were measured"));
    assert!(made.raw().contains("as they were measured") && !made.raw().contains("## "));
}

#[test]
fn a_copy_that_differs_does_not_hide_that_comparisons_are_not_judged() {
    let machine = Machine { copy: 1.02, ..Machine::default() };
    let refused = "[[variants]]\nname = \"absent\"\nlabel = \"absent\"\nset = { refuses = true }\n";
    let made = report_with(&(EXPERIMENT.to_owned() + refused), machine);
    assert_eq!(made.status(), ReportStatus { incomplete: true, ..UNTRUSTED });
}

#[test]
fn a_copy_that_differs_stands_above_everything_else() {
    let made = report_with(EXPERIMENT, Machine { copy: 1.02, ..Machine::default() });
    assert_eq!(made.status(), UNTRUSTED);
    let words = "This machine or set-up cannot be trusted today: the same variant, measured twice in turns, differs by +";
    assert!(made.untrusted().unwrap().starts_with(words));
    assert!(made.verdict_lines()[0].starts_with(words));
    assert!(made.readme().starts_with(&format!("**{words}")));
    let json = json_of(&made);
    assert!(json["untrusted"].as_str().unwrap().starts_with(words));
    assert_eq!(json["copies"][0]["differs"], true);
    assert!(made.readme().contains("| **no**"));
}

/// The comparisons of that family are judged, so that without this nothing would say that their figures were not checked.
#[test]
fn a_copy_that_is_not_judged_leaves_unknown_whether_the_machine_can_be_trusted() {
    let made = report_with(EXPERIMENT, Machine { copy_stalls_in: Some(2), ..Machine::default() });
    assert_eq!(made.status(), ReportStatus { trust_unknown: true, ..OK });
    let words = "Whether this machine or set-up can be trusted today is not known: the hidden copy";
    assert_eq!(made.untrusted(), None);
    assert!(made.trust_unknown().unwrap().starts_with(words));
    assert!(made.verdict_lines()[0].starts_with(words));
    assert!(made.readme().starts_with(&format!("**{words}")));
    assert!(made.readme().contains("| **not known**"), "{}", made.readme());
    let json = json_of(&made);
    assert!(json["trust_unknown"].as_str().unwrap().starts_with(words));
    assert_eq!(json["copies"].as_array().unwrap().len(), 1);
}

#[test]
fn the_copy_gives_the_noise_floor_of_each_family() {
    let made = report_of(EXPERIMENT);
    assert_eq!(made.untrusted(), None);
    let json = json_of(&made);
    assert_eq!(json["copies"].as_array().unwrap().len(), 2);
    for copy in json["copies"].as_array().unwrap() {
        let half = copy["noise_floor"].as_f64().unwrap();
        let reach =
            (copy["effect"]["high"].as_f64().unwrap() - copy["effect"]["low"].as_f64().unwrap()) / 2.0;
        assert!(half > 0.0 && half < reach, "{copy}");
    }
    assert!(made.readme().contains("## The same variant twice"));
}

#[test]
fn the_json_contains_what_the_report_is_made_of() {
    let json = json_of(&report_of(EXPERIMENT));
    assert_eq!((&json["schema"], &json["untrusted"]), (&2.into(), &serde_json::Value::Null));
    assert_eq!(json["cells"].as_array().unwrap().len(), 4);
    let compared = &json["comparisons"][0];
    assert_eq!((&compared["verdict"], &compared["settled"]), (&"better".into(), &true.into()));
    assert_eq!((&compared["look"]["number"], &compared["look"]["blocks"]), (&1.into(), &4.into()));
    // Half of alpha at the first look, divided by two comparisons.
    assert_eq!(compared["level"], 0.0125);
    assert_eq!(compared["ratios"].as_array().unwrap().len(), 4);
    assert_eq!(compared["share_ratios"].as_array().unwrap().len(), 4);
    assert_eq!(json["cells"][0]["values"].as_array().unwrap().len(), 4);
    let turns = &json["turns"][0];
    assert_eq!((&turns["turns"]["slice_us"], &turns["turns"]["lead_in_us"]), (&500.0.into(), &250.0.into()));
    assert_eq!(turns["arms"]["0"], "the control");
    assert_eq!(turns["arms"]["3"], "the copy of before");
    assert_eq!(turns["calibration"]["tried"][0]["agreement"], "proven");
    assert_eq!(json["machine"][0]["left_out"], 0.0);
}

#[test]
fn turns_that_may_be_unfair_are_said_to_cost_whom() {
    let text = EXPERIMENT.replace("set = {", "set = { short_costs = 0.1,");
    let made = report_of(&text);
    assert!(has_warning(&made, "IPv4: no length of turns is fair to all; in turns of 8 ms, the longest"));
    assert!(has_warning(&made, "by more than 0.25 %: after -0."), "{:?}", made.warnings());
    assert!(made.readme().contains("| 8 ms "));
    assert!(made.readme().contains("| refuted"));
    assert!(
        made.readme().contains(
            "5 lengths were tried, and the shorter ones refuted. This one, the longest, is refuted."
        )
    );
    assert_eq!(made.readme().matches("\n| 500 µs ").count(), 2);
    let line = &made.verdict_lines()[0];
    let cost = "; but turns of 8 ms are not fair to all, and may change these rates: after -0.";
    assert!(line.contains("% more IPv4 packets than before (") && line.contains(cost), "{line}");
    let fair = report_of(EXPERIMENT);
    assert!(fair.warnings().is_empty() && !fair.verdict_lines()[0].contains("turns"));
    assert!(fair.readme().contains("One length was tried. This one is proven."));
}

#[test]
fn an_experiment_that_sets_the_length_of_turns_is_not_calibrated() {
    let text = EXPERIMENT.replace("measure_s = 0.01", "measure_s = 0.02, slice_ms = 1.0");
    let made = report_of(&text);
    assert!(made.readme().contains("IPv4: slices of 1 ms after a lead-in of 500 µs, set by the experiment."));
}

#[test]
fn rounds_that_are_left_out_are_counted() {
    let text = EXPERIMENT.replace("measure_s = 0.01", "measure_s = 0.1");
    let made = report_with(&text, Machine { disturbed: 0.08, ..Machine::default() });
    let left_out = json_of(&made)["machine"][0]["left_out"].as_f64().unwrap();
    assert!((0.06..0.1).contains(&left_out), "{left_out}");
    assert!(
        has_warning(&made, "IPv4: ") && has_warning(&made, "% of the rounds are left out for all variants")
    );
    assert_eq!(made.verdicts()[0], Some(Verdict::Better));
}

#[test]
fn a_variant_that_cannot_keep_up_with_the_load_is_judged_and_its_loss_is_its_result() {
    let text = with_settings("load = 1500000.0").replace("1050000.0", "1600000.0");
    let made = report_with(&text, Machine { subtracts: false, ..Machine::default() });
    assert_eq!(made.verdicts()[0], Some(Verdict::Better));
    let lines = made.verdict_lines();
    assert!(lines[0].starts_with("after forwards "), "{lines:?}");
    assert!(lines[1].starts_with("of the IPv4 packets offered, after loses "), "{lines:?}");
    assert!(lines[1].contains("before loses 3"), "{lines:?}");
    let loss = json_of(&made)["cells"][0]["loss"].as_f64().unwrap();
    assert!((0.25..0.42).contains(&loss), "{loss}");
    assert!(made.readme().contains("## Loss"));
    assert!(!report_of(EXPERIMENT).readme().contains("## Loss"));
    let worse = with_settings("load = 1500000.0").replace("1050000.0", "600000.0");
    let machine = Machine { subtracts: false, ..Machine::default() };
    assert_eq!(report_with(&worse, machine).status(), WORSE);
}

#[test]
fn rates_under_an_offered_load_are_not_brought_to_the_speed_of_the_machine() {
    let of = |paced| report_with(EXPERIMENT, Machine { subtracts: false, paced, ..Machine::default() });
    let [scaled, paced] = [of(false), of(true)];
    let same = |made: &Report| {
        json_of(made)["cells"].as_array().unwrap().iter().all(|cell| cell["values"] == cell["raw"])
    };
    assert!(same(&paced) && !same(&scaled));
    assert!(paced.readme().contains("it is shown as it was measured, because a schedule offered the load."));
    assert!(!paced.readme().contains("median speed that the machine had"), "{}", paced.readme());
    assert!(!paced.overview(&[]).unwrap().contains("median machine speed"));
}

#[test]
fn a_campaign_before_its_first_look_is_not_judged() {
    let made = report_of(&(with_settings("invalid_panels = 1") + "[analysis]\nmax_repeats = 0\n"));
    let line = &made.verdict_lines()[0];
    let words =
        "after against before, IPv4 packets: not judged: 3 of the 4 valid blocks that the first look needs";
    assert_eq!(line, words);
    assert_eq!(made.status(), INCOMPLETE);
}

#[test]
fn too_few_valid_blocks_are_not_in_the_ministat_block() {
    let made = report_of(&EXPERIMENT.replace("runs = 4", "runs = 2"));
    assert!(
        made.readme()
            .contains("r368766 is not in this block: it has 2 valid runs, and at least 3 are needed.")
    );
}

#[test]
fn a_campaign_without_a_valid_panel_has_a_report() {
    let patient = with_settings("invalid_panels = 1000") + "[analysis]\nmax_repeats = 100\n";
    let made = report_of(&patient);
    assert!(made.readme().contains("12 × wrong flows"));
    assert!(made.verdict_lines()[0].contains("not judged: 0 of the 4 valid blocks"));
    assert_eq!(made.status(), INCOMPLETE);
}

#[test]
fn a_campaign_has_a_status() {
    assert_eq!(report_of(EXPERIMENT).status(), OK);
    assert_eq!(report_of(&with_rate(950_000.0)).status(), WORSE);
    assert_eq!(report_of(&EXPERIMENT.replace("runs = 4", "runs = 1")).status(), INCOMPLETE);
}

#[test]
fn the_graph_names_the_number_of_valid_blocks_and_what_is_pale() {
    let folder = tempfile::tempdir().unwrap();
    let text = with_settings("invalid_panels = 1") + "[analysis]\nretries = 0\n";
    measured(&text, folder.path(), &mut MockBench::default());
    report(folder.path()).unwrap().write(folder.path()).unwrap();
    let svg = fs::read_to_string(folder.path().join("graph.svg")).unwrap();
    assert!(svg.contains("whole loop: minimum, median, maximum of 3 to 4 blocks"));
    assert!(svg.contains("pale: up to the rate without the time of the bed"));
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

#[test]
fn a_model_does_not_claim_the_name_of_what_it_models() {
    let text = EXPERIMENT.replace("label = \"r368766 with the patch\"", "model_of = \"D27401\"");
    let made = report_of(&text);
    assert!(made.verdict_lines()[0].starts_with("fullview's model of D27401 forwards "));
    assert!(made.readme().contains("+ fullview's model of D27401: inet packets-per-second forwarded"));
    assert!(
        made.readme().contains("  - models, of fullview's own code, stand for what did not run: D27401\n")
    );
}

#[test]
fn rates_of_zero_are_not_judged() {
    let made = report_of(&with_rate(0.0));
    let line = &made.verdict_lines()[0];
    assert!(line.contains("r368766 with the patch has a rate of zero, so there is no ratio"), "{line}");
    assert!(made.overview(&[]).unwrap().contains("rate of zero"));
    assert_eq!(made.status(), INCOMPLETE);
}

/// Its rates are multiples of the baseline's, because the families count different things.
#[test]
fn a_variant_whose_baseline_has_no_rate_is_not_called_invalid_in_the_graph() {
    let one = "families = [{ name = \"inet\", title = \"IPv4\" }, \"inet6\"]";
    let families =
        "families = [{ name = \"inet\", title = \"IPv4\", metric = \"requests-per-second\" }, \"inet6\"]";
    let text = EXPERIMENT.replace(one, families).replace("rate = 1000000.0", "rate = 0.0");
    let folder = tempfile::tempdir().unwrap();
    measured(&text, folder.path(), &mut MockBench::default());
    report(folder.path()).unwrap().write(folder.path()).unwrap();
    let svg = fs::read_to_string(folder.path().join("graph.svg")).unwrap();
    assert!(svg.contains("no scale: the baseline has no rate") && svg.contains("rate of zero"), "{svg}");
    assert!(!svg.contains("no valid run"));
}

/// The other three blocks of the family would say that the variant is faster.
#[test]
fn a_variant_that_stalls_in_one_block_is_not_judged_by_the_others() {
    let made = report_of(&EXPERIMENT.replace("set = {", "set = { stalls_in = 2,"));
    let words = "r368766 with the patch has a rate of zero in 1 of 4 blocks, so there is no ratio";
    let lines = made.verdict_lines();
    assert_eq!(lines.iter().filter(|line| line.contains(words)).count(), 1, "{lines:?}");
    assert_eq!(made.status(), INCOMPLETE);
    let ratios = &json_of(&made)["comparisons"];
    let nulls =
        |of: usize| ratios[of]["ratios"].as_array().unwrap().iter().filter(|ratio| ratio.is_null()).count();
    assert_eq!(nulls(0) + nulls(1), 1);
}

#[test]
fn a_title_is_no_markup() {
    let text = EXPERIMENT.replace("title = \"IPv4\"", "title = \"*IPv4*\"");
    let text = text.replacen("title = \"Impact", "title = \"Is *x* <faster>? Impact", 1);
    let readme = report_of(&text).readme().to_owned();
    assert!(readme.contains("\nIs \\*x\\* \\<faster\\>? Impact"), "{readme}");
    assert!(readme.contains("\n\\*IPv4\\*:\n") && !readme.contains("\n*IPv4*"), "{readme}");
}

#[test]
fn one_variant_alone_is_reported_without_verdicts() {
    let (alone, _) = EXPERIMENT.rsplit_once("[[variants]]").unwrap();
    let made = report_of(alone);
    assert!(made.verdict_lines().is_empty());
    assert!(made.readme().starts_with("Impact of a patch on forwarding:\n"));
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
fn a_panel_of_unknown_variants_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    measured(EXPERIMENT, folder.path(), &mut MockBench::default());
    let path = folder.path().join("panels.jsonl");
    let text = fs::read_to_string(&path).unwrap().replacen("\"after\"", "\"unknown\"", 1);
    fs::write(&path, text).unwrap();
    let error = report(folder.path()).unwrap_err().to_string();
    assert!(error.contains("panels.jsonl: the panel of block 0, inet"), "{error}");
}

#[test]
fn an_incomplete_line_has_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    measured(EXPERIMENT, folder.path(), &mut MockBench::default());
    let path = folder.path().join("panels.jsonl");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 9]).unwrap();
    assert!(report(folder.path()).unwrap().readme().contains("line 8 of the journal is incomplete"));
}

#[test]
fn families_that_count_different_things_are_named_with_their_units() {
    let families = "families = [{ name = \"inet\", title = \"IPv4\", metric = \"requests-per-second carried\" }, \"inet6\"]";
    let one = "families = [{ name = \"inet\", title = \"IPv4\" }, \"inet6\"]";
    assert!(EXPERIMENT.contains(one));
    let made = report_of(&EXPERIMENT.replace(one, families));
    assert!(
        made.readme()
            .contains("Rates are requests-per-second carried in IPv4, packets-per-second forwarded in inet6")
    );
    assert!(
        made.verdict_lines().iter().any(|line| line.contains("carries") && line.contains("IPv4 requests"))
    );
    assert!(
        made.verdict_lines().iter().any(|line| line.contains("forwards") && line.contains("inet6 packets"))
    );
    let json = json_of(&made);
    assert!(json["metric"].is_null());
    assert_eq!(json["cells"][0]["metric"], "requests-per-second carried");
}
