//! Campaigns from end to end, and experiments that are refused.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::support::{SMALL, file, fullview, run};

#[test]
fn a_campaign_leaves_a_report_that_can_be_rebuilt() {
    let (dir, path) = file("small.toml", SMALL.as_bytes());
    let out = dir.path().join("out");
    let ran = run(&["bench", &path, "--out", out.to_str().unwrap()]);
    assert!(ran.code == 0 || ran.code == 3, "{}", ran.err);
    let files = ["README.md", "graph.svg", "graph.png", "panels.jsonl", "host.json", "campaign.toml"];
    for name in files {
        assert!(out.join(name).metadata().unwrap().len() > 0, "{name}");
    }
    let before = fs::read(out.join("README.md")).unwrap();
    fs::remove_file(out.join("README.md")).unwrap();
    assert_eq!(run(&["report", out.to_str().unwrap()]).code, ran.code);
    assert_eq!(fs::read(out.join("README.md")).unwrap(), before);
    second_campaign_needs_a_decision(&path, &out);
}

fn second_campaign_needs_a_decision(experiment: &str, out: &Path) {
    let again = run(&["bench", experiment, "--out", out.to_str().unwrap()]);
    assert_eq!(again.code, 2);
    assert!(again.err.contains("--resume"), "{}", again.err);
}

#[test]
fn a_campaign_is_measured_again_from_its_own_folder() {
    let (dir, _) = file("view.txt", b"198.18.0.0/16 1\n2001:2::/48 2\n");
    let asked = SMALL.replace("two-routes", "view.txt").replace("runs = 3", "runs = 1");
    fs::write(dir.path().join("small.toml"), asked).unwrap();
    let bench = |file: &str, folder: &Path, out: &str| {
        let output = fullview().args(["bench", file, "--out", out]).current_dir(folder).output().unwrap();
        let code = output.status.code().unwrap();
        assert!(code == 0 || code == 3, "{}", String::from_utf8_lossy(&output.stderr));
    };
    bench("small.toml", dir.path(), "out");
    bench("campaign.toml", &dir.path().join("out"), "again");
}

/// The lockless one has a cache with room for all destinations.
const CACHED: &str = "radix_lockless\"\nset.route-cache = 1048576";

#[test]
fn a_report_counts_what_a_cache_of_routes_had() {
    let (dir, path) = file("cached.toml", SMALL.replace("radix_lockless\"", CACHED).as_bytes());
    let out = dir.path().join("out");
    let ran = run(&["bench", &path, "--out", out.to_str().unwrap()]);
    assert!(ran.code == 0 || ran.code == 3, "{}", ran.err);
    let report = fs::read_to_string(out.join("README.md")).unwrap();
    assert!(report.contains("| route cache hits | route cache misses | route cache stale |"), "{report}");
    let panels = fs::read_to_string(out.join("panels.jsonl")).unwrap();
    panels.lines().for_each(|panel| assert_counts_of_caches(&serde_json::from_str(panel).unwrap()));
}

/// Each packet of the member with a cache was a hit, as its destination had come during the verification.
fn assert_counts_of_caches(panel: &serde_json::Value) {
    for member in panel["members"].as_array().unwrap() {
        let counters = &member["findings"]["counters"];
        let cached = ["route cache hits", "route cache misses", "route cache stale"]
            .map(|name| counters[name].as_f64());
        let expected = match member["variant"].as_str() {
            Some("lockless") => [counters["sent"].as_f64(), Some(0.0), Some(0.0)],
            _ => [None; 3],
        };
        assert_eq!(cached, expected, "{member}");
    }
}

/// Checks that the campaign with one line changed is refused as bad input, with a message that has all of `words`.
fn refused_campaign(line: &str, instead: &str, words: &[&str]) {
    assert!(SMALL.contains(line));
    let (dir, path) = file("wrong.toml", SMALL.replace(line, instead).as_bytes());
    let ran = run(&["bench", &path, "--out", dir.path().join("out").to_str().unwrap()]);
    assert_eq!(ran.code, 2, "{instead}: {}", ran.err);
    for word in words {
        assert!(ran.err.contains(word), "{word:?} is missing in: {}", ran.err);
    }
}

#[test]
fn experiments_that_cannot_be_run_say_where_and_what_to_do() {
    refused_campaign("runs = 3", "runs = 0", &["wrong.toml:4"]);
    refused_campaign("seed = 1", "sed = 1", &["wrong.toml:5", "sed"]);
    refused_campaign("traffic.flows = 200", "traffic.flow = 200", &["wrong.toml", "flow"]);
    refused_campaign("algorithm = \"radix\"", "algorithm = \"radixx\"", &["radixx", "dpdk_lpm4"]);
    refused_campaign("table.source = \"two-routes\"", "table.source = \"no-such-file\"", &["no-such-file"]);
    let sizes = "a frame size in bytes without FCS, \"smallest\" or \"imix\"";
    refused_campaign("traffic.flows = 200", "traffic.size = \"imx\"", &["wrong.toml:14:16", "imx", sizes]);
    refused_campaign("traffic.flows = 200", "traffic.size = -1", &["wrong.toml:14:16", "-1", sizes]);
    refused_campaign("traffic.flows = 200", "traffic.size = [60]", &["wrong.toml:14:16", sizes]);
    refused_campaign(
        "algorithm = \"radix\"",
        "algorithm = 3",
        &["wrong.toml:19:24", "a name such as", "list of names"],
    );
}

#[test]
fn settings_of_the_subject_that_are_out_of_range_are_refused_where_they_stand() {
    let flows = "traffic.flows = 200";
    refused_campaign(flows, "traffic.flows = 0", &["wrong.toml:14:17: traffic.flows: 0 is too few"]);
    refused_campaign(flows, "traffic.size = 20", &["wrong.toml:14:16: traffic.size: "]);
    let load = "load.shape = \"one-core\"";
    for (key, value) in [("pps", "-5.0"), ("pps", "1e12"), ("burst", "257"), ("ports", "0"), ("packets", "1")]
    {
        let place = format!("wrong.toml:16:{}: load.{key}: ", key.len() + 9);
        refused_campaign(load, &format!("{load}\nload.{key} = {value}"), &[&place]);
    }
    refused_campaign(
        "name = \"inet6\"",
        "name = \"inet7\"",
        &["wrong.toml:3:48: ", "families are inet and inet6"],
    );
}

#[test]
fn rates_under_an_offered_load_are_those_that_were_measured() {
    let paced = SMALL.replace("load.shape = \"one-core\"", "load.shape = \"one-core\"\nload.pps = 20000.0");
    let (dir, path) = file("paced.toml", paced.as_bytes());
    let out = dir.path().join("out");
    let ran = run(&["bench", &path, "--out", out.to_str().unwrap()]);
    assert!(out.join("report.json").exists(), "{}", ran.err);
    let report: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(out.join("report.json")).unwrap()).unwrap();
    let cells = report["cells"].as_array().unwrap();
    assert!(cells.iter().all(|cell| cell["values"] == cell["raw"]), "{cells:?}");
    assert!(fs::read_to_string(out.join("panels.jsonl")).unwrap().contains("\"paced\":true"));
}

#[test]
fn a_wrong_setting_of_a_stream_or_a_variant_is_refused_there() {
    let streams = "load.shape = \"one-core\"\nstreams.few.flows = 0";
    let few = SMALL.replace("load.shape = \"one-core\"", streams).replace("\"inet6\"", "\"inet6.few\"");
    let (_dir, path) = file("wrong.toml", few.as_bytes());
    let ran = run(&["bench", &path]);
    assert!(ran.code == 2 && ran.err.contains("wrong.toml:16:21: traffic.flows: "), "{}", ran.err);
    let variant = "algorithm = \"radix\"";
    refused_campaign(
        variant,
        &format!("{variant}\nset.load.burst = 257"),
        &["load.burst: 257: give 1 to 256"],
    );
}

#[test]
fn a_length_that_ends_before_the_first_look_is_refused_before_anything_runs() {
    let late = SMALL.replace("runs = 3", "runs = 12") + "[analysis]\nfirst_look = 10\n";
    let (dir, path) = file("late.toml", late.as_bytes());
    let out = dir.path().join("out");
    let bench = |flags: &[&str]| run(&[&["bench", &path, "--out", out.to_str().unwrap()], flags].concat());
    let ran = bench(&["--runs", "5"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    for words in ["--runs: first_look is more than all blocks", "(10, and 5 blocks are made)", "leave it out"]
    {
        assert!(ran.err.contains(words), "{words:?} is missing in: {}", ran.err);
    }
    assert!(!out.exists());
    assert_eq!(bench(&["--smoke"]).code, 0);
}

#[test]
fn turns_that_the_subject_cannot_run_are_refused_before_anything_runs() {
    let long = SMALL.replace("slice_ms = 1.0", "slice_ms = 17.0");
    let (dir, path) = file("long.toml", long.as_bytes());
    let out = dir.path().join("out");
    let bench = |flags: &[&str]| run(&[&["bench", &path, "--out", out.to_str().unwrap()], flags].concat());
    for (flags, words) in
        [(&[][..], "long.toml:9:12: a slice of 17 ms"), (&["--slice-ms", "0.01"], "0.01 ms")]
    {
        let ran = bench(flags);
        assert!(ran.code == 2 && ran.err.contains(words), "{}", ran.err);
        assert!(ran.err.contains("have 0.05 to 16 ms") && !out.exists(), "{}", ran.err);
    }
    assert_eq!(bench(&["--smoke"]).code, 0, "its turns are as long as the subject can run them");
}

#[test]
fn a_smoke_run_has_no_other_length() {
    let (_dir, path) = file("small.toml", SMALL.as_bytes());
    for length in [["--runs", "3"], ["--minutes", "1"]] {
        let ran = run(&[&["bench", &path, "--smoke"], &length[..]].concat());
        assert!(ran.code == 2 && ran.err.contains("--smoke measures one short block"), "{}", ran.err);
    }
}

#[test]
fn settings_of_the_other_kind_are_refused_with_their_place() {
    let lookup = "lookup.batch belongs to subjects of kind \"lookup\"";
    refused_campaign("traffic.flows = 200", "lookup.batch = 32", &["wrong.toml:14:16", lookup]);
    let load = "load.shape belongs to subjects of kind \"forward\"";
    refused_campaign("kind = \"forward\"", "kind = \"lookup\"", &["wrong.toml:15:14", load]);
}

#[test]
fn a_results_folder_that_cannot_be_written_is_reported_before_anything_runs() {
    let (dir, path) = file("small.toml", SMALL.as_bytes());
    let blocked = dir.path().join("small.toml").join("out");
    let ran = run(&["bench", &path, "--out", blocked.to_str().unwrap()]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("small.toml"), "{}", ran.err);
}

#[test]
fn a_folder_without_campaign_is_no_report() {
    let dir = TempDir::new().unwrap();
    let ran = run(&["report", dir.path().to_str().unwrap()]);
    assert_ne!(ran.code, 0);
    assert!(ran.err.contains("campaign.toml"), "{}", ran.err);
}
