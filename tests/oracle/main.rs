//! The Linux kernel decides what a router has to do with each kind of frame: a catalogue of frames goes through the
//! kernel's forwarding and through ours, and the test compares the output byte by byte.
//!
//! A further device under test implements [`dut::Dut`] and is passed to [`play`]; one that works on the interfaces of a
//! namespace starts from [`testbed::Testbed`].

// Helpers of a test fail by panicking, as the test itself does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::sync::OnceLock;

use catalogue::{Catalogue, Step};
use dut::{Dut, Output};
use fullview_testnet::{has, may_run};
use kernel::Kernel;
use ours::Ours;
#[cfg(feature = "bpf")]
use program::Offloads;

mod catalogue;
mod differences;
mod dut;
mod frames;
mod kernel;
mod normal;
mod ours;
#[cfg(feature = "bpf")]
mod program;
mod tap;
mod testbed;
mod topology;

/// The name of each case and its output, one for each step.
type Played = Vec<(String, Vec<Output>)>;

fn play(catalogue: Catalogue, dut: &mut impl Dut) -> Played {
    let run = |dut: &mut dyn Dut, step: &Step| match step {
        Step::Send(side, frame) => dut.exchange(*side, frame),
        Step::Wait(awaited) => dut.wait(*awaited),
    };
    let cases = catalogue.cases().into_iter();
    cases.map(|case| (case.name, case.steps.iter().map(|step| run(dut, step)).collect())).collect()
}

/// Returns the cases whose outputs differ, each with both outputs as text.
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

/// A device forwards at least this number of packets itself while the catalogue is played; most of them are markers.
#[cfg(feature = "bpf")]
const LEAST_FORWARDED: u64 = 1_000;

/// Returns the kernel's outputs. Each catalogue is played to the kernel once.
fn oracle(catalogue: Catalogue) -> &'static Played {
    static ORACLES: [OnceLock<Played>; Catalogue::ALL.len()] =
        [const { OnceLock::new() }; Catalogue::ALL.len()];
    ORACLES[catalogue as usize].get_or_init(|| play(catalogue, &mut Kernel::new(catalogue)))
}

/// The devices that answer everything themselves.
const WITHOUT_KERNEL: [&str; 2] = ["host", "tap"];

/// Plays a catalogue to a device. Fails unless the device differs from the kernel in exactly the cases that are listed for
/// it.
fn compare(device: &str, catalogue: Catalogue, dut: &mut impl Dut) {
    let played = play(catalogue, dut);
    let is_quiet = |(_, outputs): &(String, Vec<Output>)| !outputs.iter().any(normal::has_redirect6);
    // The comparison ignores redirects that Linux sends although they are off. These two devices must not send them.
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
    if may_run(&["ip"]) {
        compare("host", catalogue, &mut Ours::new(catalogue));
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
    if may_run(&["ip", "setpriv"]) && has(Path::new("/dev/net/tun").exists(), "/dev/net/tun") {
        let mut router = tap::TapRouter::new(catalogue);
        compare("tap", catalogue, &mut router);
        router.end();
    }
}

/// Compares our program with these arguments, in front of a kernel.
#[cfg(feature = "bpf")]
fn beside_a_kernel(device: &str, offloads: Offloads, arguments: &[&str]) {
    if !may_run(&["ip", "ethtool", "setpriv"]) {
        return;
    }
    let mut router = program::KernelRouter::new(offloads, arguments);
    compare(device, Catalogue::General, &mut router);
    let forwarded = router.end();
    assert!(
        forwarded >= LEAST_FORWARDED,
        "the kernel did it: only {forwarded} packets forwarded by {device}"
    );
}

#[test]
#[cfg(feature = "bpf")]
fn our_workers_do_what_the_kernel_does() {
    beside_a_kernel("workers", Offloads::Default, &["--engine", "threads"]);
}

#[test]
#[cfg(feature = "bpf")]
fn our_workers_on_af_xdp_do_what_the_kernel_does() {
    beside_a_kernel("af-xdp", Offloads::AsXdpNeeds, &["--port", "xdp"]);
}

#[test]
#[cfg(feature = "bpf")]
fn our_xdp_program_does_what_the_kernel_does() {
    beside_a_kernel("xdp", Offloads::AsXdpNeeds, &["--engine", "xdp"]);
}

#[test]
#[cfg(feature = "bpf")]
fn our_program_at_tc_does_what_the_kernel_does() {
    beside_a_kernel("tc", Offloads::Default, &[]);
}

#[test]
#[cfg(feature = "bpf")]
fn our_generic_xdp_program_does_what_the_kernel_does() {
    beside_a_kernel("xdp-generic", Offloads::AsXdpNeeds, &["--engine", "xdp-generic"]);
}

#[test]
fn cases_have_names_of_their_own() {
    let cases: Vec<_> = Catalogue::ALL.into_iter().flat_map(Catalogue::cases).collect();
    let names: HashSet<_> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names.len(), cases.len());
    let unknown: Vec<_> = differences::cases().filter(|case| !names.contains(case)).collect();
    assert!(unknown.is_empty(), "docs/reference/kernel-differences.md lists unknown cases: {unknown:#?}");
}
