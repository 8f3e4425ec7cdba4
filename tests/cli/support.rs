//! What the tests share: running the program, files, and a small experiment.

use std::fs;
use std::path::Path;
use std::process::Output;

use assert_cmd::Command;
use tempfile::TempDir;

pub fn fullview() -> Command {
    Command::cargo_bin("fullview").unwrap()
}

pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

pub fn run(args: &[&str]) -> Ran {
    run_in(".".as_ref(), args)
}

/// Runs the program in this folder.
pub fn run_in(folder: &Path, args: &[&str]) -> Ran {
    Ran::of(&fullview().args(args).current_dir(folder).output().unwrap())
}

impl Ran {
    pub fn of(output: &Output) -> Ran {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Ran { code: output.status.code().unwrap(), out: text(&output.stdout), err: text(&output.stderr) }
    }
}

/// Makes a file with this content in a folder of its own.
pub fn file(name: &str, content: &[u8]) -> (TempDir, String) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join(name);
    fs::write(&path, content).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (dir, path)
}

/// Two variants in two families; the length of the turns is set, so that no calibration is made.
pub const SMALL: &str = r#"
title = "Small"
families = [{ name = "inet", title = "IPv4" }, { name = "inet6", title = "IPv6" }]
runs = 3
seed = 1
[window]
warmup_s = 0.01
measure_s = 0.02
slice_ms = 1.0
[subject]
kind = "forward"
table.source = "two-routes"
traffic.model = "netbenches"
traffic.flows = 200
load.shape = "one-core"
[[variants]]
name = "radix"
label = "radix"
set.router.algorithm = "radix"
[[variants]]
name = "lockless"
label = "lockless"
set.router.algorithm = "radix_lockless"
"#;
