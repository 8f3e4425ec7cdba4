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

/// A kernel whose rules drop some packets must not be measured.
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
    assert!(!done.status.success(), "{said}");
    assert!(said.contains("came out right"), "{said}");
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
}
