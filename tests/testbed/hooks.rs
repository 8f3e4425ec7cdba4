//! Commands before, during and after searches.

use std::fs;

use fullview_testnet::may_run;

use crate::hosts::SshHosts;
use crate::remote::{PROGRAMS, SHORT, fullview, measure_with, mrr, said, two};

const LINES: [&str; 6] = ["rates", "--testbed", "lab.toml", "--devices=lines", "--out", "out"];

fn add(hosts: &SshHosts, hooks: &[(&str, &str, &str)]) {
    let mut text = fs::read_to_string(hosts.path("lab.toml")).unwrap();
    for (node, when, rest) in hooks {
        text += &format!("[[hooks]]\nnode = \"{node}\"\nwhen = \"{when}\"\n{rest}\n");
    }
    let folder = hosts.folder.path().display().to_string();
    fs::write(hosts.path("lab.toml"), text.replace("$FOLDER", &folder)).unwrap();
}

/// Why the repetition of the device has no result.
fn failure(hosts: &SshHosts) -> String {
    let done = fullview(hosts, &[&LINES[..], &SHORT].concat());
    hosts.assert_idle();
    assert_eq!(done.status.code(), Some(3), "{}", said(&done));
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    report["devices"][0]["failed"][0]["reason"].as_str().unwrap().to_owned()
}

#[test]
fn hooks_run_before_during_and_after_a_search_and_their_output_is_kept() {
    if !may_run(&[&PROGRAMS[..], &["timeout"]].concat()) {
        return;
    }
    let hosts = two();
    let during = "echo during >> $FOLDER/order; trap 'echo ended; exit' TERM; echo counting; while :; do sleep 0.1; done";
    add(
        &hosts,
        &[
            (
                "dut",
                "before",
                "command = \"echo before >> $FOLDER/order; cat /proc/sys/net/ipv4/conf/in/forwarding\"",
            ),
            ("lab", "during", &format!("command = \"{during}\"")),
            ("lab", "after", "command = \"echo after >> $FOLDER/order; cat $FOLDER/order\""),
            ("lab", "after", "command = \"exit 1\"\ndevices = [\"threads\"]"),
        ],
    );
    let report = measure_with(&hosts, &["--devices", "lines"]);
    assert!(mrr(&report, "lines") > 0.0, "{report}");
    let kept = |name: &str| fs::read_to_string(hosts.path("out/hooks").join(name)).unwrap();
    assert_eq!(kept("lines-1-before-dut-1.txt"), "1\n", "the device runs");
    let during = kept("lines-1-during-lab-2.txt");
    assert!(during.starts_with("counting\n") && during.ends_with("ended\n"), "{during}");
    assert!(kept("lines-1-after-lab-3.txt").ends_with("before\nduring\nafter\n"));
    assert_eq!(
        fs::read_dir(hosts.path("out/hooks")).unwrap().count(),
        3,
        "that of another device did not run"
    );
    let page = fs::read_to_string(hosts.path("out/README.md")).unwrap();
    assert!(page.contains("## Hooks") && page.contains("| dut | before |"), "{page}");
}

#[test]
fn a_hook_that_fails_or_takes_too_long_fails_the_repetition() {
    if !may_run(&[&PROGRAMS[..], &["timeout"]].concat()) {
        return;
    }
    let hosts = two();
    let original = fs::read_to_string(hosts.path("lab.toml")).unwrap();
    let message = |when: &str, rest: &str| {
        fs::write(hosts.path("lab.toml"), &original).unwrap();
        add(&hosts, &[("dut", when, rest)]);
        failure(&hosts)
    };
    let said = message("before", "command = \"echo one; echo two >&2; exit 3\"");
    let expected = "dut: the command before the search, `echo one; echo two >&2; exit 3`, ended with status 3 and said: one; two";
    assert_eq!(said, expected);
    assert_eq!(fs::read_to_string(hosts.path("out/hooks/lines-1-before-dut-1.txt")).unwrap(), "one\ntwo\n");
    let said = message("after", "command = \"sleep 30\"\ntimeout-seconds = 1");
    assert_eq!(said, "dut: the command after the search, `sleep 30`, did not end within 1 s");
    let said = message("during", "command = \"exit 4\"");
    assert_eq!(said, "dut: the command during the search, `exit 4`, ended with status 4");
}
