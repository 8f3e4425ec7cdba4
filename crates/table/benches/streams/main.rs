//! Lookup rates of the algorithms on streams of addresses, on one core; every answer is verified first.
//!
//! ```text
//! cargo bench -p fullview-table --bench streams -- --table full-view.txt.gz --algorithms dpdk_lpm4
//! ```
//!
//! All variants are measured in turns in one run, so that a machine that becomes slower affects all of them. Keys lie
//! in memory in the order of use, and answers are stored to a buffer of one batch, as in a forwarding loop.

mod keys;
mod measure;
#[path = "../support/mod.rs"]
mod support;

use std::iter;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, ensure};
use clap::Parser;
use fullview_table::fib::registry::{self, Registered};
use fullview_table::fib::{Fib, Footprint};
use fullview_table::{Address, Family, NextHop, Rib};

use keys::Stream;
use measure::Mode;

#[derive(Parser)]
#[command(about = "Lookup rates of the algorithms on streams of addresses")]
struct Args {
    /// The routing table, in any format that `fullview table` reads; its own next hops are not used.
    #[arg(long)]
    table: PathBuf,
    /// The family: inet or inet6.
    #[arg(long, default_value = "inet", value_parser = family)]
    family: Family,
    /// The algorithms to compare; the default is all except linear and radix.
    #[arg(long, value_delimiter = ',')]
    algorithms: Vec<String>,
    /// The lengths of batches.
    #[arg(long, value_delimiter = ',', default_value = "32,64,256")]
    batches: Vec<usize>,
    /// The letters of the streams; the default is all of the family.
    #[arg(long, value_delimiter = ',')]
    streams: Vec<char>,
    /// The number of next hops, which a hash of the prefix assigns.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..65_535))]
    next_hops: u16,
    /// The number of keys in a stream, as a power of two.
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(8..28))]
    keys: u32,
    /// The number of passes over each stream; their median is the result.
    #[arg(long, default_value_t = 9)]
    repeats: usize,
    /// Also call `prefetch` for the batch after the present one.
    #[arg(long)]
    prefetch: bool,
    /// Also measure dependent single lookups, each of which waits for the answer before.
    #[arg(long)]
    dependent: bool,
    /// `cargo bench` passes this flag.
    #[arg(long, hide = true)]
    bench: bool,
}

fn family(name: &str) -> Result<Family, String> {
    Family::named(name).ok_or_else(|| format!("{name} is neither inet nor inet6"))
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let table = support::load(&args.table, args.family)?;
    support::print_page_sizes();
    println!("next hops: {}, keys: 2^{}, passes: {}", args.next_hops, args.keys, args.repeats);
    match args.family {
        Family::Inet => run(&args, support::with_next_hops(&table.inet, args.next_hops)),
        Family::Inet6 => run(&args, support::with_next_hops(&table.inet6, args.next_hops)),
    }
}

/// A FIB that looks up nothing: it shows the cost of reading the keys and writing an answer each, for any algorithm.
struct KeysAlone;

impl<A: Address> Fib<A> for KeysAlone {
    fn lookup(&self, addr: A) -> NextHop {
        NextHop(addr.low_usize() as u16)
    }

    fn footprint(&self) -> Footprint {
        Footprint::default()
    }
}

/// The name of an algorithm, and its compiled table.
type Compiled<A> = (&'static str, Arc<dyn Fib<A>>);

fn run<A: Registered>(args: &Args, rib: Rib<A>) -> anyhow::Result<()> {
    ensure!(!rib.is_empty(), "{} has no {} routes", args.table.display(), A::FAMILY);
    let alone: Compiled<A> = ("keys alone", Arc::new(KeysAlone));
    let fibs: Vec<_> = iter::once(alone).chain(compile(&algorithms::<A>(&args.algorithms), &rib)?).collect();
    for stream in Stream::of(A::FAMILY, &args.streams)? {
        let keys = keys::draw(stream, &rib, 1 << args.keys);
        verify(&fibs[1..], &rib, &keys)?;
        println!("\n({}) {}, Mlookups/s, median (least, most)", stream.letter(A::FAMILY), stream.words());
        measure::compare(&fibs, &keys, &modes(args), args.repeats);
    }
    Ok(())
}

fn modes(args: &Args) -> Vec<Mode> {
    let mut modes: Vec<Mode> = args.batches.iter().copied().map(Mode::Batch).collect();
    if args.prefetch {
        modes.extend(args.batches.iter().copied().map(Mode::PrefetchedBatch));
    }
    modes.extend(args.dependent.then_some(Mode::Dependent));
    modes
}

fn algorithms<A: Registered>(asked: &[String]) -> Vec<String> {
    let slow = |name: &&str| *name == "linear" || name.starts_with("radix");
    match asked {
        [] => registry::names::<A>().into_iter().filter(|name| !slow(name)).map(str::to_owned).collect(),
        asked => asked.to_vec(),
    }
}

fn compile<A: Registered>(names: &[String], rib: &Rib<A>) -> anyhow::Result<Vec<Compiled<A>>> {
    let compile = |name: &String| {
        let algorithm = registry::find::<A>(name)
            .with_context(|| format!("no {name} for {}: {}", A::FAMILY, registry::names::<A>().join(", ")))?;
        let start = Instant::now();
        let fib = algorithm.compile(rib)?.fib();
        let (took, bytes) = (start.elapsed(), fib.footprint().total());
        println!("{name}: {} routes compiled in {:.3} s, {bytes} bytes", rib.len(), took.as_secs_f64());
        Ok((algorithm.name(), fib))
    };
    names.iter().map(compile).collect()
}

/// Compares every answer for every key with the ranges of the RIB.
fn verify<A: Address>(fibs: &[Compiled<A>], rib: &Rib<A>, keys: &[A]) -> anyhow::Result<()> {
    let ranges: Vec<_> = rib.ranges().collect();
    let expect = |key: &A| ranges[ranges.partition_point(|range| range.last < *key)].next_hop;
    let expected: Vec<NextHop> = keys.iter().map(expect).collect();
    for (name, fib) in fibs {
        let mut answers = vec![NextHop(u16::MAX); keys.len()];
        for (keys, answers) in keys.chunks(251).zip(answers.chunks_mut(251)) {
            fib.lookup_batch(keys, answers);
        }
        let wrong = answers.iter().zip(&expected).filter(|(answer, expected)| answer != expected).count();
        ensure!(wrong == 0, "{name} answers {wrong} of {} keys wrongly", keys.len());
    }
    Ok(())
}
