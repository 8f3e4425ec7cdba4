//! Devices beside the kernel and the engines: other rules, other programs.

use fullview_testnet::{find, may_run};

use serde_json::Value;

use crate::support::{measured, page, run, stderr};
use crate::{ATTEMPTS, device};

/// Has the kernel forward, and runs on in two processes of its group.
fn forwarding_line() -> String {
    format!(
        "forwards=echo 1 > /proc/sys/net/ipv4/ip_forward; test -e /sys/class/net/$INGRESS -a -e \
         /sys/class/net/$EGRESS || exit 9; sleep {0} & sleep {0}",
        sleep()
    )
}

/// A time that no other process sleeps.
fn sleep() -> String {
    format!("1000.{}", std::process::id())
}

fn sleepers() -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| std::fs::read_to_string(process.path().join("cmdline")).ok());
    lines.filter(|line| line.starts_with("sleep\0") && line.contains(&sleep())).count()
}

#[test]
fn a_program_with_the_kernels_tables_and_any_other_program_carry_loads() {
    if !may_run(&["ip", "ethtool", "chrt", "setpriv"]) {
        return;
    }
    let (folder, line) = (tempfile::tempdir().unwrap(), forwarding_line());
    let arguments = ["--devices", "fib-lookup", "--command", &line];
    let report = measured(folder.path(), &["fib-lookup", "forwards"], &arguments);
    for name in ["fib-lookup", "forwards"] {
        let search = &device(&report, name)["searches"][0];
        assert!(search["mrr"].as_f64().unwrap() > 0.0, "{name}: {search}");
    }
    assert!(device(&report, "forwards")["description"].as_str().unwrap().contains("$INGRESS"));
    assert!(page(folder.path()).contains("### forwards"));
    assert_eq!(sleepers(), 0, "processes of the group are left behind");
}

#[test]
fn a_program_that_fails_is_reported_with_what_it_said() {
    if !may_run(&["ip", "ethtool", "chrt", "setpriv"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let line = "broken=echo no luck >&2; exit 7";
    let reason = (0..ATTEMPTS).find_map(|_| {
        let done = run(folder.path(), &["--devices", "broken", "--command", line]);
        let is_busy = stderr(&done).contains("holds no load");
        assert!(is_busy || done.status.code() == Some(3), "{}", stderr(&done));
        let report: Value = serde_json::from_slice(&done.stdout).ok()?;
        Some(device(&report, "broken")["failed"][0]["reason"].as_str().unwrap().to_owned())
    });
    let reason = reason.expect("other work took the generator's core");
    assert!(reason.contains("status 7") && reason.contains("no luck"), "{reason}");
}

#[test]
fn rules_of_this_host_are_set_or_refused_with_the_reason() {
    if !may_run(&["ip", "ethtool", "chrt", "nft"]) {
        return;
    }
    let reasons =
        [("kernel-iptables", "apt install iptables"), ("kernel-flowtable", "Could not process rule")];
    for (name, reason) in reasons {
        let is_missing = name == "kernel-iptables" && find("iptables-restore").is_none();
        let folder = tempfile::tempdir().unwrap();
        let done = run(folder.path(), &["--devices", name]);
        if done.status.code() == Some(1) && !stderr(&done).contains("holds no load") {
            let said = stderr(&done);
            assert!(said.contains(name) && said.contains(reason), "{said}");
            assert!(is_missing || name != "kernel-iptables", "iptables is installed: {said}");
            continue;
        }
        let report = measured(folder.path(), &[name], &["--devices", name]);
        let search = &device(&report, name)["searches"][0];
        assert!(search["mrr"].as_f64().unwrap() > 0.0, "{name}: {search}");
    }
}

#[test]
fn commands_that_cannot_be_measured_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str], reason: &str| {
        let done = run(folder.path(), arguments);
        assert_eq!(done.status.code(), Some(2), "{}", stderr(&done));
        assert!(stderr(&done).contains(reason), "{}", stderr(&done));
    };
    refused(&["--command", "kernel=true"], "is a device of this program");
    refused(&["--command", "true"], "NAME=COMMAND");
    refused(&["--command", "a=true", "--command", "a=false"], "a is given twice");
    refused(&["--command", "a=true", "--testbed", "lab.toml"], "--testbed");
}
