//! Campaigns that are ended in each of their phases, and resumed.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use fullview_testnet::{eventually, may_run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::clean::{clean, enter_private_run, found, namespaces_of};
use crate::hosts::{SshHosts, commands_in};
use crate::remote::{self, PROGRAMS, two};

const OPTIONS: [&str; 15] = [
    "--out",
    "out",
    "--json",
    "--repetitions",
    "1",
    "--trial-seconds",
    "0.02",
    "--most-seconds",
    "1.5",
    "--most-load",
    "5000",
    "--latency",
    "--profile",
    "--bursts",
    "--seed=3",
];
/// Other work may take the generator's core.
const ATTEMPTS: usize = 5;

/// A phase, and whether a campaign with its folder is in it.
type Phase<'p> = (&'static str, &'p dyn Fn(&Child, &Path) -> bool);

fn trials(folder: &Path) -> String {
    fs::read_to_string(folder.join("out/trials.jsonl")).unwrap_or_default()
}

fn is_searching(_: &Child, folder: &Path) -> bool {
    trials(folder).contains("\"purpose\"")
}

fn measures_latency(_: &Child, folder: &Path) -> bool {
    trials(folder).contains("\"latency\"")
}

/// Starts the campaign, from its beginning or where it was ended.
fn arguments<'a>(folder: &Path, more: &[&'a str]) -> Vec<&'a str> {
    let has_turns = folder.join("out/turns.jsonl").exists();
    let going_on = if has_turns { "--resume" } else { "--force" };
    [&["rates"][..], &OPTIONS, &[going_on], more].concat()
}

fn kill(child: &Child, signal: Signal) {
    // It may have ended.
    let _ = kill_process(Pid::from_raw(child.id().cast_signed()).unwrap(), signal);
}

/// Walks through the phases: ends the campaign in each of them, looks at what is left, and finishes it.
fn walk(
    folder: &Path,
    signal: Signal,
    phases: &[Phase<'_>],
    start: impl Fn() -> Child,
    assert_nothing_left: impl Fn(),
) -> Value {
    for (phase, is_in) in phases {
        let reached = (0..ATTEMPTS).any(|_| {
            let mut child = start();
            assert!(eventually(|| is_in(&child, folder) || child.try_wait().unwrap().is_some()), "{phase}");
            let is_reached = child.try_wait().unwrap().is_none();
            kill(&child, signal);
            let done = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&done.stderr);
            let is_interrupted = done.status.code() == Some(130);
            assert!(
                !is_reached || signal == Signal::KILL || is_interrupted,
                "{phase}: {:?} {said}",
                done.status
            );
            eprintln!("{phase}: {:?} {said}", done.status);
            is_reached
        });
        assert!(reached, "{phase} was not reached in {ATTEMPTS} attempts");
        assert_nothing_left();
    }
    let finished = (0..ATTEMPTS).find_map(|_| {
        let done = start().wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        let report: Option<Value> = serde_json::from_slice(&done.stdout).ok();
        eprintln!("finished: {:?} {said}", done.status);
        report.filter(|report| report["devices"][0]["searches"][0]["mrr"].is_number())
    });
    finished.expect("the resumed campaign is not finished")
}

fn assert_finished(report: &Value, folder: &Path) {
    assert_eq!(report["interrupted"], false, "{report}");
    let search = &report["devices"][0]["searches"][0];
    assert!(search["mrr"].as_f64().unwrap() > 0.0 && !search["burst"].is_null(), "{search}");
    assert!(!search["latency"].as_array().unwrap().is_empty(), "{search}");
    assert_eq!(report["profile"]["profiles"].as_array().unwrap().len(), 1, "{report}");
    assert!(fs::read_to_string(folder.join("out/README.md")).unwrap().contains("## Where the time goes"));
    let archived: Vec<Value> =
        trials(folder).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let archived = archived.len();
    assert!(archived > 10, "each line is a trial");
}

fn has_spare(child: &Child) -> bool {
    let routers = namespaces_of(child.id()).into_iter().filter(|name| name.ends_with("rd"));
    let shows = |name: String| {
        let shown = Command::new("ip").args(["-n", &name, "link", "show", "dev", "spare"]).output();
        shown.is_ok_and(|shown| shown.status.success())
    };
    routers.into_iter().any(shows)
}

/// Whether perf runs that this process, or another one below it, has started.
fn is_profiling(command: &str) -> bool {
    command.starts_with("perf record")
}

fn children_of(parent: u32) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let is_child = |path: &std::path::PathBuf| {
        let status = fs::read_to_string(path.join("status")).unwrap_or_default();
        status.lines().any(|line| line == format!("PPid:\t{parent}"))
    };
    let command =
        |path: std::path::PathBuf| Some(fs::read_to_string(path.join("cmdline")).ok()?.replace('\0', " "));
    processes.filter(is_child).filter_map(command).collect()
}

fn walk_namespaces(signal: Signal) {
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fullview"));
        command.args(arguments(folder.path(), &["--devices", "kernel", "--convergence=1"]));
        command.current_dir(folder.path()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let phases: [Phase<'_>; 5] = [
        ("set-up", &|child, _| !namespaces_of(child.id()).is_empty()),
        ("search", &is_searching),
        ("convergence", &|child, _| has_spare(child)),
        ("latency", &measures_latency),
        ("profile", &|child, _| children_of(child.id()).iter().any(|command| is_profiling(command))),
    ];
    let report = walk(folder.path(), signal, &phases, start, || {
        let left = clean(&[]);
        assert!(signal == Signal::KILL || found(&left, "namespace").is_empty(), "{left}");
        assert_eq!(clean(&[])["found"], serde_json::json!([]));
    });
    assert_finished(&report, folder.path());
}

fn in_private_run(work: impl FnOnce() + Send + 'static) {
    let checked = thread::spawn(|| {
        enter_private_run();
        work();
    });
    checked.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

const TOOLS: [&str; 6] = ["ip", "ethtool", "chrt", "setpriv", "mount", "perf"];

#[test]
fn a_campaign_that_is_killed_in_any_phase_leaves_nothing_and_is_resumed() {
    if may_run(&TOOLS) {
        in_private_run(|| walk_namespaces(Signal::KILL));
    }
}

#[test]
fn a_campaign_that_is_interrupted_in_any_phase_leaves_nothing_and_is_resumed() {
    if may_run(&TOOLS) {
        in_private_run(|| walk_namespaces(Signal::INT));
    }
}

fn walk_hosts(signal: Signal) {
    let hosts = two();
    let start = || {
        let more = ["--testbed", "lab.toml", "--devices", "lines"];
        let mut command = remote::command(&arguments(hosts.folder.path(), &more), &hosts);
        hosts.control.run(move || command.spawn().unwrap())
    };
    let dut = hosts.host("dut");
    let agents = |hosts: &SshHosts| hosts.hosts.iter().flat_map(|host| host.work()).count();
    let phases: [Phase<'_>; 4] = [
        ("set-up", &|_, _| agents(&hosts) > 0),
        ("search", &is_searching),
        ("latency", &measures_latency),
        ("profile", &|_, _| dut.work().iter().any(|command| is_profiling(command))),
    ];
    let report = walk(hosts.folder.path(), signal, &phases, start, || {
        hosts.assert_idle();
        assert!(eventually(|| commands_in(&hosts.control).is_empty()), "{:?}", commands_in(&hosts.control));
        assert_eq!(dut.setting("in", "forwarding"), "0");
        assert_eq!(dut.node.ip("-o -4 address show dev in"), "");
    });
    assert_finished(&report, hosts.folder.path());
}

#[test]
fn a_campaign_between_hosts_that_is_killed_in_any_phase_leaves_nothing_and_is_resumed() {
    if may_run(&[&PROGRAMS[..], &["perf"]].concat()) {
        walk_hosts(Signal::KILL);
    }
}

#[test]
fn a_campaign_between_hosts_that_is_interrupted_in_any_phase_leaves_nothing_and_is_resumed() {
    if may_run(&[&PROGRAMS[..], &["perf"]].concat()) {
        walk_hosts(Signal::INT);
    }
}
