//! `fullview bench` with real clients over a router, from end to end.
#![cfg(feature = "bpf")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // also in helpers: a test fails by panicking

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use fullview_testnet::{has_programs, may_run};
use serde_json::Value;

const SHORT: &str = r#"
title = "Short"
families = [
    { name = "inet.http", title = "HTTP" },
    { name = "inet.back", title = "TCP" },
    { name = "inet.udp", title = "UDP" },
]
runs = 1
seed = 1
window = { warmup_s = 0.0, measure_s = 0.4, slice_ms = 50.0 }
[subject]
kind = "veth"
[subject.traffic.client]
offloads = "wire"
[subject.streams]
http.client = { load = "http", bytes = 100 }
back.client = { load = "tcp-back", connections = 2 }
udp.client = { load = "udp", bytes = 64 }
[[variants]]
name = "kernel"
label = "the kernel alone"
set.veth.engine = "kernel"
[[variants]]
name = "xdp"
label = "the XDP engine"
set.veth = { engine = "xdp", options = ["--quiet"] }
"#;

fn bench(folder: &Path, text: &str, path: Option<&str>, more: &[&str]) -> Child {
    std::fs::write(folder.join("short.toml"), text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fullview"));
    command.args(["bench", "short.toml", "--out", "out"]).args(more).current_dir(folder);
    command.envs(path.map(|path| ("PATH", path)));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn refused(text: &str, path: Option<&str>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let Output { status, stderr, .. } = bench(folder.path(), text, path, &[]).wait_with_output().unwrap();
    assert_eq!(status.code(), Some(2));
    String::from_utf8(stderr).unwrap()
}

/// The cell of a variant in a family.
fn cell<'r>(report: &'r Value, variant: &str, family: &str) -> &'r Value {
    let cells = report["cells"].as_array().unwrap();
    cells.iter().find(|cell| cell["variant"] == variant && cell["family"] == family).unwrap()
}

#[test]
fn real_clients_measure_the_kernel_and_an_engine_in_units_of_their_own() {
    if !may_run(&["ip", "ethtool", "iperf3", "curl"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let child = bench(folder.path(), SHORT, None, &[]);
    let process = child.id();
    let done = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(matches!(done.status.code(), Some(0 | 3)), "{said}");
    let report = std::fs::read_to_string(folder.path().join("out/report.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    let units = [("http", "requests"), ("back", "kilobits"), ("udp", "packets")];
    for (family, unit) in units.map(|(stream, unit)| (format!("inet.{stream}"), unit)) {
        for variant in ["kernel", "xdp"] {
            let cell = cell(&report, variant, &family);
            assert_eq!(cell["metric"], format!("{unit}-per-second carried"));
            assert!(cell["counters"]["received"].as_f64().unwrap() > 100.0, "{cell}\n{said}");
        }
        let forwarded = &cell(&report, "xdp", &family)["counters"]["forwarded by the program"];
        assert!(forwarded.as_f64().unwrap() > 100.0, "{family}: {forwarded}");
    }
    let namespaces = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let left =
        namespaces.filter(|name| name.file_name().to_string_lossy().starts_with(&format!("fv{process}v")));
    assert_eq!(left.count(), 0, "namespaces are left behind");
}

#[test]
fn what_is_missing_is_named_with_its_package() {
    let said = refused(SHORT, Some("/nowhere"));
    assert!(said.contains("curl is not installed: `apt install curl`"), "{said}");
    let iperf = SHORT.replace("{ name = \"inet.http\", title = \"HTTP\" },", "");
    let said = refused(&iperf, Some("/nowhere"));
    assert!(said.contains("iperf3 is not installed: `apt install iperf3`"), "{said}");
}

#[test]
fn settings_that_cannot_be_measured_are_refused() {
    if !has_programs(&["ethtool", "iperf3", "curl"]) {
        return;
    }
    for (of, instead, words) in [
        (", slice_ms = 50.0", "", "window.slice_ms"),
        ("set.veth.engine = \"kernel\"", "", "veth.engine"),
        ("load = \"udp\", ", "", "traffic.client.load"),
        ("load = \"udp\"", "load = \"udp\", connections = 0", "connections"),
        ("offloads = \"wire\"", "offloads = \"some\"", "short.toml:14:12"),
        ("kind = \"veth\"", "kind = \"veth\"\ntraffic.flows = 9", "belongs to subjects of kind"),
        ("http.client", "http.flows = 9\nhttp.client", "streams.http.flows belongs to"),
        ("kind = \"veth\"", "kind = \"veth\"\ntable.inet = 9", "table.inet belongs to"),
    ] {
        assert!(SHORT.contains(of), "{of}");
        let said = refused(&SHORT.replacen(of, instead, 1), None);
        assert!(said.contains(words), "{instead}: {said}");
    }
}

/// One family, against another program.
fn against(folder: &Path, other: &Path) -> Output {
    let families = &SHORT[SHORT.find("families").unwrap()..SHORT.find("runs").unwrap()];
    let text = SHORT.replace(families, "families = [{ name = \"inet.http\", title = \"HTTP\" }]\n");
    bench(folder, &text, None, &["--against", other.to_str().unwrap()]).wait_with_output().unwrap()
}

/// The program that measures decides how long each slice is.
#[test]
fn two_builds_take_turns_between_clients() {
    if !may_run(&["ip", "ethtool", "curl"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Output { status, stderr, .. } = against(folder.path(), Path::new(env!("CARGO_BIN_EXE_fullview")));
    let said = String::from_utf8_lossy(&stderr);
    assert!(matches!(status.code(), Some(0 | 3)), "{said}");
    let report = std::fs::read_to_string(folder.path().join("out/report.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    for variant in ["kernel-before", "kernel-after", "xdp-before", "xdp-after"] {
        let received = &cell(&report, variant, "inet.http")["counters"]["received"];
        assert!(received.as_f64().unwrap() > 100.0, "{variant}: {received}\n{said}");
    }
}

#[test]
fn a_build_that_serves_no_slices_between_clients_is_refused() {
    if !has_programs(&["ethtool", "curl"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let older = folder.path().join("older.sh");
    let debug = cfg!(debug_assertions);
    let hello = format!(r#"{{"hello":{{"protocol":1,"version":"0.0.9","debug":{debug},"features":[]}}}}"#);
    std::fs::write(&older, format!("#!/bin/sh\necho '{hello}'; cat\n")).unwrap();
    std::fs::set_permissions(&older, Permissions::from_mode(0o755)).unwrap();
    let Output { status, stderr, .. } = against(folder.path(), &older);
    let said = String::from_utf8_lossy(&stderr);
    assert_eq!(status.code(), Some(2), "{said}");
    assert!(said.contains("older than the first that serves slices of kind \"veth\""), "{said}");
    assert!(!folder.path().join("out").exists(), "nothing is measured");
}
