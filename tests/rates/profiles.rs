//! Profiles of the devices' core.

use std::path::Path;
use std::process::Command;

use fullview_testnet::{eventually, may_run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::rates_with;
use crate::support::{measured, page, stderr};

#[test]
fn every_device_has_a_graph_its_stages_and_the_shares_of_the_core() {
    if !may_run(&["ip", "ethtool", "chrt", "setpriv", "perf"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let report = measured(folder.path(), &["kernel", "xdp"], &["--devices", "kernel,xdp", "--profile"]);
    let profile = &report["profile"];
    assert_eq!(profile["failed"].as_array().unwrap().len(), 0, "{profile}");
    let profiles = profile["profiles"].as_array().unwrap();
    assert_eq!(profiles.len(), 2, "{profile}");
    for one in profiles {
        is_consistent(one);
        let text = std::fs::read_to_string(folder.path().join("out").join(one["graph"].as_str().unwrap()));
        assert!(text.unwrap().trim_end().ends_with("</svg>"));
    }
    let page = page(folder.path());
    assert!(page.contains("## Where the time goes") && page.contains("(profile-kernel.svg)"), "{page}");
    assert!(profiles[0]["difference"].is_null(), "the kernel is the baseline: {profile}");
    let difference = folder.path().join("out").join(profiles[1]["difference"].as_str().unwrap());
    assert!(std::fs::read_to_string(difference).unwrap().contains("compared with kernel"));
    let trials = std::fs::read_to_string(folder.path().join("out/trials.jsonl")).unwrap();
    assert!(trials.lines().all(|line| !line.contains("profile")), "a profiled trial counts as no rate");
}

fn is_consistent(one: &Value) {
    let stages = one["stages"].as_array().unwrap();
    let sum: f64 = stages.iter().map(|stage| stage["share"].as_f64().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{one}");
    assert!(stages.iter().any(|stage| stage["stage"] == "the right host receives"), "{one}");
    let quality = &one["quality"];
    let share = |name: &str| quality[name].as_f64().unwrap();
    let others = quality["others"].as_array().unwrap().iter().map(|other| other["share"].as_f64().unwrap());
    let core = share("device") + share("idle") + share("measurement") + others.sum::<f64>();
    assert!(quality["lost"].as_u64() > Some(0) || (core - 1.0).abs() < 1e-6, "{one}");
    assert!(quality["samples"].as_u64() > Some(0) && one["forwarding"].as_f64() > Some(0.1), "{one}");
}

#[test]
fn a_profile_without_perf_is_refused_before_the_first_trial() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fullview"));
    command.args(["rates", "--devices", "kernel", "--profile", "--out", "out"]).env("PATH", folder.path());
    let done = command.current_dir(folder.path()).output().unwrap();
    assert_eq!(done.status.code(), Some(1), "{}", stderr(&done));
    assert!(stderr(&done).contains("apt-get install linux-perf"), "{}", stderr(&done));
    assert!(!folder.path().join("out").exists());
}

#[test]
fn a_killed_measurement_leaves_no_perf() {
    if !may_run(&["ip", "ethtool", "chrt", "setpriv", "perf"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let is_seen = (0..crate::ATTEMPTS).any(|_| {
        let mut child = rates_with(folder.path(), &["--devices", "kernel", "--profile", "--force"]);
        let mut perf = None;
        let is_over = eventually(|| {
            perf = perf_of(child.id());
            perf.is_some() || child.try_wait().unwrap().is_some()
        });
        assert!(is_over, "neither perf nor an end is seen");
        let id = Pid::from_raw(child.id().cast_signed()).unwrap();
        let _ = kill_process(id, Signal::KILL);
        child.wait().unwrap();
        // Other work may take the generator's core, which ends the measurement before perf starts.
        let Some(perf) = perf else { return false };
        assert!(eventually(|| !is_recording(&perf)), "perf is left behind");
        true
    });
    assert!(is_seen, "perf was not seen in {} attempts", crate::ATTEMPTS);
}

/// The folder below /proc of the perf that a process has started.
fn perf_of(parent: u32) -> Option<std::path::PathBuf> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let is_child = |path: &Path| {
        let status = std::fs::read_to_string(path.join("status")).unwrap_or_default();
        status.lines().any(|line| line == format!("PPid:\t{parent}"))
    };
    processes.filter(|path| is_recording(path)).find(|path| is_child(path))
}

fn is_recording(process: &Path) -> bool {
    std::fs::read_to_string(process.join("cmdline")).is_ok_and(|line| line.starts_with("perf\0record\0"))
}
