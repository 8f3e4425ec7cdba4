//! `fullview rates` from end to end.
#![cfg(all(feature = "bpf", target_os = "linux"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // also in helpers: a test fails by panicking

#[path = "rates/bursts.rs"]
mod bursts;
#[path = "rates/devices.rs"]
mod devices;
#[path = "rates/routes.rs"]
mod routes;
#[path = "rates/support.rs"]
mod support;

use std::path::Path;
use std::process::{Child, Command, Stdio};

use fullview_testnet::{eventually, may_run};
use serde_json::Value;

/// Other work may take the generator's core, which the program reports.
const ATTEMPTS: usize = 3;

const SHORT: [&str; 8] =
    ["--repetitions", "1", "--trial-seconds", "0.02", "--most-seconds", "1.5", "--most-load", "5000"];

fn rates(folder: &Path, devices: &str) -> Child {
    rates_of(folder, devices, "60")
}

fn rates_of(folder: &Path, devices: &str, size: &str) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fullview"));
    command.args(["rates", "--json", "--out", "out", "--devices", devices, "--size", size]).args(SHORT);
    command.current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn namespaces_of(process: u32) -> usize {
    let all = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    all.filter(|name| name.file_name().to_string_lossy().starts_with(&format!("fv{process}r"))).count()
}

fn device<'r>(report: &'r Value, name: &str) -> &'r Value {
    let devices = report["devices"].as_array().unwrap();
    devices.iter().find(|device| device["device"] == name).unwrap()
}

/// Measures these devices in a folder, again if other work took the generator's core.
fn measured(folder: &Path, devices: &str, size: &str) -> Value {
    for _ in 0..ATTEMPTS {
        let _ = std::fs::remove_dir_all(folder.join("out"));
        let child = rates_of(folder, devices, size);
        let process = child.id();
        let done = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(namespaces_of(process), 0, "namespaces are left behind");
        if said.contains("holds no load") {
            eprintln!("again: {said}");
            continue;
        }
        assert!(matches!(done.status.code(), Some(0 | 3)), "{said}");
        let report: Value = serde_json::from_slice(&done.stdout).unwrap();
        if devices.split(',').all(|name| is_measured(&report, name)) {
            return report;
        }
    }
    panic!("other work took the generator's core {ATTEMPTS} times");
}

fn is_measured(report: &Value, name: &str) -> bool {
    let device = device(report, name);
    let failed = device["failed"].get(0).map(|failed| failed["reason"].as_str().unwrap());
    failed.inspect(|reason| assert!(reason.contains("fell behind"), "{name}: {reason}"));
    failed.is_none()
}

#[test]
fn the_kernel_and_an_engine_carry_loads_and_a_kernel_that_does_not_forward_carries_none() {
    if !may_run(&["ip", "ethtool", "chrt", "nft"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let report = measured(folder.path(), "kernel,kernel-stateful,xdp,off", "60");
    let largest = report["largest_load"].as_f64().unwrap();
    for name in ["kernel", "kernel-stateful", "xdp"] {
        let search = &device(&report, name)["searches"][0];
        for rate in ["pdr", "mrr"].map(|rate| &search[rate]) {
            let rate = rate.as_f64().unwrap();
            assert!(rate > 0.0 && rate <= largest, "{name}: {search}");
        }
    }
    let off = &device(&report, "off")["searches"][0];
    assert_eq!((off["ndr"].as_f64(), off["mrr"].as_f64()), (Some(0.0), Some(0.0)), "{off}");
    let trials = std::fs::read_to_string(folder.path().join("out/trials.jsonl")).unwrap();
    let received = |name: &str| -> u64 {
        let trials = trials.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        trials.filter(|trial| trial["device"] == name).map(|trial| trial["received"].as_u64().unwrap()).sum()
    };
    assert!(received("kernel") > 0 && received("xdp") > 0, "{trials}");
    assert_eq!(received("off"), 0);
    let page = std::fs::read_to_string(folder.path().join("out/README.md")).unwrap();
    assert!(page.contains("Comparable are") && page.contains("### xdp"), "{page}");
}

#[test]
fn packets_of_mixed_and_of_the_largest_size_are_carried() {
    if !may_run(&["ip", "ethtool", "chrt"]) {
        return;
    }
    let imix = serde_json::json!([60, 590, 60, 60, 590, 60, 1514, 60, 590, 60, 60, 590]);
    let conditions = "7 × 60, 4 × 590, 1 × 1514 bytes without FCS";
    for (size, lengths, words) in [("imix", imix, conditions), ("1514", [1514].into(), "(1514 bytes")] {
        let folder = tempfile::tempdir().unwrap();
        let report = measured(folder.path(), "kernel,xdp", size);
        assert_eq!(report["frame_bytes"], lengths);
        for name in ["kernel", "xdp"] {
            let search = &device(&report, name)["searches"][0];
            assert!(search["mrr"].as_f64().unwrap() > 0.0, "{size}, {name}: {search}");
        }
        let page = std::fs::read_to_string(folder.path().join("out/README.md")).unwrap();
        assert!(page.contains(words), "{page}");
    }
}

#[test]
fn a_size_that_no_frame_has_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for size in ["59", "1515", "jumbo"] {
        let done = rates_of(folder.path(), "link", size).wait_with_output().unwrap();
        assert_eq!(done.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&done.stderr).contains("60 to 1514, or imix"));
    }
}

#[test]
fn a_signal_ends_it_and_leaves_no_namespace() {
    if !may_run(&["ip", "ethtool", "chrt"]) {
        return;
    }
    let ended = (0..ATTEMPTS).any(|_| {
        let folder = tempfile::tempdir().unwrap();
        let child = rates(folder.path(), "link,kernel,xdp");
        let process = child.id();
        assert!(eventually(|| namespaces_of(process) > 0), "no namespace is made");
        let id = rustix::process::Pid::from_raw(process.cast_signed()).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        let done = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(namespaces_of(process), 0, "namespaces are left behind");
        let is_busy = said.contains("holds no load");
        assert!(is_busy || done.status.code() == Some(130), "{:?} {said}", done.status);
        !is_busy
    });
    assert!(ended, "other work took the generator's core {ATTEMPTS} times");
}

#[test]
fn results_are_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("out")).unwrap();
    std::fs::write(folder.path().join("out/trials.jsonl"), "").unwrap();
    let done = rates(folder.path(), "link").wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&done.stderr).contains("--force"));
}
