//! Looks up a million addresses of a routing table, singly and in batches, and compares the times.
//!
//! ```text
//! cargo run --release -p fullview-table --example batch -- view.txt.gz
//! ```

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use fullview_table::fib::Fib;
use fullview_table::fib::registry::Registered;
use fullview_table::{NextHop, feed, probe};

/// The length of a burst in a forwarding loop.
const BATCH: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("usage: batch TABLE")?;
    let table = feed::load(Path::new(&file), &feed::Options::default())?.table;
    let addrs: Vec<u32> = probe::in_prefix(&table.inet, 1).take(1 << 20).collect();
    println!("million lookups per second  {:>8} {:>8}", "single", "batch");
    for algorithm in u32::ALGORITHMS.iter().skip(1) {
        let fib = algorithm.compile(&table.inet)?.fib();
        let (single, one_by_one) = timed(|| singly(&*fib, &addrs));
        let (batched, in_batches) = timed(|| batches(&*fib, &addrs));
        if one_by_one != in_batches {
            return Err(format!("{} answers otherwise in batches", algorithm.name()).into());
        }
        let rate = |time: Duration| addrs.len() as f64 / time.as_secs_f64() / 1e6;
        println!("{:27} {:8.1} {:8.1}", algorithm.name(), rate(single), rate(batched));
    }
    Ok(())
}

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let started = Instant::now();
    let done = work();
    (started.elapsed(), done)
}

fn singly(fib: &dyn Fib<u32>, addrs: &[u32]) -> Vec<NextHop> {
    addrs.iter().map(|addr| fib.lookup(*addr)).collect()
}

fn batches(fib: &dyn Fib<u32>, addrs: &[u32]) -> Vec<NextHop> {
    let mut answers = vec![NextHop::NONE; addrs.len()];
    for (addrs, answers) in addrs.chunks(BATCH).zip(answers.chunks_mut(BATCH)) {
        fib.lookup_batch(addrs, answers);
    }
    answers
}
