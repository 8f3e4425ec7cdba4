//! Lookups alone: one algorithm, one table, one stream of keys, no packets.

use std::cell::Cell;
use std::hint::black_box;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::{self, BenchError, require};
use crate::placement::Role;
use fullview_lab::{Measurement, Subject, SubjectError, Window};
use fullview_table::fib::Fib;
use fullview_table::{Address, Family, NextHop};

use super::core_share::CoreShare;
use super::cores::Cores;
use super::family::BenchFamily;
use super::inputs::{Inputs, KEYS};
use super::keys::Keys;
use super::sampling::{judge_share, measurement, sample_lengths};
use crate::settings::{LookupArm, LookupSettings, Settings, Shape};
use fullview_router::algorithm;

/// Keys looked up between two readings of the clock: about 0.1 ms, so that the readings do not show in the rate.
const CHUNK: usize = 1 << 15;

/// How the report names what drives the lookups.
pub fn describe(settings: &LookupSettings, cores: Cores) -> Result<Vec<String>, BenchError> {
    let core = cores.of(Shape::OneCore)?.core(Role::Router);
    Ok(vec![
        format!(
            "keys: a stream of {} in random order, walked round and round",
            settings.keys.unwrap_or(KEYS)
        ),
        format!("lookups on core {core}, next hops written to a buffer of one batch"),
        "every answer of a stream verified before the first run of a variant on it, singly and in batches"
            .into(),
    ])
}

/// Refuses settings of lookups that are out of range, before anything is loaded.
pub fn check_settings(settings: &LookupSettings) -> Result<(), BenchError> {
    let limits = [("batch", settings.batch, 1 << 20), ("keys", settings.keys, 1 << 28)];
    for (what, asked, most) in limits {
        let fits = asked.is_none_or(|asked| (1..=most).contains(&asked));
        require(fits, || format!("lookup.{what} = {}: give 1 to {most}", asked.unwrap_or_default()))?;
    }
    Ok(())
}

/// Keys in a batch unless the experiment says otherwise.
pub const BATCH: usize = 64;

/// Counters of a lookup structure, a peer's too: bytes that lookups may touch, and how long building it took.
pub const BYTES: &str = "structure_bytes";
pub const BUILD_MS: &str = "build_ms";

/// Makes subjects that look up, and remembers which of them have been verified.
pub struct LookupFactory {
    cores: Cores,
    /// Settings and family of each lookup, and whether its answers have been verified.
    verified: Vec<(Settings, Family, Rc<Cell<bool>>)>,
}

impl LookupFactory {
    /// Nothing is verified yet.
    pub fn new(cores: Cores) -> LookupFactory {
        LookupFactory { cores, verified: Vec::new() }
    }

    /// Compiles the algorithm that the settings name.
    pub fn make<A: BenchFamily>(
        &mut self,
        inputs: &mut Inputs,
        settings: &Settings,
    ) -> Result<Lookup<A>, BenchError> {
        let (table, keys) = (inputs.table(&settings.table)?, inputs.keys::<A>(settings)?);
        self.cores.pin_one()?;
        let started = Instant::now();
        let compiled = algorithm::compile(&settings.router, A::rib(&table))?;
        Ok(Lookup {
            build: started.elapsed(),
            fib: compiled.fib,
            keys,
            arm: settings.lookup.arm.unwrap_or(LookupArm::Batch),
            batch: settings.lookup.batch.unwrap_or(BATCH),
            events: compiled.log,
            verified: self.verified(settings, A::FAMILY),
        })
    }

    /// Whether a lookup with these settings has been verified; the subject sets it when it has.
    fn verified(&mut self, settings: &Settings, family: Family) -> Rc<Cell<bool>> {
        let mut known = self.verified.iter();
        if let Some((.., verified)) = known.find(|(known, of, _)| (known, *of) == (settings, family)) {
            return Rc::clone(verified);
        }
        let verified = Rc::new(Cell::new(false));
        self.verified.push((settings.clone(), family, Rc::clone(&verified)));
        verified
    }
}

/// One algorithm over one stream.
pub struct Lookup<A: Address> {
    fib: Arc<dyn Fib<A>>,
    keys: Arc<Keys<A>>,
    arm: LookupArm,
    batch: usize,
    events: Vec<String>,
    /// How long it took to compile.
    build: Duration,
    /// Whether this algorithm has answered these keys correctly before. Compiled again from the same routes it gives the
    /// same answers.
    verified: Rc<Cell<bool>>,
}

impl<A: Address> Lookup<A> {
    /// Looks up one chunk in the arm's way. The returned sum keeps the compiler from removing lookups.
    fn pass(&self, keys: &[A], answers: &mut [NextHop]) -> u64 {
        match self.arm {
            LookupArm::None => keys.iter().fold(0, |sum, key| sum ^ key.low_usize() as u64),
            LookupArm::Independent => keys.iter().map(|key| u64::from(self.fib.lookup(*key).0)).sum(),
            LookupArm::Dependent => self.chain(keys),
            LookupArm::Batch => self.batches(keys, answers),
        }
    }

    /// Every lookup depends on the answer before it, which a mask turns to zero only at run time (FreeBSD D30096).
    fn chain(&self, keys: &[A]) -> u64 {
        let nothing = black_box(0u16);
        let mut last = NextHop::NONE;
        for key in keys {
            let wait = A::from(last.0 & nothing).unwrap_or_else(A::zero);
            last = self.fib.lookup(*key ^ wait);
        }
        u64::from(last.0)
    }

    fn batches(&self, keys: &[A], answers: &mut [NextHop]) -> u64 {
        for batch in keys.chunks(self.batch) {
            self.fib.lookup_batch(batch, &mut answers[..batch.len()]);
            black_box(&mut *answers);
        }
        0
    }

    /// Lookups a second, until `length` has passed or `stop` is set.
    fn sample(&self, length: Duration, at: &mut usize, answers: &mut [NextHop], stop: &AtomicBool) -> f64 {
        let (started, mut looked_up) = (Instant::now(), 0usize);
        while started.elapsed() < length && !stop.load(Ordering::Relaxed) {
            let end = (*at + CHUNK).min(self.keys.addrs.len());
            let chunk = &self.keys.addrs[*at..end];
            black_box(self.pass(chunk, answers));
            looked_up += chunk.len();
            *at = if end == self.keys.addrs.len() { 0 } else { end };
        }
        looked_up as f64 / started.elapsed().as_secs_f64()
    }
}

impl<A: Address> Subject for Lookup<A> {
    /// Every key of the stream, singly and in batches.
    fn verify(&mut self) -> Result<(), SubjectError> {
        if self.verified.get() {
            return Ok(());
        }
        let mut answers = vec![NextHop::NONE; self.batch];
        let batches = self.keys.addrs.chunks(self.batch).zip(self.keys.expected.chunks(self.batch));
        for (batch, expected) in batches {
            let answers = &mut answers[..batch.len()];
            self.fib.lookup_batch(batch, answers);
            for ((key, expected), answer) in batch.iter().zip(expected).zip(&*answers) {
                let single = self.fib.lookup(*key);
                check(*key, *expected, *answer, single)?;
            }
        }
        self.verified.set(true);
        Ok(())
    }

    fn measure(&mut self, window: &Window, stop: &AtomicBool) -> Result<Measurement, SubjectError> {
        let mut answers = vec![NextHop::NONE; self.batch];
        let (mut at, share) = (0, CoreShare::start(1));
        let samples: Vec<f64> = sample_lengths(window)
            .map(|length| self.sample(length, &mut at, &mut answers, stop))
            .take_while(|_| !stop.load(Ordering::Relaxed))
            .skip(1)
            .collect();
        let mut run = measurement(samples);
        run.counters.insert(BYTES.into(), self.fib.footprint().total() as f64);
        run.counters.insert(BUILD_MS.into(), self.build.as_secs_f64() * 1e3);
        judge_share(&mut run, share.share());
        run.interrupted = stop.load(Ordering::Relaxed);
        Ok(run)
    }

    fn events(&self) -> Vec<String> {
        self.events.clone()
    }
}

fn check<A: Address>(key: A, expected: NextHop, batch: NextHop, single: NextHop) -> Result<(), BenchError> {
    error::check(batch == expected && single == expected, || {
        format!(
            "wrong answer for {}: next hop {} expected, {} by batch, {} singly",
            key.to_ip(),
            expected.0,
            batch.0,
            single.0
        )
    })
}
