//! Passes over a stream, all algorithms and batch sizes in turns.

use std::hint::black_box;
use std::time::{Duration, Instant};

use fullview_table::fib::Fib;
use fullview_table::{Address, NextHop};

use super::Compiled;

/// The kind of lookups of a pass.
#[derive(Clone, Copy)]
pub enum Mode {
    /// Batches of this length.
    Batch(usize),
    /// Batches of this length, each after a `prefetch` for the next one.
    PrefetchedBatch(usize),
    /// Dependent single lookups.
    Dependent,
}

impl Mode {
    fn label(self) -> String {
        match self {
            Mode::Batch(length) => format!("batches of {length}"),
            Mode::PrefetchedBatch(length) => format!("batches of {length}, prefetched"),
            Mode::Dependent => "dependent".to_owned(),
        }
    }

    fn pass<A: Address>(self, fib: &dyn Fib<A>, keys: &[A]) -> Duration {
        let start = Instant::now();
        match self {
            Mode::Batch(length) => batches(fib, keys, length),
            Mode::PrefetchedBatch(length) => prefetched_batches(fib, keys, length),
            Mode::Dependent => dependent(fib, keys),
        }
        start.elapsed()
    }
}

fn batches<A: Address>(fib: &dyn Fib<A>, keys: &[A], length: usize) {
    let mut answers = vec![NextHop::NONE; length];
    for batch in keys.chunks(length) {
        fib.lookup_batch(batch, &mut answers);
        black_box(&answers);
    }
}

fn prefetched_batches<A: Address>(fib: &dyn Fib<A>, keys: &[A], length: usize) {
    let mut answers = vec![NextHop::NONE; length];
    let mut batches = keys.chunks(length).peekable();
    while let Some(batch) = batches.next() {
        fib.prefetch(batches.peek().copied().unwrap_or_default());
        fib.lookup_batch(batch, &mut answers);
        black_box(&answers);
    }
}

/// Makes each address depend on the answer before it, by a mask that the compiler does not know to be zero.
fn dependent<A: Address>(fib: &dyn Fib<A>, keys: &[A]) {
    let zero = black_box(A::zero());
    let mut answer = NextHop::NONE;
    for key in keys {
        let before = A::from(answer.0).unwrap_or(zero);
        answer = fib.lookup(*key ^ (before & zero));
    }
    black_box(answer);
}

/// Measures every algorithm in every mode, and prints a line for each.
pub fn compare<A: Address>(fibs: &[Compiled<A>], keys: &[A], modes: &[Mode], repeats: usize) {
    let subjects: Vec<_> = fibs.iter().flat_map(|fib| modes.iter().map(move |mode| (fib, *mode))).collect();
    let mut rates = vec![Vec::new(); subjects.len()];
    for _ in 0..repeats.max(1) {
        for (((_, fib), mode), rates) in subjects.iter().zip(&mut rates) {
            rates.push(keys.len() as f64 / mode.pass(&**fib, keys).as_secs_f64() / 1e6);
        }
    }
    for (((name, _), mode), mut rates) in subjects.into_iter().zip(rates) {
        rates.sort_by(f64::total_cmp);
        let (least, median, most) = (rates[0], rates[rates.len() / 2], rates[rates.len() - 1]);
        println!("{name:16} {:28} {median:8.1} ({least:.1}, {most:.1})", mode.label());
    }
}
