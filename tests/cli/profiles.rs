//! Flame graphs and the table of stages, of a small experiment.

use std::fs;

use tempfile::TempDir;

use crate::support::{SMALL, run_in};

/// Whether perf is there. In CI it has to be.
fn has_perf() -> bool {
    let runs = std::process::Command::new("perf").arg("--version").output().is_ok();
    if !runs {
        assert!(std::env::var_os("CI").is_none(), "CI installs perf");
        println!("skipped: no perf; on Debian, linux-perf has it");
    }
    runs
}

fn folder(experiment: &str) -> TempDir {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("small.toml"), experiment).unwrap();
    dir
}

#[test]
fn every_variant_has_a_graph_and_its_stages() {
    if !has_perf() {
        return;
    }
    let dir = folder(SMALL);
    let arguments =
        ["profile", "small.toml", "--seconds", "1.5", "--families", "inet", "--out", "flame", "--json"];
    let ran = run_in(dir.path(), &arguments);
    // A busy machine may take so much of the core that a profile is not valid.
    assert!(ran.code == 0 || ran.code == 3, "{}{}", ran.out, ran.err);
    let document: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let profiles = document["profiles"].as_array().unwrap();
    assert_eq!(profiles.len(), 2, "{document}");
    for profile in profiles {
        let stages = profile["stages"].as_array().unwrap();
        let share = |stage: &str| {
            stages.iter().find(|one| one["stage"] == stage).map(|one| one["share"].as_f64().unwrap())
        };
        assert!(share("lookup").is_some_and(|share| share > 0.01), "{profile}");
        assert!(share("generate, receive, verify").is_some_and(|share| share > 0.01), "{profile}");
        let sum: f64 = stages.iter().map(|one| one["share"].as_f64().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{profile}");
        assert!(profile["quality"]["whole"].as_f64().unwrap() > 0.9, "{profile}");
        let file = format!("inet-{}", profile["variant"].as_str().unwrap());
        let svg = fs::read_to_string(dir.path().join("flame").join(format!("{file}.svg"))).unwrap();
        assert!(svg.contains("samples") && svg.trim_end().ends_with("</svg>"));
        assert!(
            fs::read_to_string(dir.path().join("flame").join(format!("{file}.folded")))
                .unwrap()
                .contains("forward")
        );
    }
    let page = fs::read_to_string(dir.path().join("flame/README.md")).unwrap();
    assert!(page.contains("-difference.svg") && page.contains("| stage, share of the time |"), "{page}");
    let again = run_in(dir.path(), &arguments);
    assert!(again.code == 2 && again.err.contains("--force replaces them"), "{}", again.err);
}

#[test]
fn what_cannot_be_profiled_is_refused() {
    let dir = folder(SMALL);
    let ran = run_in(dir.path(), &["profile", "small.toml", "--families", "inet9"]);
    assert!(ran.code == 2 && ran.err.contains("\"inet9\" is none of inet, inet6"), "{}", ran.err);
    let peers = SMALL.replace(
        "load.shape = \"one-core\"",
        "load.shape = \"one-core\"\nload.peer = { command = [\"true\"] }",
    );
    fs::write(dir.path().join("small.toml"), peers).unwrap();
    let ran = run_in(dir.path(), &["profile", "small.toml"]);
    assert!(ran.code == 2, "{}", ran.err);
}
