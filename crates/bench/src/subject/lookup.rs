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
use super::keys::{Keys, MOST_KEYS_AT_ONCE};
use crate::settings::{LookupArm, LookupSettings, Settings, Shape};
use fullview_router::algorithm;

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
    let limits: [(&'static [&'static str], _, _); 2] = [
        (&["lookup", "batch"], settings.batch, MOST_KEYS_AT_ONCE),
        (&["lookup", "keys"], settings.keys, 1 << 28),
    ];
    for (keys, asked, most) in limits {
        let fits = asked.is_none_or(|asked| (1..=most).contains(&asked));
        require_setting(fits, keys, || format!("{}: give 1 to {most}", asked.unwrap_or_default()))?;
    }
    Ok(())
}

/// Refuses an arm and a batch for a contestant, which looks up in batches of its own, and beside one an arm that cannot be
/// compared with it: contestants have keys that do not depend on answers, and look all of them up.
pub fn check_peers(settings: &LookupSettings, has_peers: bool) -> Result<(), WrongSetting> {
    let arm = settings.arm.unwrap_or(LookupArm::Batch);
    if settings.peer.is_none() {
        let is_comparable = !has_peers || matches!(arm, LookupArm::Batch | LookupArm::Independent);
        return require_setting(is_comparable, &["lookup", "arm"], || {
            "variants beside one with lookup.peer look up independent keys: give \"batch\" or \"independent\""
                .into()
        });
    }
    require_setting(arm == LookupArm::Batch, &["lookup", "arm"], || {
        "a peer has no other arm than \"batch\": set this in variants without lookup.peer".into()
    })?;
    require_setting(settings.batch.is_none(), &["lookup", "batch"], || {
        "a peer has batches of its own, by the name of its contestant: set this in variants without lookup.peer".into()
    })
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
            walk: KeyWalk::new(keys, batch),
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
        Ok(EmptyKeyLoop(KeyWalk::new(inputs.keys::<A>(settings, seed)?, 1)))
    }
}

/// A stream of keys, walked round and round.
struct KeyWalk<A: Address> {
    keys: Arc<Keys<A>>,
    at: usize,
    /// Keys between two readings of the clock.
    chunk: usize,
}

impl<A: Address> KeyWalk<A> {
    /// The clock is read after whole batches.
    fn new(keys: Arc<Keys<A>>, batch: usize) -> Self {
        KeyWalk { keys, at: 0, chunk: MOST_KEYS_AT_ONCE / batch * batch }
    }

    /// Looks keys up by `pass`, chunk by chunk, for about that long.
    fn run(&mut self, length: Duration, mut pass: impl FnMut(&[A]) -> u64) -> Slice {
        let (clock, started, mut counted) = (CoreClock::start(), Instant::now(), 0);
        loop {
            black_box(pass(self.keys.part(self.at, self.chunk).0));
            counted += self.chunk as u64;
            self.at = (self.at + self.chunk) % self.keys.count();
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
        for batch in keys.chunks_exact(self.batch) {
            self.fib.lookup_batch(batch, self.answers);
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
        for at in (0..keys.count()).step_by(self.batch) {
            let (batch, expected) = keys.part(at, self.batch);
            self.fib.lookup_batch(batch, &mut self.answers);
            for ((key, expected), answer) in batch.iter().zip(expected).zip(&self.answers) {
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use fullview_router::algorithm::Names;
    use fullview_table::fib::Footprint;

    /// Answers as the FIB does, and notes the batches that it gets.
    struct BatchLengths {
        fib: Arc<dyn Fib<u32>>,
        lengths: Mutex<Vec<usize>>,
    }

    impl Fib<u32> for BatchLengths {
        fn lookup(&self, addr: u32) -> NextHop {
            self.fib.lookup(addr)
        }

        fn lookup_batch(&self, addrs: &[u32], next_hops: &mut [NextHop]) {
            self.lengths.lock().unwrap().push(addrs.len());
            self.fib.lookup_batch(addrs, next_hops);
        }

        fn footprint(&self) -> Footprint {
            self.fib.footprint()
        }
    }

    fn settings(keys: usize, batch: usize) -> Settings {
        let lookup = LookupSettings { keys: Some(keys), batch: Some(batch), ..LookupSettings::default() };
        let mut settings = Settings { lookup, ..Settings::default() };
        settings.table.source = Some("two-routes".into());
        settings.traffic.flows = Some(100);
        settings.router.algorithm = Some(Names::One("radix".into()));
        settings
    }

    /// The lengths of the batches of a verified member, of which so many keys count in the shortest slice.
    fn batches(keys: usize, batch: usize) -> (Vec<usize>, u64) {
        let mut factory = LookupFactory::new(Cores::observe().unwrap());
        let mut lookup = factory.make::<u32>(&mut Inputs::new(), &settings(keys, batch), 5, 0).unwrap();
        let noted = Arc::new(BatchLengths { fib: Arc::clone(&lookup.fib), lengths: Mutex::default() });
        lookup.fib = Arc::clone(&noted) as Arc<dyn Fib<u32>>;
        assert_eq!(lookup.verify().unwrap(), Verified::Ready);
        let counted = lookup.run(Duration::ZERO).counted;
        let lengths = noted.lengths.lock().unwrap().clone();
        (lengths, counted)
    }

    #[test]
    fn batches_are_whole_and_the_clock_is_read_after_many_keys() {
        for (keys, batch, at_once) in
            [(1, 64, 4096), (100, 64, 4096), (5000, 3000, 3000), (9000, 4096, 4096), (5000, 1000, 4000)]
        {
            let (lengths, counted) = batches(keys, batch);
            assert!(lengths.iter().all(|length| *length == batch), "{keys} keys: {lengths:?}");
            assert_eq!(counted, at_once, "{keys} keys in batches of {batch}");
        }
    }

    /// Such a batch would be measured in parts.
    #[test]
    fn a_batch_is_not_longer_than_the_keys_between_two_readings_of_the_clock() {
        let of = |batch| check_settings(&settings(1, batch).lookup);
        assert!(of(4096).is_ok());
        assert!(of(4097).unwrap_err().to_string().starts_with("lookup.batch: 4097: give 1 to 4096"));
    }
}
