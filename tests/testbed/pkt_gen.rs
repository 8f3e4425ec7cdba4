//! Hosts on which netmap's pkt-gen sends and receives, instead of this program: `pkt-gen.py` behaves as it does.

use std::fs;
use std::process::Output;

use fullview_testnet::{cable, eventually, may_run};
use serde_json::Value;

use crate::hosts::SshHosts;
use crate::remote::{PROGRAMS, THREE, command, fullview, mrr, said, three, write};

const SEND: &str = "pkt-gen -N -f tx -i {interface} -R {pps} -n {packets} -l {bytes} -s {source} -d {destination}:9 \
                    -S {source-mac} -D {next-hop-mac}";
const RECEIVE: &str = "pkt-gen -N -f rx -i {interface} -T 100";
const SHORT: [&str; 11] = [
    "rates",
    "--testbed",
    "lab.toml",
    "--out",
    "out",
    "--force",
    "--json",
    "--repetitions",
    "1",
    "--most-load",
    "3000",
];
const TIMES: [&str; 4] = ["--trial-seconds", "0.1", "--most-seconds", "1"];

const ATTEMPTS: usize = 3;

/// Every frame counts, so that no host may send one of its own.
const QUIET: &str = "start = [\"sysctl -q -w net.ipv6.conf.all.disable_ipv6=1\"]";

/// The three hosts of other tests, quiet, with lines that send and receive.
fn inventory(hosts: &SshHosts, send: &str, receive: &str) -> String {
    let end = |name: &str, key: &str, line: &str, address: &str| {
        let mac = hosts.host(name).node.mac("eth1");
        let line =
            if line.is_empty() { String::new() } else { format!("agent = false\n{key} = \"{line}\"\n") };
        format!(
            "{QUIET}\n{line}interfaces = [{{ name = \"eth1\", address = \"{address}\", mac = \"{mac}\" }}]"
        )
    };
    let own = |address: &str| format!("interfaces = [{{ name = \"eth1\", address = \"{address}\" }}]");
    let (from, to) = ("198.18.0.2/24", "198.19.0.2/24");
    THREE
        .replace("start = [\"touch $FOLDER/started\"]\nstop = [\"rm $FOLDER/started\"]", QUIET)
        .replace(&own(from), &end("sender", "send", send, from))
        .replace(&own(to), &end("receiver", "receive", receive, to))
}

fn hosts() -> SshHosts {
    let hosts = three();
    fs::write(hosts.path("pkt-gen.py"), include_str!("pkt-gen.py")).unwrap();
    hosts
}

/// Measures with these lines; without one that sends, by the program's own generator.
fn measure(hosts: &SshHosts, send: &str, receive: &str, more: &[&str]) -> Output {
    prepare(hosts, send, receive);
    let done = fullview(hosts, &[&SHORT[..], &TIMES, more].concat());
    hosts.assert_idle();
    done
}

fn prepare(hosts: &SshHosts, send: &str, receive: &str) {
    let program = format!("python3 {} ", hosts.path("pkt-gen.py").display());
    write(hosts, &inventory(hosts, send, receive).replace("pkt-gen -", &format!("{program}-")));
}

/// The same report, again if other work took the generator's core.
fn measured(hosts: &SshHosts, send: &str, receive: &str, more: &[&str]) -> Value {
    for _ in 0..ATTEMPTS {
        let done = measure(hosts, send, receive, more);
        if said(&done).contains("holds no load") {
            continue;
        }
        let report = report(&done);
        let failed = failures(&report);
        assert!(failed.iter().all(|reason| reason.contains("fell behind")), "{failed:?}");
        if failed.is_empty() {
            return report;
        }
    }
    panic!("other work took the generator's core {ATTEMPTS} times");
}

/// Why devices have no search.
fn failures(report: &Value) -> Vec<String> {
    let devices = report["devices"].as_array().unwrap().iter();
    let failed = devices.filter(|device| device["searches"][0].is_null());
    failed.map(|device| device["failed"][0]["reason"].as_str().unwrap().to_owned()).collect()
}

/// A short search may end before it has found its loads.
fn report(done: &Output) -> Value {
    assert!(matches!(done.status.code(), Some(0 | 3)), "{}", said(done));
    serde_json::from_slice(&done.stdout).unwrap()
}

fn trials(hosts: &SshHosts) -> Vec<Value> {
    let text = fs::read_to_string(hosts.path("out/trials.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn may() -> bool {
    may_run(&[&PROGRAMS[..], &["python3", "timeout"]].concat())
}

#[test]
fn pkt_gen_measures_a_device() {
    if !may() {
        return;
    }
    let hosts = hosts();
    let report = measured(&hosts, SEND, RECEIVE, &[]);
    assert!(mrr(&report, "kernel") > 0.0 && mrr(&report, "closed") == 0.0, "{report:#}");
    let trials = trials(&hosts);
    let of = |name| trials.iter().filter(move |trial| trial["device"] == name && trial["counts"] == true);
    assert!(of("kernel").any(|trial| trial["sent"] == trial["received"]), "{trials:#?}");
    assert!(of("closed").all(|trial| trial["received"] == 0), "{trials:#?}");
    let page = fs::read_to_string(hosts.path("out/README.md")).unwrap();
    assert!(page.contains("## Generator and receiver") && page.contains("-f rx -i {interface}"), "{page}");
}

#[test]
fn a_receiver_that_ends_with_the_packets_is_started_again() {
    if !may() {
        return;
    }
    let hosts = hosts();
    let report = measured(&hosts, SEND, &format!("{RECEIVE} -W"), &["--devices", "kernel"]);
    assert!(mrr(&report, "kernel") > 0.0, "{report:#}");
    assert!(
        trials(&hosts).iter().any(|trial| trial["sent"] == trial["received"]),
        "packets of a trial were lost"
    );
}

#[test]
fn one_of_both_is_this_program() {
    if !may() {
        return;
    }
    let hosts = hosts();
    for (send, receive) in [("", RECEIVE), (SEND, "")] {
        let report = measured(&hosts, send, receive, &["--devices", "kernel"]);
        assert!(mrr(&report, "kernel") > 0.0, "{send} {receive} {report:#}");
    }
}

#[test]
fn frames_that_come_without_end_end_the_measurement() {
    if !may() {
        return;
    }
    let hosts = hosts();
    let noise = format!("python3 {}", hosts.path("pkt-gen.py").display());
    let noise = format!(
        "{noise} -N -f tx -i out -R 50 -n 3000 -l 60 -s 0.0.0.0 -d 0.0.0.0 -S 02:00:00:00:00:01 -D ff:ff:ff:ff:ff:ff"
    );
    let words: Vec<&str> = noise.split(' ').collect();
    let _noise = hosts.host("dut").node.start(words[0], &words[1..]);
    prepare(&hosts, SEND, RECEIVE);
    let done = fullview(&hosts, &[&SHORT[..], &TIMES, &["--devices", "kernel"]].concat());
    let text = said(&done);
    assert!(done.status.code() == Some(1) && text.contains("something else sends on this wire"), "{text}");
}

/// Two hosts that send, the second with a clock of its own.
fn two_senders(shift: &str, more: &[&str]) -> Output {
    let hosts = SshHosts::start(&["sender", "second", "dut", "receiver"]);
    let [sender, second, dut, receiver] =
        ["sender", "second", "dut", "receiver"].map(|name| &hosts.host(name).node);
    cable((sender, "eth1"), (dut, "in"));
    cable((second, "eth1"), (dut, "in2"));
    cable((dut, "out"), (receiver, "eth1"));
    fs::write(hosts.path("pkt-gen.py"), include_str!("pkt-gen.py")).unwrap();
    prepare(&hosts, &format!("{SEND} -o 0"), RECEIVE);
    let text = fs::read_to_string(hosts.path("lab.toml")).unwrap();
    let line =
        text.lines().find(|line| line.starts_with("send")).unwrap().replace("-o 0", &format!("-o {shift}"));
    let node = format!(
        "[[nodes]]\nname = \"second\"\nhost = \"second\"\nrole = \"sender\"\nagent = false\n{line}\n{QUIET}\n\
         interfaces = [{{ name = \"eth1\", address = \"198.18.1.2/24\", mac = \"{}\" }}]\n[[devices]]",
        second.mac("eth1")
    );
    let text = text
        .replacen("[[devices]]", &node, 1)
        .replace("wires = [", "wires = [[\"second:eth1\", \"dut:in2\"], ")
        .replace("{ name = \"out\"", "{ name = \"in2\", address = \"198.18.1.1/24\" }, { name = \"out\"");
    fs::write(hosts.path("lab.toml"), text).unwrap();
    let done = fullview(&hosts, &[&SHORT[..], &["--devices", "kernel"], more].concat());
    hosts.assert_idle();
    done
}

#[test]
fn two_senders_begin_at_once() {
    if !may() {
        return;
    }
    let longer = ["--trial-seconds", "4", "--most-seconds", "4"];
    let mut done = (0..ATTEMPTS).map(|_| two_senders("0", &longer));
    let busy = ["holds no load", "ms apart", "fell behind"];
    let is_quiet = |done: &Output| !busy.iter().any(|busy| said(done).contains(busy));
    let report = report(&done.find(is_quiet).expect("other work took the cores"));
    assert_eq!(failures(&report), [""; 0], "{report:#}");
    assert!(mrr(&report, "kernel") > 2000.0, "{report:#}");
    let done = two_senders("0.4", &longer);
    let expected = "the programs of sender, second began";
    assert!(done.status.code() == Some(1) && said(&done).contains(expected), "{}", said(&done));
}

#[test]
fn pkt_gen_ends_with_a_killed_measurement() {
    if !may() {
        return;
    }
    let hosts = hosts();
    prepare(&hosts, SEND, RECEIVE);
    let mut command = command(&[&SHORT[..], &TIMES].concat(), &hosts);
    let mut child = hosts.control.run(move || command.spawn().unwrap());
    let runs = |name| hosts.host(name).work().iter().any(|command| command.contains("pkt-gen.py"));
    assert!(eventually(|| runs("receiver") && runs("sender")));
    child.kill().unwrap();
    child.wait().unwrap();
    hosts.assert_idle();
}

#[test]
fn lines_that_do_something_else_say_what() {
    if !may() {
        return;
    }
    let hosts = hosts();
    for (send, receive, expected) in [
        (&*format!("{SEND} -p 2"), RECEIVE, "packets/s where 1000 were asked for"),
        (SEND, "pkt-gen -f rx -i {interface} -T 100", "prints numbers with units: pkt-gen needs -N"),
        (SEND, "pkt-gen -N -f rx -i eth9", "ended with status 1 and said:"),
        ("pkt-gen -N -f tx {pps} {packets}", RECEIVE, "sender: `"),
        ("pkt-gen -N -f tx {pps} {packets} || true", RECEIVE, "did not say what pkt-gen sent"),
    ] {
        let done = measure(&hosts, send, receive, &["--devices", "kernel"]);
        let text = said(&done);
        assert!(done.status.code() == Some(1) && text.contains(expected), "{send} {receive}: {text}");
    }
}
