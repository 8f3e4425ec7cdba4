//! Changes applied and visible while another core looks up: each withdraws a route of the table or announces it again.
//!
//! ```text
//! taskset -c 0,1 cargo bench -p fullview-table --bench updates -- --table full-view.txt.gz --family inet6
//! ```
//!
//! A change counts from before the RIB learns of it until the FIB that answers by it is there for the reader to
//! fetch.
//! Spells with and without changes alternate; the reader's rates are medians over each kind.

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Parser;
use fullview_table::feed::{self, Options};
use fullview_table::fib::registry::{self, Registered};
use fullview_table::fib::{Fib, Instance, Outcome};
use fullview_table::{Address, Change, Family, NextHop, Prefix, Rib, Route, probe};

#[derive(Parser)]
#[command(about = "Changes per second, and what they cost a reader on another core")]
struct Args {
    /// The routing table, in any form `fullview table` reads.
    #[arg(long)]
    table: PathBuf,
    /// inet or inet6.
    #[arg(long, default_value = "inet6", value_parser = family)]
    family: Family,
    /// The algorithm that takes the changes.
    #[arg(long, default_value = "btree6")]
    algorithm: String,
    /// Spells of each kind.
    #[arg(long, default_value_t = 9)]
    spells: usize,
    /// Milliseconds of a spell.
    #[arg(long, default_value_t = 500)]
    spell: u64,
    /// What `cargo bench` adds.
    #[arg(long, hide = true)]
    bench: bool,
}

fn family(name: &str) -> Result<Family, String> {
    Family::named(name).ok_or_else(|| format!("{name} is neither inet nor inet6"))
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let options = Options { family: Some(args.family), ..Options::default() };
    let table = feed::load(&args.table, &options)?.table;
    match args.family {
        Family::Inet => run(&args, table.inet),
        Family::Inet6 => run(&args, table.inet6),
    }
}

/// What reader and writer share.
struct Shared<A: Address> {
    fib: Mutex<Arc<dyn Fib<A>>>,
    looked_up: AtomicUsize,
    done: AtomicBool,
}

fn run<A: Registered>(args: &Args, rib: Rib<A>) -> anyhow::Result<()> {
    let algorithm = registry::find::<A>(&args.algorithm).context("no such algorithm")?;
    let instance = algorithm.compile(&rib)?;
    let keys: Vec<A> = probe::in_prefix(&rib, 1).take(1 << 22).collect();
    ensure!(!keys.is_empty(), "{} has no {} routes", args.table.display(), A::FAMILY);
    let shared = Shared {
        fib: Mutex::new(instance.fib()),
        looked_up: AtomicUsize::new(0),
        done: AtomicBool::new(false),
    };
    thread::scope(|scope| {
        scope.spawn(|| read(&shared, &keys));
        let measured = Writer::new(rib, instance, &shared).spells(args);
        shared.done.store(true, Ordering::Relaxed);
        measured
    })
}

/// Looks up in batches of 256, and fetches the FIB again after 64 of them, as a worker does between bursts.
fn read<A: Address>(shared: &Shared<A>, keys: &[A]) {
    let mut answers = [NextHop::NONE; 256];
    for many in keys.chunks(64 * answers.len()).cycle() {
        if shared.done.load(Ordering::Relaxed) {
            return;
        }
        let fib = Arc::clone(&shared.fib.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
        for batch in many.chunks(answers.len()) {
            fib.lookup_batch(batch, &mut answers);
            black_box(&answers);
        }
        shared.looked_up.fetch_add(many.len(), Ordering::Relaxed);
    }
}

struct Writer<'a, A: Address> {
    rib: Rib<A>,
    instance: Box<dyn Instance<A>>,
    shared: &'a Shared<A>,
    /// The changes, in random order: each route goes, then the next one does, then the first comes back.
    routes: Vec<Route<A>>,
    /// Nanoseconds of each change.
    took: Vec<u32>,
}

impl<'a, A: Address> Writer<'a, A> {
    fn new(rib: Rib<A>, instance: Box<dyn Instance<A>>, shared: &'a Shared<A>) -> Self {
        let all: Vec<Route<A>> = rib.iter().collect();
        let routes =
            probe::uniform::<u128>(3).take(100_000).map(|draw| all[draw as usize % all.len()]).collect();
        Writer { rib, instance, shared, routes, took: Vec::new() }
    }

    fn spells(&mut self, args: &Args) -> anyhow::Result<()> {
        let (mut quiet, mut busy, mut changes) = (Vec::new(), Vec::new(), Vec::new());
        let spell = Duration::from_millis(args.spell);
        for _ in 0..args.spells.max(1) {
            quiet.push(
                self.rate(|_| {
                    thread::sleep(spell);
                    Ok(0)
                })?
                .0,
            );
            let (rate, change) = self.rate(|writer| writer.change_for(spell))?;
            busy.push(rate);
            changes.push(change);
        }
        let median = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        let (quiet, busy) = (median(quiet), median(busy));
        println!(
            "reader {quiet:.1} Mlookups/s alone, {busy:.1} during changes ({:.1} %)",
            100.0 * busy / quiet
        );
        println!("{:.2} M changes/s", median(changes));
        self.took.sort_unstable();
        let at = |share: f64| self.took[((self.took.len() - 1) as f64 * share) as usize];
        println!("one change: median {} ns, p99 {} ns, p99.9 {} ns", at(0.5), at(0.99), at(0.999));
        Ok(())
    }

    /// Million lookups and million changes a second during some work.
    fn rate(&mut self, work: impl FnOnce(&mut Self) -> anyhow::Result<usize>) -> anyhow::Result<(f64, f64)> {
        let (start, before) = (Instant::now(), self.shared.looked_up.load(Ordering::Relaxed));
        let changes = work(self)?;
        let (took, after) = (start.elapsed().as_secs_f64(), self.shared.looked_up.load(Ordering::Relaxed));
        Ok(((after - before) as f64 / took / 1e6, changes as f64 / took / 1e6))
    }

    fn change_for(&mut self, spell: Duration) -> anyhow::Result<usize> {
        let (end, mut changes) = (Instant::now() + spell, 0);
        while Instant::now() < end {
            let i = (changes / 2) % (self.routes.len() - 1);
            let (go, back) = (self.routes[i + 1], self.routes[i]);
            for (prefix, next_hop) in [(go.prefix, None), (back.prefix, Some(back.next_hop))] {
                self.change(prefix, next_hop)?;
            }
            changes += 2;
        }
        Ok(changes)
    }

    fn change(&mut self, prefix: Prefix<A>, next_hop: Option<NextHop>) -> anyhow::Result<()> {
        let (start, change) = (Instant::now(), Change { prefix, next_hop });
        self.rib.apply(change);
        let outcome = self.instance.patch(&self.rib, &[change]);
        ensure!(outcome == Outcome::Applied, "{prefix} was not applied: {outcome:?}");
        let fib = self.instance.fib();
        *self.shared.fib.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = fib;
        self.took.push(start.elapsed().as_nanos() as u32);
        Ok(())
    }
}
