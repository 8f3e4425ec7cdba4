//! What a router has to do with each kind of frame, told by the Linux kernel: a catalogue of frames goes through the
//! kernel's own forwarding and through ours, and what comes out is compared byte by byte.
//!
//! A further device under test implements [`dut::Dut`] and is handed to [`play`]; one that works on the interfaces of a
//! namespace starts from [`testbed::Testbed`].

// Helpers of a test fail by panicking, as the test itself does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeSet, HashSet};
use std::process::Command;

use catalogue::Step;
use dut::{Dut, Output};
use kernel::Kernel;
use ours::Ours;

mod catalogue;
mod differences;
mod dut;
mod frames;
mod kernel;
mod namespace;
mod normal;
mod ours;
mod testbed;
mod topology;

/// What came out in each case, by its name: one output for each step.
fn play(dut: &mut impl Dut) -> Vec<(String, Vec<Output>)> {
    let run = |dut: &mut dyn Dut, step: &Step| match step {
        Step::Send(side, frame) => dut.exchange(*side, frame),
        Step::Wait(awaited) => dut.wait(*awaited),
    };
    let cases = catalogue::all().into_iter();
    cases.map(|case| (case.name, case.steps.iter().map(|step| run(dut, step)).collect())).collect()
}

/// The cases whose outputs differ, each with both of them printed.
fn differing(kernel: &[(String, Vec<Output>)], ours: &[(String, Vec<Output>)]) -> Vec<(String, String)> {
    let pairs = kernel.iter().zip(ours).map(|((name, kernel), (_, ours))| (name, kernel, ours));
    let pairs = pairs.map(|(name, kernel, ours)| (name, normal::outputs(kernel), normal::outputs(ours)));
    let different = pairs.filter(|(_, kernel, ours)| kernel != ours);
    different.map(|(name, kernel, ours)| (name.clone(), both(&kernel, &ours))).collect()
}

fn both(kernel: &[Output], ours: &[Output]) -> String {
    let text = |outputs: &[Output]| outputs.iter().map(ToString::to_string).collect::<String>();
    format!("  kernel\n{}  ours\n{}", text(kernel), text(ours))
}

/// Why there can be no namespaces here, if so. In CI that is a failure.
fn lacking() -> Option<String> {
    let ip = Command::new("ip").arg("-V").output().map_err(|error| format!("ip: {error}"));
    let namespace = || namespace::Namespace::new().map_err(|error| format!("a network namespace: {error}"));
    let reason = ip.and_then(|_| namespace()).err()?;
    assert!(std::env::var("CI").as_deref() != Ok("true"), "in CI nothing may be skipped: {reason}");
    Some(reason)
}

#[test]
fn our_router_does_what_the_kernel_does() {
    if let Some(reason) = lacking() {
        return eprintln!("skipped: {reason}");
    }
    let (kernel, ours) = (play(&mut Kernel::new().unwrap()), play(&mut Ours::new()));
    let different = differing(&kernel, &ours);
    let (listed, found) =
        (differences::listed(), different.iter().map(|(name, _)| name.as_str()).collect::<BTreeSet<_>>());
    for (name, outputs) in different.iter().filter(|(name, _)| !listed.contains(name.as_str())) {
        println!("{name}\n{outputs}");
    }
    let unlisted: Vec<_> = found.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&found).collect();
    assert!(
        unlisted.is_empty() && gone.is_empty(),
        "docs/kernel-differences.md: not listed, printed above: {unlisted:#?}; listed, but not different: {gone:#?}"
    );
}

#[test]
fn cases_have_names_of_their_own() {
    let cases = catalogue::all();
    let names: HashSet<_> = cases.iter().map(|case| &case.name).collect();
    assert_eq!(names.len(), cases.len());
}
