//! Lookups alone: one algorithm, one table, one stream of keys, no packets.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::core_clock::CoreClock;
use crate::error::{self, BenchError, WrongSetting, require_setting};
use crate::placement::Role;
use fullview_lab::{Findings, Slice, SubjectError, Verified};
use fullview_table::fib::Fib;
use fullview_table::{Address, NextHop};

use super::arms::{PanelArm, PanelMember};
use super::cores::Cores;
use super::family::BenchFamily;
use super::inputs::{Inputs, KEYS};
use super::keys::Keys;
use crate::settings::{LookupArm, LookupSettings, Settings, Shape};
use fullview_router::algorithm;

/// Keys looked up between two readings of the clock: some ten microseconds, so that the readings do not show in the rate
/// and a slice of half a millisecond has its length.
const CHUNK: usize = 1 << 12;

/// How the report names what drives the lookups.
pub fn describe(settings: &LookupSettings, cores: Cores) -> Result<Vec<String>, BenchError> {
    let core = cores.of(Shape::OneCore)?.core(Role::Router);
    Ok(vec![
        format!(
            "keys: a stream of {} in random order, walked round and round",
            settings.keys.unwrap_or(KEYS)
        ),
        format!("lookups on core {core}, next hops written to a buffer of one batch"),
        "keys drawn anew for each block, and every answer verified before its first turn".into(),
    ])
}

/// Refuses settings of lookups that are out of range, before anything is loaded.
pub fn check_settings(settings: &LookupSettings) -> Result<(), WrongSetting> {
    let limits: [(&'static [&'static str], _, _); 2] =
        [(&["lookup", "batch"], settings.batch, 1 << 20), (&["lookup", "keys"], settings.keys, 1 << 28)];
    for (keys, asked, most) in limits {
        let fits = asked.is_none_or(|asked| (1..=most).contains(&asked));
        require_setting(fits, keys, || format!("{}: give 1 to {most}", asked.unwrap_or_default()))?;
    }
    Ok(())
}

/// Keys in a batch unless the experiment says otherwise.
pub const BATCH: usize = 64;

/// Counters of a lookup structure, a peer's too: bytes that lookups may touch, and how long building it took.
pub const BYTES: &str = "structure_bytes";
pub const BUILD_MS: &str = "build_ms";

/// Makes subjects that look up.
pub struct LookupFactory {
    cores: Cores,
}

impl LookupFactory {
    /// Lookups run on these cores.
    pub fn new(cores: Cores) -> LookupFactory {
        LookupFactory { cores }
    }

    /// Compiles the algorithm that the settings name. Its control is the one with this number.
    pub fn make<A: BenchFamily>(
        &mut self,
        inputs: &mut Inputs,
        settings: &Settings,
        seed: u64,
        control: usize,
    ) -> Result<Lookup<A>, BenchError> {
        let (table, keys) = (inputs.table(&settings.table)?, inputs.keys::<A>(settings, seed)?);
        self.cores.pin_one()?;
        let started = Instant::now();
        let compiled = algorithm::compile(&settings.router, A::rib(&table))?;
        let batch = settings.lookup.batch.unwrap_or(BATCH);
        Ok(Lookup {
            build: started.elapsed(),
            fib: compiled.fib,
            walk: KeyWalk { keys, at: 0 },
            arm: settings.lookup.arm.unwrap_or(LookupArm::Batch),
            batch,
            answers: vec![NextHop::NONE; batch],
            control,
            events: compiled.log,
        })
    }

    /// The empty key loop over the keys of these settings.
    pub fn control<A: BenchFamily>(
        &self,
        inputs: &mut Inputs,
        settings: &Settings,
        seed: u64,
    ) -> Result<EmptyKeyLoop<A>, BenchError> {
        self.cores.pin_one()?;
        Ok(EmptyKeyLoop(KeyWalk { keys: inputs.keys::<A>(settings, seed)?, at: 0 }))
    }
}

/// A stream of keys, walked round and round.
struct KeyWalk<A: Address> {
    keys: Arc<Keys<A>>,
    at: usize,
}

impl<A: Address> KeyWalk<A> {
    /// Looks keys up by `pass`, chunk by chunk, for about that long.
    fn run(&mut self, length: Duration, mut pass: impl FnMut(&[A]) -> u64) -> Slice {
        let (clock, started, mut counted) = (CoreClock::start(), Instant::now(), 0);
        loop {
            let addrs = &self.keys.addrs;
            let end = (self.at + CHUNK).min(addrs.len());
            let chunk = &addrs[self.at..end];
            black_box(pass(chunk));
            counted += chunk.len() as u64;
            self.at = if end == addrs.len() { 0 } else { end };
            let time = started.elapsed();
            if time >= length {
                return Slice { counted, offered: counted, time, lost_core: clock.lost_of(time) };
            }
        }
    }
}

/// What the measurement itself costs: every key is read, and none looked up.
pub struct EmptyKeyLoop<A: Address>(KeyWalk<A>);

fn read_keys<A: Address>(keys: &[A]) -> u64 {
    keys.iter().fold(0, |sum, key| sum ^ key.low_usize() as u64)
}

impl<A: Address> PanelArm for EmptyKeyLoop<A> {
    fn slice(&mut self, lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
        self.0.run(lead_in, read_keys);
        Ok(self.0.run(length, read_keys))
    }

    fn findings(&mut self) -> Findings {
        Findings::default()
    }
}

/// One algorithm over one stream.
pub struct Lookup<A: Address> {
    fib: Arc<dyn Fib<A>>,
    walk: KeyWalk<A>,
    arm: LookupArm,
    batch: usize,
    answers: Vec<NextHop>,
    control: usize,
    events: Vec<String>,
    /// How long it took to compile.
    build: Duration,
}

/// One pass over a chunk of keys. The returned sum keeps the compiler from removing lookups.
struct Pass<'l, A: Address> {
    fib: &'l dyn Fib<A>,
    arm: LookupArm,
    batch: usize,
    answers: &'l mut [NextHop],
}

impl<A: Address> Pass<'_, A> {
    fn over(&mut self, keys: &[A]) -> u64 {
        match self.arm {
            LookupArm::None => read_keys(keys),
            LookupArm::Independent => keys.iter().map(|key| u64::from(self.fib.lookup(*key).0)).sum(),
            LookupArm::Dependent => self.chain(keys),
            LookupArm::Batch => self.batches(keys),
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

    fn batches(&mut self, keys: &[A]) -> u64 {
        for batch in keys.chunks(self.batch) {
            self.fib.lookup_batch(batch, &mut self.answers[..batch.len()]);
            black_box(&mut *self.answers);
        }
        0
    }
}

impl<A: Address> Lookup<A> {
    fn run(&mut self, length: Duration) -> Slice {
        let Lookup { fib, walk, arm, batch, answers, .. } = self;
        let mut pass = Pass { fib: &**fib, arm: *arm, batch: *batch, answers };
        walk.run(length, |keys| pass.over(keys))
    }
}

impl<A: Address> PanelArm for Lookup<A> {
    fn slice(&mut self, lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
        self.run(lead_in);
        Ok(self.run(length))
    }

    fn findings(&mut self) -> Findings {
        let bytes = (BYTES.to_owned(), self.fib.footprint().total() as f64);
        let build = (BUILD_MS.to_owned(), self.build.as_secs_f64() * 1e3);
        Findings { counters: [bytes, build].into(), reasons: Vec::new(), events: self.events.clone() }
    }
}

impl<A: Address> PanelMember for Lookup<A> {
    fn control(&self) -> usize {
        self.control
    }

    /// Every key of the stream by the arm that is timed, and one in a batch by the other.
    fn verify(&mut self) -> Result<Verified, SubjectError> {
        let singly = if self.arm == LookupArm::Batch { 1 } else { self.batch };
        let keys = &self.walk.keys;
        for (batch, expected) in keys.addrs.chunks(self.batch).zip(keys.expected.chunks(self.batch)) {
            let answers = &mut self.answers[..batch.len()];
            self.fib.lookup_batch(batch, answers);
            for ((key, expected), answer) in batch.iter().zip(expected).zip(&*answers) {
                check(*key, *expected, *answer)?;
            }
            for (key, expected) in batch.iter().zip(expected).take(singly) {
                check(*key, *expected, self.fib.lookup(*key))?;
            }
        }
        Ok(Verified::Ready)
    }
}

fn check<A: Address>(key: A, expected: NextHop, answer: NextHop) -> Result<(), BenchError> {
    error::check(answer == expected, || {
        format!("wrong answer for {}: next hop {} expected, {} given", key.to_ip(), expected.0, answer.0)
    })
}
