//! Packets of IPv6.

use fullview_testnet::may_run;
use serde_json::Value;

use crate::convergence::was_disturbed;
use crate::device;
use crate::support::{measured, page, run, stderr};

const ROUTERS: [&str; 6] = ["auto", "threads", "threads-xdp", "tc", "xdp", "xdp-generic"];

fn mrr(report: &Value, name: &str) -> f64 {
    device(report, name)["searches"][0]["mrr"].as_f64().unwrap()
}

#[test]
fn every_device_forwards_ipv6() {
    if !may_run(&["ip", "ethtool", "chrt", "setpriv", "nft", "ip6tables-restore"]) {
        return;
    }
    let others = ["link", "kernel", "kernel-stateful", "kernel-iptables", "fib-lookup"];
    let (folder, devices) = (tempfile::tempdir().unwrap(), [&others[..], &ROUTERS].concat());
    let names = [&devices[..], &["off"]].concat();
    let report = measured(folder.path(), &names, &["--family", "inet6", "--devices", &names.join(",")]);
    assert!(devices.iter().all(|name| mrr(&report, name) > 0.0), "{report:#}");
    assert_eq!(mrr(&report, "off"), 0.0, "{report:#}");
    assert_eq!((&report["family"], &report["frame_bytes"]), (&"inet6".into(), &[74].into()));
    assert!(page(folder.path()).contains("(IPv6, 74 bytes without FCS)"));
}

/// The engine that is refused where VLAN tags are hidden, beside those of other tests.
#[test]
fn every_engine_forwards_ipv4() {
    if !may_run(&["ip", "ethtool", "chrt", "setpriv"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let report = measured(folder.path(), &ROUTERS, &["--devices", &ROUTERS.join(",")]);
    assert!(ROUTERS.iter().all(|name| mrr(&report, name) > 0.0), "{report:#}");
    assert_eq!((&report["family"], &report["frame_bytes"]), (&"inet".into(), &[60].into()));
}

#[test]
fn probes_of_ipv6_come_out() {
    if !may_run(&["ip", "ethtool", "chrt", "setpriv"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let report =
        measured(folder.path(), &["kernel"], &["--family", "inet6", "--devices", "kernel", "--latency"]);
    let levels = device(&report, "kernel")["searches"][0]["latency"].as_array().unwrap();
    assert!(!levels.is_empty());
    for level in levels {
        let [probes, lost] = ["probes", "lost"].map(|count| level["device"][count].as_u64().unwrap());
        assert!(lost < probes && level["device"]["delays"]["min"].as_u64().unwrap() > 0, "{level}");
    }
}

#[test]
fn routes_of_ipv6_change_and_fail() {
    if !may_run(&["ip", "ethtool", "chrt", "setpriv"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("updates.txt");
    let updates = "1 a 2001:db8:7::/48 2001:db8::1\n1 a 198.18.7.0/24 192.0.2.2\n2 w 2001:db8:7::/48\n";
    std::fs::write(&trace, updates).unwrap();
    let changes = ["--changes", "200", "--trace", trace.to_str().unwrap()];
    let failures = ["--family", "inet6", "--devices", "kernel,tc", "--routes", "2000", "--convergence=2"];
    let report = measured(folder.path(), &["kernel", "tc"], &[&failures[..], &changes].concat());
    for name in ["kernel", "tc"] {
        let search = &device(&report, name)["searches"][0];
        assert!(mrr(&report, name) > 0.0, "{search:#}");
        assert_eq!(search["routes"]["routes"], 2000);
        assert!(
            search["changes"]["made"].as_u64() > Some(0) && search["changes"]["traced"] == true,
            "{search:#}"
        );
        assert_recovered(name, search);
    }
}

fn assert_recovered(name: &str, search: &Value) {
    let failures = search["convergence"].as_array().into_iter().flatten();
    for outage in failures.flat_map(|failure| failure["outages"].as_array().unwrap()) {
        assert_eq!(outage["recovered"], true, "{name}: {search:#}");
    }
    let kinds = search["convergence"].as_array().map_or(0, Vec::len);
    assert!(kinds == 6 || was_disturbed(search), "{name}: {search:#}");
}

#[test]
fn frames_too_short_for_ipv6_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let done = run(folder.path(), &["--family", "inet6", "--size", "73"]);
    let expected = "--size: the smallest frame of IPv6 has 74 bytes";
    assert!(done.status.code() == Some(2) && stderr(&done).contains(expected), "{}", stderr(&done));
}
