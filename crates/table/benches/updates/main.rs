//! How fast a table takes changes, and what that costs a core that looks up meanwhile.
//!
//! ```text
//! cargo bench -p fullview-table --bench updates -- --table full-view.txt.gz --algorithms dpdk_lpm4,dir18
//! ```
//!
//! One thread looks up random addresses without a pause. In turns the other rests and withdraws and announces again
//! routes of the table one by one: each change goes into the RIB, is patched into the FIB, and published. The reader's
//! rates in the two kinds of turns are compared.

#[path = "../support/mod.rs"]
mod support;

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use clap::Parser;
use fullview_table::fib::registry::{self, Registered};
use fullview_table::fib::{Algorithm, Fib, Instance, Outcome};
use fullview_table::{Address, Change, Family, NextHop, Rib, Route, probe};

#[derive(Parser)]
#[command(about = "How fast a table takes changes while another core looks up")]
struct Args {
    /// The routing table, in any form `fullview table` reads; its own next hops are not used.
    #[arg(long)]
    table: PathBuf,
    /// inet or inet6.
    #[arg(long, default_value = "inet", value_parser = family)]
    family: Family,
    /// The algorithms; those that cannot patch are compiled anew at every change.
    #[arg(long, value_delimiter = ',', required = true)]
    algorithms: Vec<String>,
    /// Next hops, dealt out by a hash of the prefix.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..65_535))]
    next_hops: u16,
    /// Changes in a turn, half of them withdrawals.
    #[arg(long, default_value_t = 400_000)]
    changes: usize,
    /// Turns of each kind.
    #[arg(long, default_value_t = 7)]
    turns: usize,
    /// Processors of the reader and of the writer; the system's choice unless given.
    #[arg(long, value_delimiter = ',')]
    cores: Vec<usize>,
    /// What `cargo bench` adds.
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
        let instance = algorithm.compile(rib)?;
        let writer = Writer { rib: rib.clone(), algorithm, published: instance.fib(), instance, rebuilds: 0 };
        println!("\n{}", measure(args, writer)?);
    }
    Ok(())
}

/// Lookups in one call of the reader.
const BATCH: usize = 256;

/// Keeps what one thread writes off the lines that the other reads for something else.
#[repr(align(128))]
struct Apart<T>(T);

/// What the threads share.
struct Shared<A: Address> {
    published: Apart<Mutex<Arc<dyn Fib<A>>>>,
    /// Grows with every other FIB published, so that the reader need not take the lock to see that there is none.
    version: Apart<AtomicU64>,
    looked_up: Apart<AtomicU64>,
    over: Apart<AtomicBool>,
}

impl<A: Address> Shared<A> {
    fn fetch(&self) -> Arc<dyn Fib<A>> {
        Arc::clone(&self.published.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    fn publish(&self, fib: Arc<dyn Fib<A>>) {
        *self.published.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = fib;
        self.version.0.fetch_add(1, Ordering::Release);
    }

    fn look_up(&self, keys: &[A]) {
        let (mut version, mut fib) = (0, self.fetch());
        let mut answers = [NextHop::NONE; BATCH];
        for batch in keys.chunks_exact(BATCH).cycle() {
            if self.over.0.load(Ordering::Relaxed) {
                return;
            }
            let newest = self.version.0.load(Ordering::Acquire);
            if newest != version {
                (version, fib) = (newest, self.fetch());
            }
            fib.lookup_batch(batch, &mut answers);
            black_box(&answers);
            self.looked_up.0.fetch_add(BATCH as u64, Ordering::Relaxed);
        }
    }
}

/// The RIB, and the FIB that follows it.
struct Writer<A: Address> {
    rib: Rib<A>,
    algorithm: &'static dyn Algorithm<A>,
    instance: Box<dyn Instance<A>>,
    /// What the reader was given last: a FIB that takes changes in place is not published again.
    published: Arc<dyn Fib<A>>,
    rebuilds: usize,
}

impl<A: Address> Writer<A> {
    fn apply(&mut self, change: Change<A>, shared: &Shared<A>) -> anyhow::Result<()> {
        self.rib.apply(change);
        match self.instance.patch(&self.rib, &[change]) {
            Outcome::Applied => {}
            Outcome::Rebuild | Outcome::Batch => {
                self.instance = self.algorithm.compile(&self.rib)?;
                self.rebuilds += 1;
            }
            Outcome::Error(error) => bail!("{}: {error}", self.algorithm.name()),
        }
        let fib = self.instance.fib();
        if !Arc::ptr_eq(&self.published, &fib) {
            self.published = Arc::clone(&fib);
            shared.publish(fib);
        }
        Ok(())
    }

    /// Withdraws these routes and announces them again, one by one; returns what each change took.
    fn flap(&mut self, routes: &[Route<A>], shared: &Shared<A>) -> anyhow::Result<Vec<Duration>> {
        let mut took = Vec::with_capacity(2 * routes.len());
        let mut start = Instant::now();
        for next_hop in [false, true] {
            for route in routes {
                let change = Change { prefix: route.prefix, next_hop: next_hop.then_some(route.next_hop) };
                self.apply(change, shared)?;
                let end = Instant::now();
                took.push(end - start);
                start = end;
            }
        }
        Ok(took)
    }
}

/// One algorithm's figures, as text.
fn measure<A: Address>(args: &Args, mut writer: Writer<A>) -> anyhow::Result<String> {
    let routes = drawn(&writer.rib, args.changes / 2);
    let keys: Vec<A> = probe::in_prefix(&writer.rib, 2).take(1 << 22).collect();
    let shared = Shared {
        published: Apart(Mutex::new(writer.instance.fib())),
        version: Apart(AtomicU64::new(0)),
        looked_up: Apart(AtomicU64::new(0)),
        over: Apart(AtomicBool::new(false)),
    };
    let mut rates = Rates::default();
    thread::scope(|scope| {
        scope.spawn(|| {
            pin(args.cores.first());
            shared.look_up(&keys);
        });
        pin(args.cores.get(1));
        let result = rates.turns(args.turns, &mut writer, &routes, &shared);
        shared.over.0.store(true, Ordering::Relaxed);
        result
    })?;
    let checked = probe::verify(&*writer.instance.fib(), &writer.rib, probe::edges(&writer.rib))?;
    Ok(format!(
        "{}: {}, rebuilds {}, {checked} keys verified",
        writer.algorithm.name(),
        rates.text(),
        writer.rebuilds
    ))
}

fn pin(core: Option<&usize>) {
    if let Some(&id) = core {
        core_affinity::set_for_current(core_affinity::CoreId { id });
    }
}

/// Different routes of the table in random order.
fn drawn<A: Address>(rib: &Rib<A>, count: usize) -> Vec<Route<A>> {
    let mut routes: Vec<Route<A>> = rib.iter().collect();
    for (last, draw) in (1..routes.len()).rev().zip(probe::uniform::<u32>(8)) {
        routes.swap(last, ((u64::from(draw) * (last as u64 + 1)) >> 32) as usize);
    }
    routes.truncate(count);
    routes
}

#[derive(Default)]
struct Rates {
    /// Of the reader alone, and with the writer at work: lookups a second.
    alone: Vec<f64>,
    shared: Vec<f64>,
    /// Of the writer, changes a second.
    changes: Vec<f64>,
    took: Vec<Duration>,
}

impl Rates {
    fn turns<A: Address>(
        &mut self,
        turns: usize,
        writer: &mut Writer<A>,
        routes: &[Route<A>],
        shared: &Shared<A>,
    ) -> anyhow::Result<()> {
        for _ in 0..turns.max(1) {
            let (seconds, lookups, took) = window(shared, || writer.flap(routes, shared))?;
            self.shared.push(lookups / seconds);
            self.changes.push(took.len() as f64 / seconds);
            self.took.extend(took);
            let rest = Duration::from_secs_f64(seconds);
            let (seconds, lookups, ()) = window(shared, || {
                thread::sleep(rest);
                Ok(())
            })?;
            self.alone.push(lookups / seconds);
        }
        Ok(())
    }

    fn text(mut self) -> String {
        self.took.sort_unstable();
        let ratios = self.shared.iter().zip(&self.alone).map(|(shared, alone)| shared / alone).collect();
        let micros = |share: f64| self.took[(self.took.len() as f64 * share) as usize].as_secs_f64() * 1e6;
        format!(
            "{:.2} M changes/s; one change {:.2} us median, {:.2} p99, {:.2} p99.9; reader {:.0} M lookups/s alone, \
             {:.0} meanwhile, ratio {:.3}",
            median(self.changes.clone()) / 1e6,
            micros(0.5),
            micros(0.99),
            micros(0.999),
            median(self.alone.clone()) / 1e6,
            median(self.shared.clone()) / 1e6,
            median(ratios),
        )
    }
}

/// Seconds that the work took, lookups meanwhile, and what came of it.
fn window<A: Address, T>(
    shared: &Shared<A>,
    work: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<(f64, f64, T)> {
    let (start, before) = (Instant::now(), shared.looked_up.0.load(Ordering::Relaxed));
    let result = work()?;
    let lookups = shared.looked_up.0.load(Ordering::Relaxed) - before;
    Ok((start.elapsed().as_secs_f64(), lookups as f64, result))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
