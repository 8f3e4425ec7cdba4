//! Measurements of other implementations beside ours: the peer is a shell script, on several streams.

#![allow(clippy::unwrap_used)] // helpers of tests stand outside `#[test]` functions

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fullview_testnet::while_no_program_starts;
use tempfile::TempDir;

/// A peer with the contestants `sound`, which is right everywhere, and `wrong`, which is wrong on one stream. It refuses
/// `small`, and fails unless it has the inputs that `peers/README.md` specifies, and a process group that Ctrl-C does not
/// reach. It looks up 12.5 million keys a second, and records the contestants of each start in `started`.
const PEER: &str = r#"#!/bin/sh
echo "$2" >>"${0%/*}/started"
for folder; do :; done
count() { wc -c <"$folder/$1"; }
[ "$(wc -l <"$folder/table.txt")" -gt 100 ] || { echo "no table" >&2; exit 2; }
read -r _ _ _ _ group _ </proc/$$/stat
[ "$group" = $$ ] || { echo "Ctrl-C would end the peer" >&2; exit 2; }
stream=$(basename "$folder"/*.inet.keys .inet.keys)
[ "$(count $stream.inet.keys)" = "$((4 * 4096))" ] || { echo "$stream: keys" >&2; exit 2; }
[ "$(count $stream.inet.answers)" = "$((2 * 4096))" ] || { echo "$stream: answers" >&2; exit 2; }
cat <<READY | tr -d '\n'
{"ready":true,"pages":"4K","contestants":["sound:1","wrong:1"],"streams":[],
"facts":[{"contestant":"sound:1","bytes":1234567,"build_s":0.25}],
"bad":[{"contestant":"wrong:1","family":"inet","stream":"flows","bad":3,"of":4096,"first":"10.0.0.1: expected 1"}],
"refused":[{"contestant":"small:1","why":"too many routes"}]}
READY
echo
while read -r command contestant stream lead_in length; do
    [ "$command" = slice ] || exit 0
    counted=$((length / 80))
    case $contestant.$stream in
    sound:1.uniform | sound:1.flows | wrong:1.uniform)
        echo "{\"counted\":$counted,\"offered\":$counted,\"time_ns\":$length,\"lost_core_ns\":0}" ;;
    *) echo "{\"error\":\"$contestant on $stream\"}" ;;
    esac
done
"#;

const EXPERIMENT: &str = r#"
title = "Peers"
families = [{ name = "inet.uniform", title = "uniform" }, { name = "inet.flows", title = "flows" }]
runs = 3
seed = 1
window = { warmup_s = 0.001, measure_s = 0.02, slice_ms = 2 }
analysis = { baseline = "sound", metric = "lookups-per-second" }

[subject]
kind = "lookup"
table = { source = "synthetic", inet = 2000, inet6 = 200 }
lookup = { keys = 4096, arm = "batch" }

[subject.streams]
uniform = { model = "addresses", flows = 4096 }
flows = { model = "prefixes", flows = 50 }

[[variants]]
name = "ours"
label = "ours: {algorithm}"
set.router.algorithm = "every"
"#;

/// Writes a file while no program starts. A file that is open for writing cannot be executed, and between `fork` and
/// `exec` a new process has copies of all file descriptors.
fn write(folder: &Path, name: &str, content: &str) -> PathBuf {
    let path = folder.join(name);
    while_no_program_starts(|| fs::write(&path, content)).unwrap();
    path
}

/// Writes the experiment with a variant for each of these contestants.
fn experiment(folder: &Path, contestants: &[&str]) -> PathBuf {
    let peer = write(folder, "peer.sh", PEER);
    fs::set_permissions(&peer, fs::Permissions::from_mode(0o755)).unwrap();
    let mut text = EXPERIMENT.to_owned();
    for name in contestants {
        let peer = peer.display();
        text += &format!(
            "[[variants]]\nname = \"{name}\"\nlabel = \"the {name} one\"\n\
             set.lookup.peer = {{ program = \"{peer}\", inet = \"{name}:1\" }}\n"
        );
    }
    write(folder, "peers.toml", &text)
}

/// Runs the program. Returns its exit code, standard output and standard error.
fn run(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fullview"));
    command.current_dir(folder).args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let started = while_no_program_starts(|| command.spawn()).unwrap();
    let output = started.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Returns the line of the overview that begins with this label.
fn row<'o>(overview: &'o str, label: &str) -> &'o str {
    overview.lines().find(|line| line.starts_with(label)).unwrap_or_default()
}

#[test]
fn wrong_answers_and_refusals_are_in_the_table() {
    let folder = TempDir::new().unwrap();
    experiment(folder.path(), &["sound", "wrong", "small"]);
    let (code, _, err) = run(folder.path(), &["bench", "peers.toml", "--out", "out"]);
    assert_eq!(code, 3, "cells without valid runs: {err}");
    let (code, overview, err) =
        run(folder.path(), &["report", "out", "--overview", "structure_bytes,build_ms"]);
    assert_eq!(code, 3, "{err}");
    let words = |label| row(&overview, label).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words("the sound").ends_with(") 1,234,567 250"), "{overview}");
    assert!(words("the wrong").ends_with(") misrouted [1] – –"), "{overview}");
    assert_eq!(words("the small"), "the small one refused [2] refused [2] – –", "{overview}");
    assert!(
        overview.contains("[1] wrong:1: 3 of 4096 answers wrong, the first 10.0.0.1: expected 1\n"),
        "{overview}"
    );
    assert!(overview.contains("[2] small:1: too many routes"), "{overview}");
    let known = vec![12.5e6; 3];
    assert_eq!(raw(folder.path(), "sound"), [known.clone(), known.clone()]);
    assert_eq!(raw(folder.path(), "wrong"), [known, vec![]]);
}

/// The rates of a variant's cells as they were measured, block by block.
fn raw(folder: &Path, variant: &str) -> Vec<Vec<f64>> {
    let text = fs::read_to_string(folder.join("out/report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    let cells = report["cells"].as_array().unwrap().iter().filter(|cell| cell["variant"] == variant);
    let rates =
        |cell: &serde_json::Value| -> Vec<f64> { serde_json::from_value(cell["raw"].clone()).unwrap() };
    cells.map(|cell| rates(cell).iter().map(|rate| rate.round()).collect()).collect()
}

/// Otherwise the baseline and its copy are one structure in one place, which cannot differ.
#[test]
fn the_copy_of_a_baseline_that_is_a_peer_is_in_a_process_of_its_own() {
    let folder = TempDir::new().unwrap();
    experiment(folder.path(), &["sound", "wrong"]);
    let (_, _, err) = run(folder.path(), &["bench", "peers.toml", "--out", "out"]);
    let started = fs::read_to_string(folder.path().join("started")).unwrap();
    let starts = |names: &str| started.lines().filter(|line| names_in_order(line) == names).count();
    // A panel that does not count on a shared machine is made again.
    let (with_others, alone) = (starts("sound:1,wrong:1"), starts("sound:1"));
    assert!(with_others >= 6 && alone == with_others, "{started}{err}");
    assert_eq!(started.lines().count(), with_others + alone, "{started}");
}

/// A list of contestants, whose order differs from panel to panel.
fn names_in_order(list: &str) -> String {
    let mut names: Vec<&str> = list.split(',').collect();
    names.sort_unstable();
    names.join(",")
}

#[test]
fn every_algorithm_except_the_oracle_takes_part() {
    let folder = TempDir::new().unwrap();
    experiment(folder.path(), &["sound"]);
    // A shared machine may make runs invalid, so the test checks the contestants only, not the exit code.
    let (_, _, err) = run(folder.path(), &["bench", "peers.toml", "--out", "out"]);
    let (_, overview, _) = run(folder.path(), &["report", "out", "--overview"]);
    for algorithm in ["radix", "radix_lockless", "bsearch4", "dpdk_lpm4"] {
        assert!(!row(&overview, &format!("ours: {algorithm} ")).is_empty(), "{algorithm}: {overview}{err}");
    }
    assert!(!overview.contains("linear"), "{overview}");
}

#[test]
fn a_family_without_its_stream_is_refused() {
    let folder = TempDir::new().unwrap();
    let path = experiment(folder.path(), &["sound"]);
    let text = fs::read_to_string(&path).unwrap().replace("inet.flows", "inet.nothing");
    fs::write(&path, text).unwrap();
    let (code, _, err) = run(folder.path(), &["bench", "peers.toml", "--out", "out"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("there is no [subject.streams.nothing]"), "{err}");
}

#[test]
fn settings_that_a_peer_would_ignore_are_refused_where_they_stand() {
    let folder = TempDir::new().unwrap();
    let path = experiment(folder.path(), &["sound"]);
    let valid = fs::read_to_string(&path).unwrap();
    for (of, instead, said) in [
        ("arm = \"batch\"", "arm = \"independent\"", ["peers.toml:12:", "a peer has no other arm than"]),
        ("keys = 4096", "keys = 4096, batch = 64", ["peers.toml:12:", "a peer has batches of its own"]),
        ("\"every\"", "\"radix\"\nset.lookup.arm = \"dependent\"", ["peers.toml:22:", "independent keys"]),
    ] {
        fs::write(&path, valid.replacen(of, instead, 1)).unwrap();
        let (code, _, err) = run(folder.path(), &["bench", "peers.toml", "--out", "out"]);
        assert_eq!(code, 2, "{instead}: {err}");
        assert!(said.iter().all(|words| err.contains(words)), "{instead}: {err}");
    }
}
