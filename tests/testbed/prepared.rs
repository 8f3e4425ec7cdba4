//! What an inventory declares of its hosts: settings, and files of the device under test.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Output};

use fullview_testnet::{eventually, may_run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::hosts::SshHosts;
use crate::remote::{PROGRAMS, SHORT, command, fullview, measure_with, mrr, program, said, two};

const LINES: [&str; 4] = ["rates", "--testbed", "lab.toml", "--devices=lines"];

/// Adds keys to the node `dut` and to the device `lines`, and lines to the start of that device.
fn prepare(hosts: &SshHosts, of_dut: &str, of_device: &str, lines: &str) {
    let text = fs::read_to_string(hosts.path("lab.toml")).unwrap();
    let (dut, device, start) = ("role = \"dut\"\n", "kind = \"command\"\n", "start = [\n    \"sysctl");
    assert!([dut, device, start].iter().all(|part| text.contains(part)), "{text}");
    let folder = hosts.folder.path().display().to_string();
    let there = format!("program = \"{}\"", program());
    let text = text
        .replace(dut, &format!("{dut}{there}\n{of_dut}\n"))
        .replace(start, &format!("start = [\n{lines}    \"sysctl"))
        .replace(device, &format!("{device}{of_device}\n"));
    fs::write(hosts.path("lab.toml"), text.replace("$FOLDER", &folder)).unwrap();
}

fn ethtool(hosts: &SshHosts, label: &str) -> String {
    let dut = &hosts.host("dut").node;
    let shown = dut.run(|| std::process::Command::new("ethtool").args(["-k", "in"]).output().unwrap());
    let text = String::from_utf8(shown.stdout).unwrap();
    text.lines().find_map(|line| line.strip_prefix(label)).unwrap().to_owned()
}

/// A measurement that is refused, and has begun no trial.
fn refused(hosts: &SshHosts) -> String {
    let done = fullview(hosts, &[&LINES[..], &SHORT, &["--out", "out"]].concat());
    hosts.assert_idle();
    assert_eq!(done.status.code(), Some(1), "{}", said(&done));
    assert!(!hosts.path("out/turns.jsonl").exists(), "{}", said(&done));
    said(&done)
}

#[test]
fn declared_settings_are_set_for_the_measurement_and_put_back() {
    if !may_run(&[&PROGRAMS[..], &["ethtool"]].concat()) {
        return;
    }
    let hosts = two();
    prepare(
        &hosts,
        "set-tuning = true\ntuning = { offloads = { gro = true }, sysctl = { \"net.ipv4.conf.in.send_redirects\" = 0 } }",
        "tuning = { offloads = { tso = false } }",
        "\"ethtool -k in > $FOLDER/seen\", \"cat /proc/sys/net/ipv4/conf/in/send_redirects >> $FOLDER/seen\",\n",
    );
    let dut = hosts.host("dut");
    let now = || {
        let offloads = ["generic-receive-offload: ", "tcp-segmentation-offload: "];
        (offloads.map(|label| ethtool(&hosts, label)), dut.setting("in", "send_redirects"))
    };
    let before = now();
    assert_eq!(before, (["off", "on"].map(str::to_owned), "1".to_owned()), "the test needs other values");
    let report = measure_with(&hosts, &["--devices", "lines"]);
    assert!(mrr(&report, "lines") > 0.0, "{report}");
    let seen = fs::read_to_string(hosts.path("seen")).unwrap();
    assert!(seen.contains("generic-receive-offload: on\n"), "{seen}");
    assert!(seen.contains("tcp-segmentation-offload: off\n") && seen.ends_with("\n0\n"), "{seen}");
    assert_eq!(now(), before);
    let tuned = report["testbed"]["nodes"][1]["tuned"].as_array().unwrap();
    let expected = ["in: gro off on", "out: gro off on", "sysctl net.ipv4.conf.in.send_redirects 1 0"]
        .map(str::to_owned);
    let text = |one: &Value| ["setting", "before", "value"].map(|key| one[key].as_str().unwrap()).join(" ");
    assert_eq!(tuned.iter().map(text).collect::<Vec<_>>(), expected);
    let page = fs::read_to_string(hosts.path("out/README.md")).unwrap();
    assert!(page.contains("| dut | in: gro | off | on |"), "{page}");
}

#[test]
fn a_declared_setting_that_differs_or_cannot_be_set_is_refused_before_the_first_trial() {
    if !may_run(&[&PROGRAMS[..], &["ethtool"]].concat()) {
        return;
    }
    let hosts = two();
    let original = fs::read_to_string(hosts.path("lab.toml")).unwrap();
    let message = |of_dut: &str| {
        fs::write(hosts.path("lab.toml"), &original).unwrap();
        prepare(&hosts, of_dut, "", "");
        refused(&hosts)
    };
    let redirects = "sysctl = { \"net.ipv4.conf.in.send_redirects\" = 0 }";
    let said = message(&format!("tuning = {{ {redirects} }}"));
    let expected = "dut: sysctl net.ipv4.conf.in.send_redirects is 1, and the inventory declares 0";
    assert!(said.contains(expected) && said.contains("set-tuning = true"), "{said}");
    let said = message("set-tuning = true\ntuning = { flow-control = { rx = false } }");
    assert!(said.contains("dut: in: flow control rx: this machine does not have it"), "{said}");
    let wrong = "sysctl = { \"net.ipv4.conf.in.send_redirects\" = \"many\" }";
    let said = message(&format!("set-tuning = true\ntuning = {{ offloads = {{ gro = true }}, {wrong} }}"));
    assert!(said.contains("dut: sysctl net.ipv4.conf.in.send_redirects cannot be set to many"), "{said}");
    assert_eq!(ethtool(&hosts, "generic-receive-offload: "), "off", "what was set before is put back");
}

#[test]
fn a_declared_setting_that_others_change_makes_a_repetition_invalid() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let hosts = two();
    prepare(
        &hosts,
        "tuning = { sysctl = { \"net.ipv4.conf.in.log_martians\" = 0 } }",
        "",
        "\"sysctl -q -w net.ipv4.conf.in.log_martians=1\",\n",
    );
    let said = refused(&hosts);
    let expected =
        "dut: declared sysctl net.ipv4.conf.in.log_martians was changed since the measurement began";
    assert!(said.contains(expected), "{said}");
}

/// A device with files: one that replaces another one, and a folder with one that is new.
fn with_files(hosts: &SshHosts) {
    for folder in ["tree", "etc"] {
        fs::create_dir(hosts.path(folder)).unwrap();
    }
    for (name, text) in [("conf", "variant"), ("tree/new.conf", "new"), ("etc/conf", "original")] {
        fs::write(hosts.path(name), text).unwrap();
    }
    fs::set_permissions(hosts.path("etc/conf"), fs::Permissions::from_mode(0o640)).unwrap();
    prepare(
        hosts,
        "set-tuning = true\ntuning = { sysctl = { \"net.ipv4.conf.in.send_redirects\" = 0 } }",
        "files = { \"conf\" = \"$FOLDER/etc/conf\", \"tree\" = \"$FOLDER/etc\" }",
        "\"cat $FOLDER/etc/conf $FOLDER/etc/new.conf > $FOLDER/seen\",\n",
    );
}

fn assert_files_are_back(hosts: &SshHosts) {
    assert_eq!(fs::read_to_string(hosts.path("etc/conf")).unwrap(), "original");
    let mode = fs::metadata(hosts.path("etc/conf")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    assert!(!hosts.path("etc/new.conf").exists());
}

#[test]
fn files_are_laid_onto_the_device_and_the_originals_put_back() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let hosts = two();
    with_files(&hosts);
    let report = measure_with(&hosts, &["--devices", "lines"]);
    assert!(mrr(&report, "lines") > 0.0, "{report}");
    assert_eq!(fs::read_to_string(hosts.path("seen")).unwrap(), "variantnew");
    assert_files_are_back(&hosts);
    let files = report["testbed"]["files"].as_array().unwrap();
    let sums: Vec<&str> = files.iter().map(|file| file["sha256"].as_str().unwrap()).collect();
    assert!(sums.len() == 2 && sums.iter().all(|sum| sum.len() == 64), "{files:?}");
    fs::write(hosts.path("conf"), "other").unwrap();
    let options = SHORT.map(|option| if option == "--force" { "--resume" } else { option });
    let other = fullview(&hosts, &[&LINES[..], &["--out", "out"], &options].concat());
    assert!(other.status.code() == Some(2) && said(&other).contains("had files = "), "{}", said(&other));
}

/// A measurement whose device runs.
fn running(hosts: &SshHosts) -> Child {
    let mut command = command(&[&LINES[..], &["--trial-seconds", "0.2"]].concat(), hosts);
    let mut child = hosts.control.run(move || command.spawn().unwrap());
    let began = eventually(|| hosts.path("seen").exists() || child.try_wait().unwrap().is_some());
    assert!(began && child.try_wait().unwrap().is_none(), "{}", said(&child.wait_with_output().unwrap()));
    child
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(child.id().cast_signed()).unwrap(), signal).unwrap();
}

#[test]
fn files_are_put_back_when_the_measurement_is_interrupted() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let hosts = two();
    with_files(&hosts);
    let child = running(&hosts);
    assert_eq!(fs::read_to_string(hosts.path("etc/conf")).unwrap(), "variant");
    signal(&child, Signal::INT);
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(130), "{}", said(&done));
    hosts.assert_idle();
    assert_files_are_back(&hosts);
    assert_eq!(hosts.host("dut").setting("in", "send_redirects"), "1");
}

fn clean(hosts: &SshHosts, more: &[&str]) -> Value {
    let done: Output = fullview(hosts, &[&["testbed", "clean", "lab.toml", "--json"], more].concat());
    assert!(done.status.success(), "{}", said(&done));
    serde_json::from_slice(&done.stdout).unwrap()
}

#[test]
fn what_a_crash_left_on_the_hosts_is_put_back_by_clean() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let hosts = two();
    with_files(&hosts);
    let mut child = running(&hosts);
    let dut = hosts.host("dut");
    // It must not connect again before it is killed: the next measurement puts back too.
    signal(&child, Signal::STOP);
    dut.crash_work();
    child.kill().unwrap();
    child.wait().unwrap();
    hosts.assert_idle();
    assert_eq!(dut.setting("in", "send_redirects"), "0", "nothing is there that could put it back");
    assert_eq!(fs::read_to_string(hosts.path("etc/conf")).unwrap(), "variant");
    let shown = clean(&hosts, &["--dry-run"]);
    let names = |kind| crate::clean::found(&shown, kind).join("\n");
    assert!(names("setting").contains("dut: /proc/sys/net/ipv4/conf/in/send_redirects = 1"), "{shown}");
    assert!(names("file").contains("/etc/conf") && names("file").contains("/etc/new.conf"), "{shown}");
    assert_eq!(dut.setting("in", "send_redirects"), "0", "a dry run changes nothing");
    assert_eq!(clean(&hosts, &[])["found"], shown["found"]);
    assert_eq!(dut.setting("in", "send_redirects"), "1");
    assert_files_are_back(&hosts);
    assert_eq!(clean(&hosts, &[])["found"], serde_json::json!([]));
}
