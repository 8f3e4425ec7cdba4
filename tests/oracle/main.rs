//! What a router has to do with each kind of frame, told by the Linux kernel: a catalogue of frames goes through the
//! kernel's own forwarding and through ours, and what comes out is compared byte by byte.
//!
//! A further device under test implements [`dut::Dut`] and is handed to [`play`]; one that works on the interfaces of a
//! namespace starts from [`testbed::Testbed`].

// Helpers of a test fail by panicking, as the test itself does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use catalogue::{Catalogue, Step};
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
#[cfg(feature = "bpf")]
mod program;
mod tap;
mod testbed;
mod topology;

/// What came out in each case, by its name: one output for each step.
type Played = Vec<(String, Vec<Output>)>;

fn play(catalogue: Catalogue, dut: &mut impl Dut) -> Played {
    let run = |dut: &mut dyn Dut, step: &Step| match step {
        Step::Send(side, frame) => dut.exchange(*side, frame),
        Step::Wait(awaited) => dut.wait(*awaited),
    };
    let cases = catalogue.cases().into_iter();
    cases.map(|case| (case.name, case.steps.iter().map(|step| run(dut, step)).collect())).collect()
}

/// The cases whose outputs differ, each with both of them printed.
fn differing(catalogue: Catalogue, ours: &Played) -> Vec<(String, String)> {
    let (kernel, normal) = (oracle(catalogue), |outputs: &[Output]| normal::outputs(catalogue, outputs));
    let pairs = kernel.iter().zip(ours).map(|((name, kernel), (_, ours))| (name, kernel, ours));
    let pairs = pairs.map(|(name, kernel, ours)| (name, normal(kernel), normal(ours)));
    let different = pairs.filter(|(_, kernel, ours)| kernel != ours);
    different.map(|(name, kernel, ours)| (name.clone(), both(&kernel, &ours))).collect()
}

fn both(kernel: &[Output], ours: &[Output]) -> String {
    let text = |outputs: &[Output]| outputs.iter().map(ToString::to_string).collect::<String>();
    format!("  kernel\n{}  ours\n{}", text(kernel), text(ours))
}

/// Packets that a device forwards itself while the catalogue is played: markers, most of them.
#[cfg(feature = "bpf")]
const LEAST_FORWARDED: u64 = 1_000;

/// Why there can be no namespaces here, or which of these programs is missing, if so. In CI that is a failure.
fn lacking(programs: &[&str]) -> Option<String> {
    let run = |program: &str| Command::new(program).arg("--version").output();
    let missing =
        programs.iter().find_map(|program| run(program).err().map(|error| format!("{program}: {error}")));
    let namespace = || namespace::Namespace::new().err().map(|error| format!("a network namespace: {error}"));
    let reason = missing.or_else(namespace)?;
    assert!(std::env::var("CI").as_deref() != Ok("true"), "in CI nothing may be skipped: {reason}");
    Some(reason)
}

/// What the kernel does, asked once.
fn oracle(catalogue: Catalogue) -> &'static Played {
    static ORACLES: [OnceLock<Played>; Catalogue::ALL.len()] =
        [const { OnceLock::new() }; Catalogue::ALL.len()];
    ORACLES[catalogue as usize].get_or_init(|| play(catalogue, &mut Kernel::new(catalogue).unwrap()))
}

/// Devices that answer everything themselves.
const WITHOUT_KERNEL: [&str; 2] = ["host", "tap"];

/// Plays a catalogue to a device, and fails unless it differs from the kernel in what is listed for it.
fn compare(device: &str, catalogue: Catalogue, dut: &mut impl Dut) {
    let played = play(catalogue, dut);
    let is_quiet = |(_, outputs): &(String, Vec<Output>)| !outputs.iter().any(normal::has_redirect6);
    // The comparison leaves out what Linux says too much; no kernel says it for these two.
    assert!(
        catalogue.redirects() || !WITHOUT_KERNEL.contains(&device) || played.iter().all(is_quiet),
        "{device} sends redirects where they are off"
    );
    let different = differing(catalogue, &played);
    let mut listed = differences::listed(device);
    listed.retain(|name| played.iter().any(|(case, _)| case == name));
    let found: BTreeSet<_> = different.iter().map(|(name, _)| name.as_str()).collect();
    for (name, outputs) in different.iter().filter(|(name, _)| !listed.contains(name.as_str())) {
        println!("{name}\n{outputs}");
    }
    let unlisted: Vec<_> = found.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&found).collect();
    assert!(
        unlisted.is_empty() && gone.is_empty(),
        "docs/reference/kernel-differences.md, {device}: not listed, printed above: {unlisted:#?}; \
         listed, but not different: {gone:#?}"
    );
}

#[test]
fn our_router_does_what_the_kernel_does() {
    in_memory(Catalogue::General);
}

#[test]
fn our_router_redirects_as_the_kernel_does() {
    in_memory(Catalogue::Redirects);
}

fn in_memory(catalogue: Catalogue) {
    match lacking(&["ip"]) {
        Some(reason) => eprintln!("skipped: {reason}"),
        None => compare("host", catalogue, &mut Ours::new(catalogue)),
    }
}

#[test]
fn a_router_without_a_kernel_does_what_the_kernel_does() {
    on_taps(Catalogue::General);
}

#[test]
fn a_router_without_a_kernel_redirects_as_the_kernel_does() {
    on_taps(Catalogue::Redirects);
}

fn on_taps(catalogue: Catalogue) {
    if let Some(reason) = lacking(&["ip", "setpriv"]) {
        return eprintln!("skipped: {reason}");
    }
    if !Path::new("/dev/net/tun").exists() {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "in CI nothing may be skipped: no /dev/net/tun"
        );
        return eprintln!("skipped: no /dev/net/tun");
    }
    let mut program = tap::Program::new(catalogue);
    compare("tap", catalogue, &mut program);
    program.end();
}

/// The program with these arguments, before a kernel.
#[cfg(feature = "bpf")]
fn beside_a_kernel(device: &str, arguments: &[&str]) {
    if let Some(reason) = lacking(&["ip", "ethtool", "setpriv"]) {
        return eprintln!("skipped: {reason}");
    }
    let mut program = program::Program::new(arguments);
    compare(device, Catalogue::General, &mut program);
    let forwarded = program.end();
    assert!(
        forwarded >= LEAST_FORWARDED,
        "the kernel did it: only {forwarded} packets forwarded by {device}"
    );
}

#[test]
#[cfg(feature = "bpf")]
fn nobody_can_tell_our_workers_from_the_kernel() {
    beside_a_kernel("workers", &[]);
}

#[test]
#[cfg(feature = "bpf")]
fn nobody_can_tell_our_workers_on_af_xdp_from_the_kernel() {
    beside_a_kernel("af-xdp", &["--port", "xdp"]);
}

#[test]
#[cfg(feature = "bpf")]
fn nobody_can_tell_our_xdp_program_from_the_kernel() {
    beside_a_kernel("xdp", &["--engine", "xdp"]);
}

#[test]
#[cfg(feature = "bpf")]
fn nobody_can_tell_our_generic_xdp_program_from_the_kernel() {
    beside_a_kernel("xdp-generic", &["--engine", "xdp-generic"]);
}

#[test]
fn cases_have_names_of_their_own() {
    let cases: Vec<_> = Catalogue::ALL.into_iter().flat_map(Catalogue::cases).collect();
    let names: HashSet<_> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names.len(), cases.len());
    let unknown: Vec<_> = differences::cases().filter(|case| !names.contains(case)).collect();
    assert!(unknown.is_empty(), "docs/reference/kernel-differences.md lists what is no case: {unknown:#?}");
}
