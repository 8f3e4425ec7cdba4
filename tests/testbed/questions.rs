//! What is asked of a device between hosts beside its rates.

use std::fs;

use fullview_testnet::{cable, eventually, may_run};
use serde_json::Value;

use crate::hosts::SshHosts;
use crate::remote::{PROGRAMS, THREE, fullview, measure_with, mrr, said, two, write};

/// Other work may disturb a measurement, which says so.
const ATTEMPTS: usize = 3;

/// The receiver has a second wire to the device under test.
fn with_spare() -> SshHosts {
    let hosts = SshHosts::start(&["sender", "dut", "receiver"]);
    let [sender, dut, receiver] = ["sender", "dut", "receiver"].map(|name| &hosts.host(name).node);
    cable((sender, "eth1"), (dut, "in"));
    cable((dut, "out"), (receiver, "eth1"));
    cable((dut, "out2"), (receiver, "eth2"));
    let own = "{ name = \"eth1\", address = \"198.19.0.2/24\" }";
    let text = THREE
        .replace("[\"dut:out\", \"receiver:eth1\"]", "[\"dut:out\", \"receiver:eth1\"], [\"dut:out2\", \"receiver:eth2\"]")
        .replace(own, &format!("{own}, {{ name = \"eth2\", address = \"192.0.2.2/24\", spare = true }}"))
        .replace(
            "{ name = \"out\", address = \"198.19.0.1/24\" }",
            "{ name = \"out\", address = \"198.19.0.1/24\" }, { name = \"out2\", address = \"192.0.2.1/24\" }",
        );
    write(&hosts, &text);
    hosts
}

fn searches<'r>(report: &'r Value, name: &str) -> &'r Value {
    let devices = report["devices"].as_array().unwrap();
    &devices.iter().find(|device| device["device"] == name).unwrap()["searches"][0]
}

fn page(hosts: &SshHosts) -> String {
    fs::read_to_string(hosts.path("out/README.md")).unwrap()
}

#[test]
fn routes_of_a_device_between_hosts_change_and_are_removed() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let hosts = two();
    let dut = hosts.host("dut");
    let routes = || (dut.node.ip("-4 route show"), dut.node.ip("neighbor show nud permanent"));
    let before = routes();
    let trace = hosts.path("updates.txt");
    fs::write(&trace, "1 a 198.51.99.0/24 192.0.2.1\n1 a 198.51.98.0/23 192.0.2.2\n2 w 198.51.99.0/24\n")
        .unwrap();
    let changes = ["--changes", "100", "--trace", trace.to_str().unwrap()];
    let report = measure_with(&hosts, &[&["--routes", "600", "--size", "imix"][..], &changes].concat());
    assert_eq!(report["frame_bytes"].as_array().unwrap().len(), 12);
    for name in ["threads", "lines"] {
        assert!(mrr(&report, name) > 0.0, "{report}");
        let (routes, changes) = (&searches(&report, name)["routes"], &searches(&report, name)["changes"]);
        assert!(routes["routes"].as_u64().unwrap() > 500, "{name}: {routes}");
        assert!(routes["load_seconds"].as_f64() <= routes["forwards_seconds"].as_f64(), "{name}: {routes}");
        assert_eq!(routes["program"].is_null(), name == "lines", "{name}: {routes}");
        assert!(changes["made"].as_u64().unwrap() > 0 && changes["traced"] == true, "{name}: {changes}");
    }
    assert!(page(&hosts).contains("## Routes"));
    assert_eq!(routes(), before);
}

#[test]
fn routes_of_ipv6_change_and_fail_between_hosts() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let hosts = with_spare();
    let text = fs::read_to_string(hosts.path("lab.toml")).unwrap();
    let text = text.replace("198.18.0.", "2001:2:0:1::").replace("198.19.0.", "2001:2:0:2::");
    write(&hosts, &text.replace("192.0.2.", "2001:2:0:3::").replace("/24", "/64"));
    let dut = hosts.host("dut");
    let routes = || dut.node.ip("-6 route show to root 2000::/3");
    let before = routes();
    let more = ["--devices", "kernel", "--routes", "600", "--changes", "100", "--convergence=2"];
    let mut measured = (0..ATTEMPTS).filter_map(|_| {
        let report = measure_with(&hosts, &more);
        assert_eq!(routes(), before);
        let search = searches(&report, "kernel");
        assert!(mrr(&report, "kernel") > 0.0 && search["routes"]["routes"].as_u64() > Some(500), "{report}");
        assert!(search["changes"]["made"].as_u64() > Some(0), "{report}");
        convergence(&report, "kernel")
    });
    let found = measured.next().expect("other work disturbed all measurements");
    assert!(found.len() == 6 && found.iter().all(|one| one["outages"][0]["recovered"] == true), "{found:?}");
}

#[test]
fn quick_has_latency_and_a_profile_of_the_device_between_hosts() {
    if !may_run(&[&PROGRAMS[..], &["perf"]].concat()) {
        return;
    }
    let hosts = two();
    let report = measure_with(&hosts, &["--quick", "--devices", "threads"]);
    assert!(!searches(&report, "threads")["latency"].as_array().unwrap().is_empty(), "{report}");
    let profile = &report["profile"];
    assert_eq!(profile["failed"].as_array().unwrap().len(), 0, "{profile}");
    let one = &profile["profiles"][0];
    let stages: f64 =
        one["stages"].as_array().unwrap().iter().map(|stage| stage["share"].as_f64().unwrap()).sum();
    assert!((stages - 1.0).abs() < 1e-9, "{one}");
    assert!(one["quality"]["samples"].as_u64() > Some(0), "{one}");
    let stacks = fs::read_to_string(hosts.path("out/profile-threads.folded")).unwrap();
    assert!(
        stacks.contains("fullview_plane::"),
        "the names of the program's functions are missing: {stacks}"
    );
    assert!(
        fs::read_to_string(hosts.path("out/profile-threads.svg")).unwrap().trim_end().ends_with("</svg>")
    );
    let page = page(&hosts);
    assert!(page.contains("## Where the time goes") && !page.contains("the right host receives"), "{page}");
}

#[test]
fn the_link_and_the_route_of_a_device_between_hosts_fail() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let hosts = with_spare();
    let dut = hosts.host("dut");
    dut.node.ip("address add 198.19.0.1/24 dev out");
    dut.node.ip("link set out up");
    dut.node.ip("route add 100.64.7.0/24 via 198.19.0.9 dev out");
    dut.node.ip("-6 address add 2001:db8:7::1/64 dev out nodad");
    dut.node.ip("-6 route add 2001:db8:8::/48 via 2001:db8:7::9 dev out");
    let routes = || (dut.node.ip("-4 route show"), dut.node.ip("-6 route show to root 2001:db8::/32"));
    let before = routes();
    assert!(before.1.contains("2001:db8:8::/48"), "{before:?}");
    let mut measured = (0..ATTEMPTS).filter_map(|_| {
        let report = measure_with(&hosts, &["--devices", "kernel", "--convergence=2"]);
        assert_eq!(routes(), before);
        convergence(&report, "kernel")
    });
    let found = measured.next().expect("other work disturbed all measurements");
    assert_eq!(found.len(), 3, "{found:?}");
    for one in found {
        let shared = one["failure"] == "multipath-link";
        for outage in one["outages"].as_array().unwrap() {
            let share = outage["share"].as_f64().unwrap();
            assert!(if shared { (0.1..0.9).contains(&share) } else { share == 1.0 }, "{one}");
            assert!(outage["recovered"].as_bool().unwrap(), "{one}");
        }
    }
    assert!(page(&hosts).contains("## Failures"));
}

/// Its lines are the first to set what the failing link needs, and the last to remove it.
#[test]
fn links_that_fail_leave_nothing_behind_a_device_of_lines() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let hosts = with_spare();
    let receiver = &hosts.host("receiver").node;
    let text = fs::read_to_string(hosts.path("lab.toml")).unwrap();
    let lines = LINES.replace("$FIRST", &receiver.mac("eth1")).replace("$SECOND", &receiver.mac("eth2"));
    write(&hosts, &(text + &lines));
    let dut = hosts.host("dut");
    let set = || (dut.node.ip("-4 route show"), dut.node.ip("neighbor show nud permanent"));
    let before = set();
    let mut measured = (0..ATTEMPTS).filter_map(|_| {
        let report = measure_with(&hosts, &["--devices", "lines", "--convergence=1"]);
        assert_eq!(set(), before);
        convergence(&report, "lines")
    });
    assert!(measured.next().is_some(), "other work disturbed all measurements");
}

const LINES: &str = r#"
[[devices]]
name = "lines"
kind = "command"
start = [
    "sysctl -q -w net.ipv4.conf.in.forwarding=1",
    "ip address add 198.18.0.1/24 dev in",
    "ip address add 198.19.0.1/24 dev out",
    "ip address add 192.0.2.1/24 dev out2",
    "ip neighbor add 198.19.0.2 lladdr $FIRST dev out",
    "ip neighbor add 192.0.2.2 lladdr $SECOND dev out2",
    "ip route add 100.64.7.0/24 dev out",
]
stop = [
    "ip route del 100.64.7.0/24 dev out",
    "ip neighbor del 192.0.2.2 dev out2",
    "ip neighbor del 198.19.0.2 dev out",
    "ip address del 192.0.2.1/24 dev out2",
    "ip address del 198.19.0.1/24 dev out",
    "ip address del 198.18.0.1/24 dev in",
    "sysctl -q -w net.ipv4.conf.in.forwarding=0",
]
"#;

/// What was found of each failure, unless other work disturbed it.
fn convergence(report: &Value, device: &str) -> Option<Vec<Value>> {
    let search = searches(report, device);
    let reasons = search["unanswered"].as_array().into_iter().flatten();
    for reason in reasons.map(|reason| reason.as_str().unwrap()) {
        eprintln!("again: {reason}");
        assert!(reason.contains("without loss") || reason.contains("disturbed"), "{reason}");
    }
    search["convergence"].as_array().filter(|found| !found.is_empty()).cloned()
}

#[test]
fn what_hosts_of_an_inventory_cannot_answer_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |inventory: &str, option: &str, reason: &str| {
        fs::write(folder.path().join("lab.toml"), inventory).unwrap();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_fullview"));
        let done =
            command.args(["rates", "--testbed", "lab.toml", option]).current_dir(folder.path()).output();
        let done = done.unwrap();
        assert_eq!(done.status.code(), Some(2), "{}", said(&done));
        assert!(said(&done).contains(reason), "{}", said(&done));
    };
    refused(THREE, "--convergence", "a second interface with `spare = true`");
    let without_agent = THREE
        .replace("role = \"dut\"", "role = \"dut\"\nagent = false")
        .replace("\"198.18.0.1/24\"", "\"198.18.0.1/24\", mac = \"02:00:00:00:00:01\"")
        .replace("\"198.19.0.1/24\"", "\"198.19.0.1/24\", mac = \"02:00:00:00:00:02\"")
        .replace("kind = \"kernel\"", "kind = \"command\"\nstart = [\"true\"]")
        .replace("kind = \"off\"", "kind = \"command\"\nstart = [\"true\"]");
    refused(&without_agent, "--profile", "this program does not run on dut");
    refused(&without_agent, "--routes=1000", "this program does not run on dut");
}

#[test]
fn a_campaign_between_hosts_is_resumed() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let hosts = two();
    let first = measure_with(&hosts, &[]);
    let done = fullview(&hosts, &["rates", "--testbed", "lab.toml", "--out", "out", "--resume"]);
    assert_eq!(done.status.code(), Some(2), "other options: {}", said(&done));
    let text = fs::read_to_string(hosts.path("out/turns.jsonl")).unwrap();
    let kept: Vec<&str> = text.lines().take(2).collect();
    fs::write(hosts.path("out/turns.jsonl"), kept.join("\n") + "\n").unwrap();
    let again = measure_with(&hosts, &["--resume"]);
    let kept: Value = serde_json::from_str(kept[1]).unwrap();
    let name = kept["device"].as_str().unwrap();
    assert_eq!(searches(&first, name), searches(&again, name), "a finished search is not made again");
    assert!(mrr(&again, "threads") > 0.0 && mrr(&again, "lines") > 0.0, "{again}");
}

#[test]
fn a_setting_that_others_change_makes_a_repetition_invalid() {
    if !may_run(&[&PROGRAMS[..], &["ethtool"]].concat()) {
        return;
    }
    let hosts = two();
    // The first device changes what the test bed was prepared with, and leaves it changed.
    let text = fs::read_to_string(hosts.path("lab.toml")).unwrap();
    let line = "start = [\n    \"sysctl -q -w net.ipv4.conf.in.forwarding=1\",";
    assert!(text.contains(line), "{text}");
    fs::write(
        hosts.path("lab.toml"),
        text.replace(line, &line.replace("start = [", "start = [\n    \"ethtool -K in gro on\",")),
    )
    .unwrap();
    let options =
        ["rates", "--testbed", "lab.toml", "--devices", "lines", "--out", "out", "--most-load", "5000"];
    let done = fullview(&hosts, &options);
    hosts.assert_idle();
    assert_eq!(done.status.code(), Some(1), "{}", said(&done));
    assert!(
        said(&done).contains("dut: in: offloads was changed since the measurement began"),
        "{}",
        said(&done)
    );
}

#[test]
fn the_interfaces_of_a_test_bed_are_for_one_measurement() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let hosts = two();
    // The first trial is longer than this test: the device gets its settings back between turns.
    let options = ["rates", "--testbed", "lab.toml", "--devices", "lines", "--trial-seconds", "60"];
    let mut first = crate::remote::command(&options, &hosts);
    let mut first = hosts.control.run(move || first.spawn().unwrap());
    let dut = hosts.host("dut");
    let began = eventually(|| dut.setting("in", "forwarding") == "1" || first.try_wait().unwrap().is_some());
    assert!(began && first.try_wait().unwrap().is_none());
    let second = fullview(&hosts, &[&options[..], &["--out", "other"]].concat());
    assert_eq!(second.status.code(), Some(1), "{}", said(&second));
    assert!(said(&second).contains("another measurement uses this interface"), "{}", said(&second));
    assert_eq!(
        dut.setting("in", "forwarding"),
        "1",
        "the second one has changed the device of the first one"
    );
    first.kill().unwrap();
    first.wait().unwrap();
    hosts.assert_idle();
}

#[test]
fn a_repetition_is_made_again_when_a_lost_host_is_back() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let hosts = two();
    let options =
        ["rates", "--testbed", "lab.toml", "--devices", "lines", "--out", "out", "--json", "--seed", "7"];
    let short =
        ["--repetitions", "1", "--trial-seconds", "0.05", "--most-seconds", "60", "--most-load", "5000"];
    let mut command = crate::remote::command(&[&options[..], &short].concat(), &hosts);
    let mut child = hosts.control.run(move || command.spawn().unwrap());
    let searches =
        || fs::read_to_string(hosts.path("out/trials.jsonl")).unwrap_or_default().lines().count() > 2;
    assert!(eventually(|| searches() || child.try_wait().unwrap().is_some()));
    hosts.control.ip("link set m2 down");
    let dut = hosts.host("dut");
    assert!(eventually(|| dut.work().is_empty()), "{:?}", dut.work());
    hosts.control.ip("link set m2 up");
    let done = child.wait_with_output().unwrap();
    assert!(matches!(done.status.code(), Some(0 | 3)), "{}", said(&done));
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    let reason = report["devices"][0]["repeated"][0]["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("dut: "), "{report}");
    assert!(mrr(&report, "lines") > 0.0, "{report}");
    assert!(page(&hosts).contains("was measured again: "));
    hosts.assert_idle();
}
