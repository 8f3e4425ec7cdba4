//! What a router has to do with each kind of frame, told by the Linux kernel: a catalogue of frames goes through the
//! kernel's own forwarding and through ours, and what comes out is compared byte by byte.
//!
//! A further device under test implements [`dut::Dut`] and is handed to [`compare`]; one that works on the interfaces
//! of a namespace starts from [`testbed::Testbed`].

// Helpers of a test fail by panicking, as the test itself does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod catalogue;
mod dut;
mod frames;
mod kernel;
mod namespace;
mod normal;
mod ours;
mod testbed;
mod topology;

use dut::{Dut, Output};
use kernel::Kernel;
use ours::Ours;

/// Runs every case.
fn play(dut: &mut impl Dut) -> Vec<(String, Vec<Output>)> {
    let run = |dut: &mut dyn Dut, step| match step {
        catalogue::Step::Send(side, frame) => dut.exchange(side, &frame),
        catalogue::Step::Wait(awaited) => dut.wait(awaited),
    };
    catalogue::all()
        .into_iter()
        .map(|case| (case.name, case.steps.into_iter().map(|step| run(dut, step)).collect()))
        .collect()
}

#[test]
fn prints() {
    let kernel = play(&mut Kernel::new().unwrap());
    let ours = play(&mut Ours::new());
    let mut count = 0;
    for ((name, kernel), (_, ours)) in kernel.iter().zip(&ours) {
        let (kernel, ours) = (normal::outputs(kernel), normal::outputs(ours));
        if kernel != ours {
            count += 1;
            println!("{name}");
            println!("  kernel");
            kernel.iter().for_each(|output| print!("{output}"));
            println!("  ours");
            ours.iter().for_each(|output| print!("{output}"));
        }
    }
    println!("{count} of {} differ", kernel.len());
}
