//! What killed measurements leave behind.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use fullview_testnet::{eventually, may_run};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::UnshareFlags;
use serde_json::Value;

fn rates(folder: &Path) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fullview"));
    command.args([
        "rates",
        "--devices",
        "xdp",
        "--trial-seconds",
        "0.02",
        "--most-load",
        "5000",
        "--out",
        "out",
    ]);
    command.current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

pub fn clean(arguments: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fullview"));
    let done = command.args(["testbed", "clean", "--json"]).args(arguments).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice(&done.stdout).unwrap()
}

pub fn namespaces_of(process: u32) -> Vec<String> {
    let all = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = all.map(|name| name.file_name().to_string_lossy().into_owned());
    let mut names: Vec<_> = names.filter(|name| name.starts_with(&format!("fv{process}r"))).collect();
    names.sort();
    names
}

pub fn found<'f>(report: &'f Value, kind: &str) -> Vec<&'f str> {
    let all = report["found"].as_array().unwrap().iter();
    all.filter(|one| one["kind"] == kind).map(|one| one["name"].as_str().unwrap()).collect()
}

fn ip(arguments: &str) {
    let done = Command::new("ip").args(arguments.split(' ')).status().unwrap();
    assert!(done.success(), "ip {arguments}");
}

/// The `fullview forward` that the process started, by its namespace.
fn router_in(namespaces: &[String]) -> Option<u32> {
    let router = namespaces.iter().find(|name| name.ends_with("rd"))?;
    let pids = Command::new("ip").args(["netns", "pids", router]).output().ok()?;
    String::from_utf8_lossy(&pids.stdout).lines().find_map(|line| {
        let command = fs::read_to_string(format!("/proc/{line}/cmdline")).ok()?;
        command.contains("forward").then(|| line.parse().ok())?
    })
}

#[test]
fn what_a_killed_measurement_left_is_removed_and_nothing_else() {
    if may_run(&["ip", "ethtool", "chrt", "setpriv", "mount"]) {
        let checked = thread::spawn(|| {
            enter_private_run();
            check_removal();
        });
        checked.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
}

/// Gives this thread, and what it starts, a folder /run of its own: any other test bed on this machine would clean up too.
#[allow(deprecated)] // `unshare` is unsafe only where it unshares file descriptors or memory
pub fn enter_private_run() {
    rustix::thread::unshare(UnshareFlags::NEWNS).unwrap();
    for arguments in ["--make-rprivate /", "-t tmpfs tmpfs /run"] {
        assert!(Command::new("mount").args(arguments.split(' ')).status().unwrap().success());
    }
}

fn check_removal() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = rates(folder.path());
    let process = child.id();
    let mut router = None;
    assert!(eventually(|| {
        router = router_in(&namespaces_of(process));
        router.is_some()
    }));
    kill_process(Pid::from_raw(process.cast_signed()).unwrap(), Signal::KILL).unwrap();
    child.wait().unwrap();
    let router = format!("/proc/{}", router.unwrap());
    assert!(eventually(|| !Path::new(&router).exists()), "the router outlives the measurement");
    let left = namespaces_of(process);
    assert!(!left.is_empty(), "a killed process cannot clean up");

    // A user's namespaces: a name like ours, and one of ours that was removed and made anew by hand.
    let (alike, remade) = (format!("fv{process}rx"), left[0].clone());
    ip(&format!("netns add {alike}"));
    ip(&format!("netns delete {remade}"));
    ip(&format!("netns add {remade}"));

    let shown = clean(&["--dry-run"]);
    assert_eq!(found(&shown, "namespace"), left[1..], "{shown}");
    assert_eq!(found(&shown, "not-ours"), [remade.as_str()], "{shown}");
    assert_eq!(namespaces_of(process).len(), left.len() + 1, "a dry run removes nothing");
    assert_eq!(found(&clean(&[]), "namespace"), left[1..]);
    let kept = namespaces_of(process);
    let mut expected = [alike, remade];
    expected.sort();
    assert_eq!(kept, expected);
    expected.iter().for_each(|name| ip(&format!("netns delete {name}")));
    assert_eq!(clean(&[])["found"], serde_json::json!([]));
    assert!(!Path::new("/run/fullview-lab").join(process.to_string()).exists());
}
