//! Runs of `fullview rates` with any arguments.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::{ATTEMPTS, SHORT, device, namespaces_of};

/// Runs it to its end in a folder; its results are below `out`.
pub fn run(folder: &Path, arguments: &[&str]) -> Output {
    run_in(folder, arguments, &programs())
}

/// Where programs are.
fn programs() -> String {
    std::env::var("PATH").unwrap()
}

/// The same with programs from other folders.
fn run_in(folder: &Path, arguments: &[&str], programs: &str) -> Output {
    let _ = std::fs::remove_dir_all(folder.join("out"));
    run_again(folder, arguments, programs)
}

/// Goes on with the campaign in the folder.
pub fn resume(folder: &Path, arguments: &[&str]) -> Output {
    run_again(folder, &[arguments, &["--resume"]].concat(), &programs())
}

fn run_again(folder: &Path, arguments: &[&str], programs: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fullview"));
    command.args(["rates", "--json", "--out", "out"]).args(SHORT).args(arguments);
    let child = command
        .env("PATH", programs)
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let process = child.id();
    let done = child.wait_with_output().unwrap();
    assert_eq!(namespaces_of(process), 0, "namespaces are left behind");
    done
}

/// The report of a run in which these devices were measured, after other attempts if other work took the generator's core.
pub fn measured(folder: &Path, devices: &[&str], arguments: &[&str]) -> Value {
    measured_in(folder, devices, arguments, &programs())
}

/// The same with programs from other folders.
pub fn measured_in(folder: &Path, devices: &[&str], arguments: &[&str], programs: &str) -> Value {
    for _ in 0..ATTEMPTS {
        let done = run_in(folder, arguments, programs);
        let said = stderr(&done);
        if said.contains("holds no load") {
            eprintln!("again: {said}");
            continue;
        }
        assert!(matches!(done.status.code(), Some(0 | 3)), "{said}");
        let report: Value = serde_json::from_slice(&done.stdout).unwrap();
        if devices.iter().all(|name| is_measured(&report, name)) {
            return report;
        }
    }
    panic!("other work took the generator's core {ATTEMPTS} times");
}

fn is_measured(report: &Value, name: &str) -> bool {
    let failed = device(report, name)["failed"].get(0).map(|failed| failed["reason"].as_str().unwrap());
    failed.inspect(|reason| assert!(reason.contains("fell behind"), "{name}: {reason}"));
    failed.is_none()
}

pub fn stderr(done: &Output) -> String {
    String::from_utf8_lossy(&done.stderr).into_owned()
}

/// The page of the folder.
pub fn page(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("out/README.md")).unwrap()
}
