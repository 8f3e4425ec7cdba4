//! How fast a table takes changes, and what that costs a core that looks up at the same time.
//!
//! ```text
//! cargo bench -p fullview-table --bench updates -- --table full-view.txt.gz --algorithms dpdk_lpm4,dir18 --cores 1,0
//! ```
//!
//! One thread looks up random addresses without a pause. The other has three kinds of short slices, in random order in
//! each round: it rests; it withdraws and announces routes of a table that is not read; it does the same with the table
//! that is read. Each change is applied to the RIB, patched into the FIB, and published. The reader's loss is its loss
//! in the third kind of slices. Its loss in the second kind comes from the machine, whose cores share caches, memory
//! and sometimes execution units.

mod figures;
mod reader;
mod slices;
#[path = "../support/mod.rs"]
mod support;
mod writer;

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Parser;
use fullview_table::fib::registry::{self, Registered};
use fullview_table::{Address, Family, Rib, Route, probe};

use slices::Slices;
use writer::Writer;

#[derive(Parser)]
#[command(about = "How fast a table takes changes while another core looks up")]
struct Args {
    /// The routing table, in any format that `fullview table` reads; its own next hops are not used.
    #[arg(long)]
    table: PathBuf,
    /// The family: inet or inet6.
    #[arg(long, default_value = "inet", value_parser = family)]
    family: Family,
    /// The algorithms; those that cannot patch are compiled again at every change.
    #[arg(long, value_delimiter = ',', required = true)]
    algorithms: Vec<String>,
    /// The number of next hops, which a hash of the prefix assigns.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..65_535))]
    next_hops: u16,
    /// The number of different routes that are withdrawn and announced.
    #[arg(long, default_value_t = 200_000)]
    routes: usize,
    /// The number of rounds of three slices.
    #[arg(long, default_value_t = 40)]
    rounds: usize,
    /// The length of a slice in milliseconds.
    #[arg(long, default_value_t = 200)]
    slice: u64,
    /// The processors of the reader and of the writer; by default the system chooses.
    #[arg(long, value_delimiter = ',')]
    cores: Vec<usize>,
    /// `cargo bench` passes this flag.
    #[arg(long, hide = true)]
    bench: bool,
}

fn family(name: &str) -> Result<Family, String> {
    Family::named(name).ok_or_else(|| format!("{name} is neither inet nor inet6"))
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    ensure!(
        thread::available_parallelism()?.get() > 1,
        "reader and writer need a processor each, but there is one"
    );
    let apart = args.cores.is_empty() || matches!(args.cores[..], [reader, writer] if reader != writer);
    ensure!(apart, "--cores: name two different ones, for the reader and for the writer");
    let table = support::load(&args.table, args.family)?;
    support::print_page_sizes();
    match args.family {
        Family::Inet => run(&args, &support::with_next_hops(&table.inet, args.next_hops)),
        Family::Inet6 => run(&args, &support::with_next_hops(&table.inet6, args.next_hops)),
    }
}

fn run<A: Registered>(args: &Args, rib: &Rib<A>) -> anyhow::Result<()> {
    ensure!(!rib.is_empty(), "{} has no {} routes", args.table.display(), A::FAMILY);
    for name in &args.algorithms {
        let algorithm = registry::find::<A>(name)
            .with_context(|| format!("no {name} for {}: {}", A::FAMILY, registry::names::<A>().join(", ")))?;
        let [read, unread] = [(); 2].map(|()| Writer::new(algorithm, rib));
        let slices = Slices {
            cores: &args.cores,
            rounds: args.rounds.max(1),
            length: Duration::from_millis(args.slice.max(1)),
            routes: drawn(rib, args.routes),
            keys: probe::in_prefix(rib, 2).take(1 << 22).collect(),
        };
        println!("\n{name}, {} {} routes", rib.len(), A::FAMILY);
        println!("{}", slices.measure(read?, unread?)?);
    }
    Ok(())
}

/// Different routes of the table in random order.
fn drawn<A: Address>(rib: &Rib<A>, count: usize) -> Vec<Route<A>> {
    let mut routes: Vec<Route<A>> = rib.iter().collect();
    for (last, draw) in (1..routes.len()).rev().zip(probe::uniform::<u32>(8)) {
        routes.swap(last, ((u64::from(draw) * (last as u64 + 1)) >> 32) as usize);
    }
    routes.truncate(count.max(1));
    routes
}
