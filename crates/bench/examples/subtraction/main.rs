//! Whether subtracting the time of the bed finds what a router costs: routers with a known delay, on beds of several
//! kinds, measured and judged as every campaign is.
//!
//!     cargo run --release -p fullview-bench --example subtraction
//!
//! A delay is a chain of dependent multiplications for each packet. In every round the same chain also runs alone, so that
//! what must come out of the subtraction is measured beside it, at the same speed of the machine. The processor executes
//! some hundred instructions ahead. A *fenced* chain begins when the bed's memory accesses before it are complete, and the
//! bed's next ones wait for its end: it has its time for itself. A *loose* chain may overlap with the bed, and so may the
//! work of a real router: the part that overlaps costs the loop nothing, and no subtraction finds it.
//!
//! The program ends with code 1 if a fenced delay is proven to come out with more than the stated error, or if the share of
//! the forwarding loop is proven to move by more with the share of checked packets, the number of packets in flight, or a
//! delay of the bed. The last column has the error of another subtraction, that of the times within each round.

// An example fails by panicking.
#![allow(clippy::unwrap_used)]

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::Parser;
use fullview_lab::progress::{PanelStart, Progress};
use fullview_lab::{Archive, Experiment, Opening, PanelRecord, report};

use delay::Chain;
use figures::Figures;
use panel::{DelayBench, DelaySettings};

mod delay;
mod figures;
mod panel;

#[derive(Parser)]
#[command(about = "Whether subtracting the time of the bed finds what a router costs")]
struct Args {
    /// Blocks of each bed
    #[arg(long, default_value_t = 10)]
    blocks: u32,
    /// Seconds that each router is measured in a panel
    #[arg(long, default_value_t = 0.1)]
    seconds: f64,
}

/// The beds, by the names of the experiment's families; the first is the usual one.
const BEDS: [&str; 6] = ["usual", "check-all", "check-1024", "packets-256", "packets-32768", "bed-delay-20"];

fn main() -> ExitCode {
    let args = Args::parse();
    let folder = tempfile::tempdir().unwrap();
    let experiment: Experiment<DelaySettings> = Experiment::parse("subtraction", &question(&args)).unwrap();
    let mut archive = Archive::open(folder.path(), &experiment, Opening::New).unwrap();
    let mut bench = DelayBench::new(Chain::calibrated());
    let never = AtomicBool::new(false);
    fullview_lab::run(&experiment, &mut archive, &mut bench, &mut Lines, &never).unwrap();
    let figures = Figures::of(report(folder.path()).unwrap().json(), archive.panels());
    print!("{figures}");
    if figures.hold() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The experiment: every kind of router with every delay on every bed.
fn question(args: &Args) -> String {
    let mut text = format!(
        "title = \"Subtraction\"\nruns = {}\nseed = 1\nfamilies = {BEDS:?}\n\
         window = {{ warmup_s = 0.1, measure_s = {}, slice_ms = 1.0 }}\n",
        args.blocks, args.seconds
    );
    let mut variant = |name: String, settings: String| {
        text += &format!("[[variants]]\nname = {name:?}\nlabel = {name:?}\nset = {{ {settings} }}\n");
    };
    variant("forward".into(), "router = \"forward\"".into());
    for ns in figures::DELAYS {
        for fenced in [true, false] {
            let word = figures::word(fenced);
            let of = |router: &str| format!("router = {router:?}, ns = {ns}, fenced = {fenced}");
            variant(format!("alone-{word}-{ns}"), of("alone"));
            variant(format!("pass-{word}-{ns}"), of("pass"));
            variant(format!("forward-{word}-{ns}"), of("forward"));
        }
    }
    text
}

/// Prints a line for each panel.
struct Lines;

impl Progress for Lines {
    fn started(&mut self, _panels: usize, _estimated: Duration) {}
    fn panel_started(&mut self, _panel: &PanelStart<'_>) {}
    fn panel_advanced(&mut self, _share: f64) {}
    fn panel_finished(&mut self, record: &PanelRecord, remaining: Duration) {
        let PanelRecord { block, family, validity, seconds, .. } = record;
        eprintln!(
            "block {block}, {family}: {validity}, {seconds:.1} s, {:.0} s to go",
            remaining.as_secs_f64()
        );
    }
}
