//! Images of the device under test: a command installs one, and the host starts again.

use std::fs;
use std::process::Output;
use std::time::Duration;

use fullview_testnet::may_run;
use serde_json::Value;

use crate::hosts::SshHosts;
use crate::remote::{PROGRAMS, SHORT, command, fullview, program, said, two};

/// Two images, which are the content of a file. The command swaps it, says so to the test, which restarts the host's server,
/// and does not end by itself.
fn with_images() -> SshHosts {
    let hosts = two();
    let folder = hosts.folder.path().display().to_string();
    let text = fs::read_to_string(hosts.path("lab.toml")).unwrap();
    let (nodes, devices) = text.split_once("[[devices]]\nname = \"threads\"").unwrap();
    let (_, lines) = devices.split_once("[[devices]]\nname = \"lines\"").unwrap();
    let image = |name: &str, rest: &str| {
        format!(
            "[[devices]]\nname = \"{name}\"\n{rest}image = {{ install = \"echo {name} > {folder}/image; echo {name} >> \
             {folder}/installed; touch {folder}/reboot; sleep 100\", running = \"cat {folder}/image\", expected = \
             \"{name}\", boot-seconds = 60 }}{lines}\n"
        )
    };
    // Each image needs new connections, for which the program would be copied again.
    let there = format!("role = \"dut\"\nprogram = \"{}\"\n", program());
    let nodes = nodes.replace("role = \"dut\"\n", &there);
    let text = format!("{nodes}{}{}", image("old", "control = true\n"), image("new", ""));
    fs::write(hosts.path("lab.toml"), text).unwrap();
    fs::write(hosts.path("image"), "other\n").unwrap();
    hosts
}

/// Runs the program, and restarts the host whenever an image was installed.
fn measure(hosts: &mut SshHosts, more: &[&str]) -> Output {
    let all = [&["rates", "--testbed", "lab.toml", "--out", "out"], &SHORT[..], more].concat();
    let options: Vec<&str> = all.into_iter().filter(|option| !option.is_empty()).collect();
    let mut command = command(&options, hosts);
    let mut child = hosts.control.run(move || command.spawn().unwrap());
    while child.try_wait().unwrap().is_none() {
        if fs::remove_file(hosts.path("reboot")).is_ok() {
            hosts.restart("dut");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    child.wait_with_output().unwrap()
}

#[test]
fn every_block_has_every_image_and_survives_the_restarts() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let mut hosts = with_images();
    // The control is measured although it is not named.
    let done = measure(&mut hosts, &["--devices=new", "--seed=3"]);
    hosts.assert_idle();
    assert!(matches!(done.status.code(), Some(0 | 3)), "{}", said(&done));
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    let turns = fs::read_to_string(hosts.path("out/turns.jsonl")).unwrap();
    let devices: Vec<Value> = turns.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut order: Vec<&str> = devices.iter().map(|turn| turn["device"].as_str().unwrap()).collect();
    let installed = fs::read_to_string(hosts.path("installed")).unwrap();
    let last: Vec<&str> = installed.lines().collect();
    assert!(last.windows(2).all(|pair| pair[0] != pair[1]), "an image that runs is not installed: {last:?}");
    assert_eq!(last.last(), order.last(), "{last:?}");
    order.sort_unstable();
    assert_eq!(order, ["new", "old"]);
    let blocks = report["blocks"].as_array().unwrap();
    assert!(blocks.iter().all(|one| one["device"] == "new") && blocks.len() == 3, "{report}");
    let page = fs::read_to_string(hosts.path("out/README.md")).unwrap();
    assert!(page.contains("## Against old"), "{page}");
}

#[test]
fn an_image_that_does_not_run_or_cannot_be_installed_is_an_error_that_says_so() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let mut hosts = with_images();
    let original = fs::read_to_string(hosts.path("lab.toml")).unwrap();
    let other =
        original.replace("expected = \"old\", boot-seconds = 60", "expected = \"elder\", boot-seconds = 2");
    fs::write(hosts.path("lab.toml"), other).unwrap();
    let done = measure(&mut hosts, &[]);
    assert_eq!(done.status.code(), Some(1), "{}", said(&done));
    let message = said(&done);
    assert!(message.contains("dut: the image of old does not run 2 s after it was installed"), "{message}");
    assert!(message.contains("has to print \"elder\", and it prints \"old\""), "{message}");
    // Nothing restarts the host, which would end the command before it could say that it failed.
    let restarts = format!("touch {}; sleep 100", hosts.path("reboot").display());
    let failing = original.replace(&restarts, "echo no room >&2; exit 5");
    assert_ne!(failing, original);
    fs::write(hosts.path("lab.toml"), failing).unwrap();
    fs::write(hosts.path("image"), "other\n").unwrap();
    let done = measure(&mut hosts, &[]);
    let message = said(&done);
    let expected = "dut: the command that installs the image of old ended with status 5 and said: no room";
    assert!(done.status.code() == Some(1) && message.contains(expected), "{message}");
    hosts.assert_idle();
}

#[test]
fn images_without_a_control_or_beside_devices_without_one_are_refused() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let hosts = with_images();
    let original = fs::read_to_string(hosts.path("lab.toml")).unwrap();
    fs::write(hosts.path("lab.toml"), original.replace("control = true\n", "")).unwrap();
    let done = fullview(&hosts, &["testbed", "draw", "lab.toml"]);
    assert_eq!(done.status.code(), Some(2), "{}", said(&done));
    assert!(said(&done).contains("needs `control = true`"), "{}", said(&done));
    let kernel = "[[devices]]\nname = \"kernel\"\nkind = \"kernel\"\n";
    fs::write(hosts.path("lab.toml"), original + kernel).unwrap();
    let done = fullview(&hosts, &["testbed", "draw", "lab.toml"]);
    assert!(said(&done).contains("each of them needs one"), "{}", said(&done));
}
