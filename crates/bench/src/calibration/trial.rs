//! What one algorithm costs on one table.

use std::hint::black_box;
use std::time::{Duration, Instant};

use fullview_lab::stats::median;
use fullview_table::fib::{Algorithm, Instance, Outcome};
use fullview_table::{Address, Change, NextHop, Rib, probe};

use super::effort::{Cost, Effort};
use crate::error::BenchError;

/// Keys in a batch: a burst of the forwarding path.
const BATCH: usize = 64;
/// Keys between two looks at the clock.
const CHUNK: usize = 4_096;
/// Changes timed, at most, and at least, however long that takes.
const CHANGES: usize = 64;
const FEWEST_CHANGES: usize = 3;
/// Random keys of each kind verified beside the edges of every prefix, at most.
const VERIFIED: usize = 100_000;

/// The error of a trial that took no turn.
const NO_TURNS: BenchError = BenchError::NoSamples("a calibration without turns");

/// An algorithm that has compiled the table, has passed verification, and is being timed.
pub struct AlgorithmTrial<A: Address> {
    algorithm: &'static dyn Algorithm<A>,
    instance: Box<dyn Instance<A>>,
    batch: Vec<f64>,
    independent: Vec<f64>,
}

impl<A: Address> AlgorithmTrial<A> {
    /// Compiles the table and compares the answers with it.
    pub fn new(
        algorithm: &'static dyn Algorithm<A>,
        rib: &Rib<A>,
        effort: &Effort,
    ) -> Result<Self, BenchError> {
        let instance = algorithm.compile(rib)?;
        let verified = effort.keys.min(VERIFIED);
        let random = probe::in_prefix(rib, 2).take(verified).chain(probe::uniform(1).take(verified));
        probe::verify(&*instance.fib(), rib, probe::edges(rib).chain(random)).map_err(|mismatch| {
            BenchError::WrongAnswer { algorithm: algorithm.name(), mismatch: mismatch.to_string() }
        })?;
        Ok(AlgorithmTrial { algorithm, instance, batch: Vec::new(), independent: Vec::new() })
    }

    pub fn name(&self) -> &'static str {
        self.algorithm.name()
    }

    /// One slice of each kind of lookup; the contestants take turns.
    pub fn take_turn(&mut self, keys: &[A], effort: &Effort) {
        let fib = self.instance.fib();
        let mut answers = [NextHop::NONE; BATCH];
        let batch = nanoseconds(keys, effort.slice, |chunk| {
            for batch in chunk.chunks(BATCH) {
                fib.lookup_batch(batch, &mut answers[..batch.len()]);
                black_box(&mut answers);
            }
        });
        let independent = nanoseconds(keys, effort.slice, |chunk| {
            black_box(chunk.iter().map(|key| u64::from(fib.lookup(*key).0)).sum::<u64>());
        });
        self.batch.push(batch);
        self.independent.push(independent);
    }

    /// The medians of all turns, and what changes cost.
    pub fn cost(mut self, rib: &mut Rib<A>, effort: &Effort) -> Result<Cost, BenchError> {
        let bytes = self.instance.fib().footprint().total();
        let [batch_ns, independent_ns] = [&self.batch, &self.independent].map(|times| median(times));
        Ok(Cost {
            batch_ns: batch_ns.ok_or(NO_TURNS)?,
            independent_ns: independent_ns.ok_or(NO_TURNS)?,
            update_us: self.update(rib, effort.changes)?,
            bytes,
        })
    }

    /// The median time of a change, in microseconds: routes of the table go and come back.
    fn update(&mut self, rib: &mut Rib<A>, length: Duration) -> Result<f64, BenchError> {
        let step = (rib.len() / (CHANGES / 2)).max(1);
        let routes: Vec<_> = rib.iter().step_by(step).take(CHANGES / 2).collect();
        let flap = |route: &fullview_table::Route<A>| {
            [None, Some(route.next_hop)].map(|next_hop| Change { prefix: route.prefix, next_hop })
        };
        let changes: Vec<Change<A>> = routes.iter().cycle().take(CHANGES / 2).flat_map(flap).collect();
        let (started, mut times) = (Instant::now(), Vec::new());
        for change in changes {
            rib.apply(change);
            // A route that is out is put back whatever the time.
            if times.len() < FEWEST_CHANGES || started.elapsed() < length {
                times.push(self.follow(rib, change)?.as_secs_f64() * 1e6);
            }
        }
        median(&times).ok_or(BenchError::NoSamples("a table without routes"))
    }

    fn follow(&mut self, rib: &Rib<A>, change: Change<A>) -> Result<Duration, BenchError> {
        let started = Instant::now();
        let mut outcome = self.instance.patch(rib, &[change]);
        if outcome == Outcome::Batch {
            // There is no more to come: the next call is the batch.
            outcome = self.instance.patch(rib, &[change]);
        }
        match outcome {
            Outcome::Applied => {}
            Outcome::Rebuild | Outcome::Batch => self.instance = self.algorithm.compile(rib)?,
            Outcome::Error(reason) => {
                return Err(BenchError::Update { algorithm: self.name(), reason });
            }
        }
        Ok(started.elapsed())
    }
}

/// The time a key takes, over at least `length`, round and round the keys.
fn nanoseconds<A>(keys: &[A], length: Duration, mut look_up: impl FnMut(&[A])) -> f64 {
    let (started, mut count) = (Instant::now(), 0usize);
    for chunk in keys.chunks(CHUNK).cycle() {
        look_up(chunk);
        count += chunk.len();
        if started.elapsed() >= length {
            break;
        }
    }
    started.elapsed().as_secs_f64() * 1e9 / count.max(1) as f64
}
