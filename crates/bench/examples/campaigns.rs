//! Many real campaigns on this machine: how often the lab claims a difference where there is none, how precise it is, and
//! how often it finds a router that is slower by a known share.
//!
//!     cargo run --release -p fullview-bench --example campaigns -- --campaigns 200 > campaigns.csv
//!
//! A campaign is the main job, shortened: the forwarding loop in memory with `dpdk_lpm4`, once as the baseline, once more
//! under another name (a difference would be a false alarm), and once slowed down: after each of its slices the thread
//! spends a share of the router's time in it without forwarding, which counts as its time. The router's time is what is left
//! of the slice's without what the loop without a router took for as many packets; with `--of loop` it is a share of all of
//! the slice. The hidden copy of the baseline runs as in every campaign. `--example neighbour` beside it disturbs the
//! machine.

// An example fails by panicking.
#![allow(clippy::unwrap_used)]

use std::hint::spin_loop;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use clap::Parser;
use fullview_bench::settings::Settings;
use fullview_bench::subject::RouterBench;
use fullview_lab::progress::{PanelStart, Progress};
use fullview_lab::{
    Archive, Arm, Bench, Experiment, Findings, Opening, Panel, PanelError, PanelRecord, PanelWork, Slice,
    SliceLimits, SubjectError, Verified, report,
};
use serde_json::Value;

#[derive(Parser)]
#[command(about = "How often real campaigns are wrong, and what they find")]
struct Args {
    #[arg(long, default_value_t = 200)]
    campaigns: u64,
    /// The seed of the first campaign: what comes after the last one of another run continues it
    #[arg(long, default_value_t = 1)]
    first: u64,
    /// Blocks of each campaign
    #[arg(long, default_value_t = 10)]
    blocks: u32,
    /// Seconds that each router is measured in a block
    #[arg(long, default_value_t = 0.1)]
    seconds: f64,
    /// By how much longer it takes for a packet, in percent
    #[arg(long, default_value_t = 2.0)]
    slower: f64,
    /// The margin that a difference must exceed, in percent
    #[arg(long, default_value_t = 0.5)]
    margin: f64,
    /// What takes longer: the router, or the whole loop with generator and receiver
    #[arg(long, value_enum, default_value_t = Slowed::Router)]
    of: Slowed,
    /// Keep the archives, a folder for each campaign's seed, in this one
    #[arg(long)]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Slowed {
    Router,
    Loop,
}

impl Slowed {
    /// What the slowed part took of a slice, by one of the loop without a router.
    fn time(self, slice: &Slice, bed: &Slice) -> Duration {
        match self {
            Slowed::Loop => slice.time,
            Slowed::Router => {
                slice.time.saturating_sub(bed.time.mul_f64(slice.counted as f64 / bed.counted as f64))
            }
        }
    }
}

fn main() {
    let args = Args::parse();
    let mut out = io::stdout().lock();
    writeln!(out, "campaign,seconds,untrusted,copy_half_width,same,slowed,slowed_estimate").unwrap();
    for seed in (args.first..).take(args.campaigns as usize) {
        writeln!(out, "{seed},{}", campaign(&args, seed)).unwrap();
        out.flush().unwrap();
    }
}

/// Measures one campaign; returns its line. Widths and estimates are parts of one, NaN where nothing was judged.
fn campaign(args: &Args, seed: u64) -> String {
    let temporary = tempfile::tempdir().unwrap();
    let folder = args.out.as_deref().unwrap_or(temporary.path()).join(seed.to_string());
    let started = Instant::now();
    let report = measured(args, seed, &folder);
    let seconds = started.elapsed().as_secs_f64();
    let copy = &report["copies"][0]["effect"];
    let half_width = (number(&copy["high"]) - number(&copy["low"])) / 2.0;
    let of = |name: &str| report["comparisons"].as_array().unwrap().iter().find(|one| one["variant"] == name);
    let verdict = |name| of(name).and_then(|one| one["verdict"].as_str()).unwrap_or("not judged").to_owned();
    let estimate = of("slowed").map_or(f64::NAN, |one| number(&one["whole"]["estimate"]));
    let untrusted = !report["untrusted"].is_null();
    format!(
        "{seconds:.1},{untrusted},{half_width:.5},{},{},{estimate:.5}",
        verdict("same"),
        verdict("slowed")
    )
}

/// A number of the report; NaN where too few blocks were valid for one.
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

fn measured(args: &Args, seed: u64, folder: &Path) -> Value {
    let experiment: Experiment<Settings> = Experiment::parse("campaigns", &question(args, seed)).unwrap();
    let mut archive = Archive::open(folder, &experiment, Opening::New).unwrap();
    let router = RouterBench::new(&experiment).unwrap();
    let mut bench = SlowedBench { router, of: args.of, share: args.slower / 100.0 };
    fullview_lab::run(&experiment, &mut archive, &mut bench, &mut Silence, &AtomicBool::new(false)).unwrap();
    serde_json::from_str(report(folder).unwrap().json()).unwrap()
}

fn question(args: &Args, seed: u64) -> String {
    let Args { blocks, seconds, .. } = args;
    let margin = args.margin / 100.0;
    let mut text = format!(
        "title = \"Campaigns\"\nruns = {blocks}\nseed = {seed}\nfamilies = [\"inet\"]\n\
         window = {{ warmup_s = 0.02, measure_s = {seconds}, slice_ms = 1.0 }}\n\
         [subject]\nkind = \"forward\"\nload.shape = \"one-core\"\n\
         table = {{ source = \"synthetic\", inet = 50000, inet6 = 10 }}\n\
         traffic = {{ model = \"netbenches\", flows = 5000 }}\n"
    );
    for (name, modules) in [("baseline", "[]"), ("same", "[\"dpdk_lpm4\"]"), ("slowed", SLOWED)] {
        text += &format!(
            "[[variants]]\nname = {name:?}\nlabel = {name:?}\n\
             set.router = {{ algorithm = \"dpdk_lpm4\", modules = {modules} }}\n"
        );
    }
    text + &format!(
        "[analysis]\nbaseline = \"baseline\"\nmargin = {margin}\nmetric = \"packets forwarded\"\n"
    )
}

/// The list of modules by which the slowed router is known. An algorithm that is named does not depend on it.
const SLOWED: &str = "[\"dpdk_lpm4\", \"radix\"]";

fn is_slowed(settings: &Settings) -> bool {
    settings.router.modules.as_ref().is_some_and(|modules| modules.len() == 2)
}

/// The program's bench, with a router that is slowed down.
struct SlowedBench {
    router: RouterBench,
    of: Slowed,
    share: f64,
}

impl Bench<Settings> for SlowedBench {
    fn panel(
        &mut self,
        members: &[Settings],
        family: &str,
        seed: u64,
        work: PanelWork<'_>,
    ) -> Result<(), PanelError> {
        let SlowedBench { router, of, share } = self;
        let slowed: Vec<bool> = members.iter().map(is_slowed).collect();
        router.panel(members, family, seed, &mut |panel| {
            work(&mut SlowedPanel { panel, slowed: &slowed, of: *of, share: *share, bed: None })
        })
    }

    fn conditions(&mut self) -> Vec<String> {
        self.router.conditions()
    }
}

struct SlowedPanel<'p> {
    panel: &'p mut dyn Panel,
    /// Whether each member is slowed down.
    slowed: &'p [bool],
    of: Slowed,
    share: f64,
    /// The last slice of the loop without a router.
    bed: Option<Slice>,
}

impl Panel for SlowedPanel<'_> {
    fn controls(&self) -> usize {
        self.panel.controls()
    }

    fn control_of(&self, member: usize) -> usize {
        self.panel.control_of(member)
    }

    fn subtracts(&self) -> bool {
        self.panel.subtracts()
    }

    fn is_paced(&self) -> bool {
        self.panel.is_paced()
    }

    fn slice_limits(&self) -> SliceLimits {
        self.panel.slice_limits()
    }

    fn verify(&mut self, member: usize) -> Result<Verified, SubjectError> {
        self.panel.verify(member)
    }

    fn slice(&mut self, arm: Arm, lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
        let slice = self.panel.slice(arm, lead_in, length)?;
        match arm {
            Arm::Control(_) => self.bed = Some(slice),
            Arm::Member(member) if self.slowed[member] => {
                let bed = match self.bed {
                    Some(bed) => bed,
                    None => self.panel.slice(Arm::Control(0), lead_in, length)?,
                };
                let idle = spent(self.of.time(&slice, &bed).mul_f64(self.share));
                return Ok(Slice { time: slice.time + idle, ..slice });
            }
            Arm::Member(_) => {}
        }
        Ok(slice)
    }

    fn findings(&mut self, member: usize) -> Findings {
        self.panel.findings(member)
    }

    fn bed_findings(&mut self) -> Findings {
        self.panel.bed_findings()
    }
}

/// Waits for that time; returns the time that it took.
fn spent(time: Duration) -> Duration {
    let started = Instant::now();
    while started.elapsed() < time {
        spin_loop();
    }
    started.elapsed()
}

struct Silence;

impl Progress for Silence {
    fn started(&mut self, _panels: usize, _estimated: Duration) {}
    fn panel_started(&mut self, _panel: &PanelStart<'_>) {}
    fn panel_advanced(&mut self, _share: f64) {}
    fn panel_finished(&mut self, _record: &PanelRecord, _remaining: Duration) {}
}
