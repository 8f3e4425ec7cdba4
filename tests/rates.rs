//! `fullview rates` from end to end.
#![cfg(all(feature = "bpf", target_os = "linux"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // also in helpers: a test fails by panicking

#[path = "rates/bursts.rs"]
mod bursts;
#[path = "rates/convergence.rs"]
mod convergence;
#[path = "rates/devices.rs"]
mod devices;
#[path = "rates/families.rs"]
mod families;
#[path = "rates/profiles.rs"]
mod profiles;
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
    rates_with(folder, &["--devices", devices, "--size", size])
}

fn rates_with(folder: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fullview"));
    command.args(["rates", "--json", "--out", "out"]).args(arguments).args(SHORT);
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
    measured_with(folder, &["--devices", devices, "--size", size])
}

fn measured_with(folder: &Path, arguments: &[&str]) -> Value {
    for _ in 0..ATTEMPTS {
        let _ = std::fs::remove_dir_all(folder.join("out"));
        let child = rates_with(folder, arguments);
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
        if report["devices"].as_array().unwrap().iter().all(is_measured) {
            return report;
        }
    }
    panic!("other work took the generator's core {ATTEMPTS} times");
}

fn is_measured(device: &Value) -> bool {
    let name = &device["device"];
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

/// The figures of a path in the order of their size.
fn ordered(delays: &Value) -> Vec<u64> {
    ["min", "median", "p99", "p99_9", "max"].iter().filter_map(|name| delays[name].as_u64()).collect()
}

#[test]
fn latency_is_measured_at_four_loads_over_a_cable_and_through_the_device() {
    if !may_run(&["ip", "ethtool", "chrt"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let report = measured_with(folder.path(), &["--devices", "kernel,off", "--latency"]);
    let kernel = &device(&report, "kernel")["searches"][0];
    let levels = kernel["latency"].as_array().unwrap();
    let names: Vec<&str> = levels.iter().map(|level| level["level"].as_str().unwrap()).collect();
    assert_eq!(names, ["pdr-10", "pdr-50", "pdr-90", "overload"]);
    for path in levels.iter().flat_map(|level| [&level["device"], &level["link"]]) {
        let [probes, lost] = ["probes", "lost"].map(|count| path[count].as_u64().unwrap());
        let delays = ordered(&path["delays"]);
        assert!(probes > 0 && lost <= probes && (delays.is_empty() == (lost == probes)), "{path}");
        assert!(delays.is_sorted() && delays.iter().all(|delay| *delay > 0), "{path}");
    }
    let off = &device(&report, "off")["searches"][0]["latency"];
    assert_eq!((off[0]["level"].as_str(), off[1].is_null()), (Some("overload"), true), "its PDR is 0: {off}");
    assert_eq!(off[0]["device"]["lost"], off[0]["device"]["probes"]);
    archived_probes_are_those_of_the_report(folder.path(), levels);
    let out = folder.path().join("out");
    let page = std::fs::read_to_string(out.join("README.md")).unwrap();
    for name in names {
        assert!(page.contains(&format!("(latency-{name}.png)")), "{page}");
        assert!(std::fs::read(out.join(format!("latency-{name}.png"))).unwrap().starts_with(b"\x89PNG"));
        assert!(
            std::fs::read_to_string(out.join(format!("latency-{name}.svg"))).unwrap().contains("kernel, ")
        );
    }
}

/// The counts of the last trial at each level.
fn archived_probes_are_those_of_the_report(folder: &Path, levels: &[Value]) {
    let text = std::fs::read_to_string(folder.join("out/trials.jsonl")).unwrap();
    let trials: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (level, path, name) in
        levels.iter().flat_map(|level| [(level, "device", "kernel"), (level, "link", "link")])
    {
        let is_it = |trial: &&Value| {
            let probes = &trial["latency"];
            trial["device"] == "kernel" && probes["path"] == name && probes["level"] == level["level"]
        };
        let archived = &trials.iter().rfind(is_it).unwrap()["latency"];
        let counts =
            archived["nanoseconds"].as_array().unwrap().iter().map(|bucket| bucket[1].as_u64().unwrap());
        let [probes, lost] = ["probes", "lost"].map(|count| level[path][count].as_u64().unwrap());
        assert_eq!((archived["probes"].as_u64(), archived["lost"].as_u64()), (Some(probes), Some(lost)));
        assert_eq!(counts.sum::<u64>() + lost, probes);
    }
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
fn quick_measures_the_kernel_and_auto_once_with_latency() {
    if !may_run(&["ip", "ethtool", "chrt"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let report = measured_with(folder.path(), &["--quick"]);
    let names: Vec<&str> =
        report["devices"].as_array().unwrap().iter().map(|one| one["device"].as_str().unwrap()).collect();
    assert_eq!(names, ["kernel", "auto"]);
    assert!(!device(&report, "auto")["searches"][0]["latency"].as_array().unwrap().is_empty());
    let page = std::fs::read_to_string(folder.path().join("out/README.md")).unwrap();
    assert!(page.contains("One search for each device"), "{page}");
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

#[test]
fn pictures_of_a_measurement_before_do_not_stay() {
    if !may_run(&["ip", "ethtool", "chrt"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    std::fs::create_dir(&out).unwrap();
    let (stale, other) = (out.join("latency-pdr-10.svg"), out.join("notes.txt"));
    for file in [&stale, &other, &out.join("trials.jsonl")] {
        std::fs::write(file, "").unwrap();
    }
    let done = rates_with(folder.path(), &["--devices", "off", "--force"]).wait_with_output().unwrap();
    assert!(!stale.exists() && other.exists(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// As in a cgroup without real time.
#[test]
fn a_generator_that_may_not_run_in_real_time_runs_before_others_and_the_report_says_so() {
    if !may_run(&["ip", "ethtool"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let programs = folder.path().join("programs");
    std::fs::create_dir(&programs).unwrap();
    std::os::unix::fs::symlink("/bin/false", programs.join("chrt")).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let report = support::measured_in(folder.path(), &["kernel"], &["--devices", "kernel"], &path);
    assert!(device(&report, "kernel")["searches"][0]["mrr"].as_f64().unwrap() > 0.0, "{report}");
    let page = support::page(folder.path());
    assert!(page.contains("not in real time, which this machine refuses"), "{page}");
}
