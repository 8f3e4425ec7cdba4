//! `fullview bench` with devices between namespaces, from end to end.
#![cfg(feature = "bpf")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // also in helpers: a test fails by panicking

use std::path::Path;
use std::process::{Command, Output};

use fullview_testnet::may_run;
use serde_json::Value;

const SHORT: &str = r#"
title = "Short"
families = ["inet", "inet6"]
runs = 1
seed = 1
window = { warmup_s = 0.0, measure_s = 0.1, slice_ms = 20.0 }
[subject]
kind = "testbed"
table.source = "two-routes"
traffic.flows = 200
[[variants]]
name = "kernel"
label = "the kernel"
set.testbed = { device = "kernel", redirects = true }
[[variants]]
name = "stateful"
label = "the kernel with rules"
[variants.set.testbed]
device = "kernel"
start = [
    "nft add table inet lab",
    "nft add chain inet lab forward '{ type filter hook forward priority 0; policy drop; }'",
    "nft add rule inet lab forward iifname $INGRESS oifname $EGRESS ct state new,established accept",
]
[[variants]]
name = "threads"
label = "threads"
set.testbed = { device = "threads", options = ["--quiet", "--algorithm", "radix"] }
[[variants]]
name = "tc"
label = "tc"
set.testbed = { device = "tc", options = ["--quiet"] }
"#;

fn bench(folder: &Path, text: &str) -> Output {
    std::fs::write(folder.join("short.toml"), text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fullview"));
    command.args(["bench", "short.toml", "--out", "out"]).current_dir(folder);
    command.output().unwrap()
}

fn refused(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let Output { status, stderr, .. } = bench(folder.path(), text);
    assert_eq!(status.code(), Some(2), "{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stderr).unwrap()
}

#[test]
fn every_device_carries_every_packet_and_is_counted() {
    if !may_run(&["ip", "ethtool", "nft", "chrt"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let done = bench(folder.path(), SHORT);
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(matches!(done.status.code(), Some(0 | 3)), "{said}");
    let panels = std::fs::read_to_string(folder.path().join("out/panels.jsonl")).unwrap();
    for word in ["misrouted", "refused", "set_aside", "wrong_flows"] {
        assert!(!panels.contains(&format!("\"{word}\"")), "{word}: {panels}\n{said}");
    }
    let report = std::fs::read_to_string(folder.path().join("out/report.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    let cells = report["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 8);
    for cell in cells {
        let count = |name: &str| cell["counters"][name].as_f64().unwrap_or(0.0);
        assert!(count("received") > 0.0, "{cell}\n{said}");
        let is_program = ["threads", "tc"].contains(&cell["variant"].as_str().unwrap());
        assert_eq!(count("forwarded by the program") > 0.0, is_program, "{cell}");
    }
}

/// Devices with rules, and many packets from the generator in the kernel.
const FILTERS: &str = r#"
title = "filters"
seed = 1
families = [{ name = "inet", title = "IPv4" }, { name = "inet6", title = "IPv6" }]
runs = 1
window = { warmup_s = 0.02, measure_s = 0.1, slice_ms = 20.0 }
[subject]
kind = "testbed"
table.source = "two-routes"
testbed.generator = "live"
[subject.traffic]
model = "ranges"
flows = 200
source = "198.18.10.1:2000"
destination = "198.19.10.1:2000-198.19.10.200"
source6 = "[2001:2:0:10::1]:2000"
destination6 = "[2001:2:0:8010::1]:2000-[2001:2:0:8010::c8]"
[[variants]]
name = "kernel"
label = "kernel"
set.testbed.device = "kernel"
[[variants]]
name = "pf"
label = "pf"
set.testbed = { device = "threads", options = ["--quiet", "--port", "xdp"] }
set.filter = { language = "pf", rules = "include \"other-rules\"\nblock all\npass proto udp to port 2000\n", other-rules = 20 }
[[variants]]
name = "impossible"
label = "impossible"
set.testbed = { device = "kernel", start = ["echo no such thing >&2; false"] }
"#;

#[test]
fn devices_with_rules_carry_what_the_generator_in_the_kernel_sends() {
    if !may_run(&["ip", "ethtool", "nft", "chrt"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let done = bench(folder.path(), FILTERS);
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(matches!(done.status.code(), Some(0 | 3)), "{said}");
    let report = std::fs::read_to_string(folder.path().join("out/report.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    let count = |cell: &Value, name: &str| cell["counters"][name].as_f64().unwrap_or(0.0);
    for cell in report["cells"].as_array().unwrap() {
        let runs = cell["variant"] != "impossible";
        assert_eq!(count(cell, "received") > 1000.0, runs, "{cell}\n{said}");
        assert_eq!(count(cell, "forwarded by the program") > 1000.0, cell["variant"] == "pf", "{cell}");
    }
    let panels = std::fs::read_to_string(folder.path().join("out/panels.jsonl")).unwrap();
    assert!(!panels.contains("\"misrouted\""), "{panels}\n{said}");
    let page = std::fs::read_to_string(folder.path().join("out/README.md")).unwrap();
    assert!(page.contains("no such thing"), "{page}");
}

/// A kernel whose routes drop some packets must not be measured; the other one is.
#[test]
fn a_device_that_loses_packets_before_its_turns_is_no_result() {
    if !may_run(&["ip", "ethtool", "nft", "chrt"]) {
        return;
    }
    let rules = "set.testbed = { device = \"kernel\", start = [\"ip route add blackhole 198.19.10.7/32\"] }";
    let text = SHORT.replace("set.testbed = { device = \"kernel\", redirects = true }", rules);
    let text = text[..text.find("[[variants]]\nname = \"stateful\"").unwrap()].to_owned();
    let text = text.replace("[\"inet\", \"inet6\"]", "[\"inet\"]");
    let second = "[[variants]]\nname = \"other\"\nlabel = \"other\"\nset.testbed.device = \"kernel\"\n";
    let folder = tempfile::tempdir().unwrap();
    let done = bench(folder.path(), &(text + second));
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(3), "{said}");
    let page = std::fs::read_to_string(folder.path().join("out/README.md")).unwrap();
    assert!(page.contains("took no turns (misrouted") && page.contains("came out right"), "{page}");
    let report = std::fs::read_to_string(folder.path().join("out/report.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    let is_measured = |cell: &Value| !cell["values"].as_array().unwrap().is_empty();
    let cells: Vec<bool> = report["cells"].as_array().unwrap().iter().map(is_measured).collect();
    assert_eq!(cells, [false, true], "{page}");
}

#[test]
fn settings_that_no_device_has_are_refused() {
    if !may_run(&["ip"]) {
        return;
    }
    for (of, instead, words) in [
        (", slice_ms = 20.0", "", "window.slice_ms"),
        ("device = \"threads\", ", "", "testbed.device"),
        ("device = \"threads\"", "device = \"kernel\"", "testbed.options"),
        ("device = \"threads\"", "device = \"thread\"", "testbed.device = \"thread\""),
        ("device = \"threads\"", "redirects = true, device = \"threads\"", "testbed.redirects"),
        ("traffic.flows = 200", "traffic.size = 900", "traffic.size belongs to"),
        ("traffic.flows = 200", "router.algorithm = \"radix\"", "router.algorithm belongs to"),
    ] {
        assert!(SHORT.contains(of), "{of}");
        let said = refused(&SHORT.replacen(of, instead, 1));
        assert!(said.contains(words), "{instead}: {said}");
    }
    for (of, instead, words) in [
        (
            "set.testbed.device = \"kernel\"",
            "set.testbed = { device = \"kernel\" }\nset.filter.language = \"pf\"",
            "filter is for a router of this program",
        ),
        ("other-rules = 20", "known-flows = 20", "filter.known-flows"),
        ("pass proto udp", "pass proto nothing", "filter.rules:3"),
    ] {
        assert!(FILTERS.contains(of), "{of}");
        let said = refused(&FILTERS.replacen(of, instead, 1));
        assert!(said.contains(words), "{instead}: {said}");
    }
}
