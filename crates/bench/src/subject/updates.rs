//! Changes of routes: a table that an algorithm serves takes the changes of a stream, as the router's tables do.
//!
//! Each change is applied to the RIB, patched into the FIB, or compiled, and published; it counts when readers see it.
//! The control is the RIB alone with the same changes, so that what remains of a member's time is its FIB's.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fullview_lab::{Findings, Slice, SubjectError, Validity, Verified};
use fullview_table::fib::framework::{self, Attachment, Event, Origin, Reader, TableEvent};
use fullview_table::{Address, Change, Rib, probe};

use super::arms::{PanelArm, PanelMember};
use super::cores::Cores;
use super::family::BenchFamily;
use super::inputs::Inputs;
use super::limits;
use super::lookup::{BUILD_MS, BYTES};
use crate::core_clock::CoreClock;
use crate::error::{BenchError, check};
use crate::settings::Settings;
use crate::workload::changes::{self, ChangeStream};
use fullview_router::algorithm::{self, AlgorithmError};

/// Batches that show whether a member can take turns.
const TRIALS: usize = 4;
/// Keys of each kind that are compared after a turn: edges of what changed last, and prefixes from the whole stream.
const SAMPLED: usize = 8;
/// Random keys compared before the first turn and after the last one, beside the edges of every prefix that changes.
const RANDOM_KEYS: usize = 10_000;

/// How the report names what is counted.
pub const RATE: &str = "rate: changes applied to the routing table and visible to readers per second";

/// Makes tables that change.
pub struct UpdateFactory {
    cores: Cores,
}

impl UpdateFactory {
    /// Changes are applied on one of these cores.
    pub fn new(cores: Cores) -> Self {
        UpdateFactory { cores }
    }

    /// The changes of a panel with this seed.
    pub fn stream<A: BenchFamily>(
        &self,
        inputs: &mut Inputs,
        settings: &Settings,
        seed: u64,
    ) -> Result<Arc<ChangeStream<A>>, BenchError> {
        let table = inputs.table(&settings.table)?;
        let stream = changes::stream(&settings.updates, A::rib(&table), &table.next_hops, seed)?;
        Ok(Arc::new(stream))
    }

    /// Compiles the algorithm that the settings name. Its control is the one with this number.
    pub fn make<A: BenchFamily>(
        &self,
        inputs: &mut Inputs,
        settings: &Settings,
        stream: &Arc<ChangeStream<A>>,
        control: usize,
    ) -> Result<ChangingTable<A>, BenchError> {
        let walk = self.walk(inputs, settings, stream)?;
        let started = Instant::now();
        let table = attachment(settings, &walk.rib, walk.born)?;
        Ok(ChangingTable {
            build: started.elapsed(),
            reader: table.reader(),
            events: choice(&table),
            fault: None,
            walk,
            table,
            control,
        })
    }

    /// The RIB alone, with the changes that the members with these settings get.
    pub fn control<A: BenchFamily>(
        &self,
        inputs: &mut Inputs,
        settings: &Settings,
        stream: &Arc<ChangeStream<A>>,
    ) -> Result<RibAlone<A>, BenchError> {
        Ok(RibAlone(self.walk(inputs, settings, stream)?))
    }

    fn walk<A: BenchFamily>(
        &self,
        inputs: &mut Inputs,
        settings: &Settings,
        stream: &Arc<ChangeStream<A>>,
    ) -> Result<ChangeWalk<A>, BenchError> {
        self.cores.pin_one()?;
        let table = inputs.table(&settings.table)?;
        Ok(ChangeWalk::new(A::rib(&table).clone(), stream, settings.updates.batch.unwrap_or(1)))
    }
}

/// The framework with the algorithms that the settings allow, and nothing that delays a change.
fn attachment<A: BenchFamily>(
    settings: &Settings,
    rib: &Rib<A>,
    born: Instant,
) -> Result<Attachment<A>, AlgorithmError> {
    let modules = algorithm::candidates::<A>(&settings.router)?;
    let preferences = algorithm::preferences(&settings.router)?;
    let at_once =
        framework::Settings { preferences, bucket_time: Duration::ZERO, ..framework::Settings::default() };
    let mut table = Attachment::new(born.elapsed(), 0, modules.into(), Arc::new(at_once));
    table.evaluate(born.elapsed(), rib)?;
    Ok(table)
}

/// How the framework chose the algorithm; empty if there was no choice.
fn choice<A: Address>(table: &Attachment<A>) -> Vec<String> {
    let offered = table.log().iter().filter(|entry| matches!(entry.event, Event::Module { .. }));
    if offered.count() < 2 {
        return Vec::new();
    }
    let chosen = table.algorithm().map(|name| format!("{name} serves the table"));
    table.log().iter().map(ToString::to_string).chain(chosen).collect()
}

/// A RIB, and its place in the stream of its changes.
struct ChangeWalk<A: Address> {
    rib: Rib<A>,
    stream: Arc<ChangeStream<A>>,
    at: usize,
    batch: usize,
    /// The changes of the last batch that had an effect.
    effective: Vec<Change<A>>,
    born: Instant,
    /// All changes so far, the time that they took, and the longest time of a batch.
    applied: u64,
    busy: Duration,
    slowest: Duration,
}

impl<A: Address> ChangeWalk<A> {
    fn new(rib: Rib<A>, stream: &Arc<ChangeStream<A>>, batch: usize) -> Self {
        ChangeWalk {
            rib,
            stream: Arc::clone(stream),
            at: 0,
            batch,
            effective: Vec::with_capacity(batch),
            born: Instant::now(),
            applied: 0,
            busy: Duration::ZERO,
            slowest: Duration::ZERO,
        }
    }

    /// Applies changes for about that long, and at least one batch. `follow` gets the time and what had an effect. The
    /// clock is read once a batch, as a router's main loop does.
    fn run(&mut self, length: Duration, mut follow: impl FnMut(Duration, &Rib<A>, &[Change<A>])) -> Slice {
        let (clock, started, mut counted) = (CoreClock::start(), self.born.elapsed(), 0);
        let mut now = started;
        loop {
            counted += self.step();
            follow(now, &self.rib, &self.effective);
            let end = self.born.elapsed();
            self.slowest = self.slowest.max(end - now);
            now = end;
            if now - started >= length {
                break;
            }
        }
        let time = now - started;
        self.applied += counted;
        self.busy += time;
        Slice { counted, offered: counted, time, lost_core: clock.lost_of(time) }
    }

    /// Applies the next batch to the RIB; returns the number of its changes.
    fn step(&mut self) -> u64 {
        let ChangeWalk { rib, stream, effective, .. } = self;
        let end = (self.at + self.batch).min(stream.changes.len());
        let batch = &stream.changes[self.at..end];
        effective.clear();
        effective.extend(batch.iter().filter(|change| rib.apply(**change) != change.next_hop));
        self.at = if end == stream.changes.len() { 0 } else { end };
        batch.len() as u64
    }

    /// The edges of what changed last, and prefixes from the whole stream.
    fn sampled_keys(&self) -> impl Iterator<Item = A> {
        let ChangeStream { changes, prefixes } = &*self.stream;
        let edges = (1..=SAMPLED / 2).flat_map(|back| {
            let prefix = changes[(self.at + changes.len() - back % changes.len()) % changes.len()].prefix;
            [prefix.first(), prefix.last()]
        });
        let first = self.at % prefixes.len();
        let spread = (0..SAMPLED).map(move |part| (first + part * prefixes.len() / SAMPLED) % prefixes.len());
        edges.chain(spread.map(|place| prefixes[place].first()))
    }

    /// The edges of every prefix that changes, and random keys.
    fn all_keys(&self) -> impl Iterator<Item = A> {
        let edges = self.stream.prefixes.iter().flat_map(|prefix| {
            let before = prefix.first().checked_sub(&A::one());
            let after = prefix.last().checked_add(&A::one());
            before.into_iter().chain([prefix.first(), prefix.last()]).chain(after)
        });
        edges.chain(probe::in_prefix(&self.rib, self.applied).take(RANDOM_KEYS))
    }
}

/// The RIB alone: what every table that changes has to do, whatever serves it.
pub struct RibAlone<A: Address>(ChangeWalk<A>);

impl<A: Address> PanelArm for RibAlone<A> {
    fn slice(&mut self, lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
        let nothing = |_, _: &Rib<A>, changes: &[Change<A>]| {
            black_box(changes);
        };
        self.0.run(lead_in, nothing);
        Ok(self.0.run(length, nothing))
    }

    fn findings(&mut self) -> Findings {
        Findings::default()
    }
}

/// A table, and the algorithm that serves it.
pub struct ChangingTable<A: Address> {
    walk: ChangeWalk<A>,
    table: Attachment<A>,
    /// A worker's: it gets the FIB after every batch, as a worker does before a burst.
    reader: Reader<A>,
    control: usize,
    /// How long it took to compile.
    build: Duration,
    events: Vec<String>,
    /// The first wrong answer.
    fault: Option<String>,
}

impl<A: Address> ChangingTable<A> {
    /// Static routes are in the FIB when the framework returns, so that every change is visible at once.
    fn run(&mut self, length: Duration) -> Slice {
        let ChangingTable { walk, table, reader, .. } = self;
        walk.run(length, |now, rib, changes| {
            table.changed(now, rib, changes, Origin::Static);
            black_box(reader.fib());
        })
    }

    /// Fails if the FIB does not answer as the RIB does.
    fn compare(&mut self, keys: impl Iterator<Item = A>) -> Result<(), BenchError> {
        let name = self.table.algorithm().unwrap_or("no algorithm");
        let follows = self.table.is_synced();
        check(follows, || {
            let reason = self.table.failure().map_or_else(String::new, ToString::to_string);
            format!("{name} does not follow the routing table: {reason}")
        })?;
        let compared = probe::verify(self.reader.fib(), &self.walk.rib, keys);
        let wrong = |mismatch: probe::Mismatch<A>| BenchError::WrongAnswer {
            algorithm: name,
            mismatch: mismatch.to_string(),
        };
        compared.map(drop).map_err(wrong)
    }

    fn note(&mut self, compared: Result<(), BenchError>) {
        let changes = self.walk.applied;
        if let (Err(error), None) = (compared, &self.fault) {
            self.fault = Some(format!("after {changes} changes: {error}"));
        }
    }

    /// How often the table was compiled again. The framework numbers what it compiles, and logs each of these compiles
    /// with the number of the table before.
    fn rebuilds(&self) -> u64 {
        let rebuilt = self.table.log().iter().filter_map(|entry| match &entry.event {
            Event::Table { table, what: TableEvent::SyncRebuild } => table.attached,
            _ => None,
        });
        rebuilt.last().map_or(0, |(_, before)| before)
    }

    fn counters(&mut self) -> [(&'static str, f64); 6] {
        let ChangeWalk { applied, busy, slowest, .. } = &self.walk;
        [
            ("changes", *applied as f64),
            ("mean_changes_per_second", *applied as f64 / busy.as_secs_f64().max(f64::MIN_POSITIVE)),
            ("slowest_batch_us", slowest.as_secs_f64() * 1e6),
            ("rebuilds", self.rebuilds() as f64),
            (BYTES, self.reader.fib().footprint().total() as f64),
            (BUILD_MS, self.build.as_secs_f64() * 1e3),
        ]
    }
}

impl<A: Address> PanelArm for ChangingTable<A> {
    /// The FIB must answer as the RIB does after every turn.
    fn slice(&mut self, lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
        self.run(lead_in);
        let slice = self.run(length);
        let keys: Vec<A> = self.walk.sampled_keys().collect();
        let compared = self.compare(keys.into_iter());
        self.note(compared);
        Ok(slice)
    }

    fn findings(&mut self) -> Findings {
        let keys: Vec<A> = self.walk.all_keys().collect();
        let compared = self.compare(keys.into_iter());
        self.note(compared);
        let reasons = self.fault.as_ref().map(|_| Validity::Misrouted);
        Findings {
            counters: self.counters().into_iter().map(|(name, value)| (name.into(), value)).collect(),
            reasons: reasons.into_iter().collect(),
            events: self.events.iter().chain(&self.fault).cloned().collect(),
        }
    }
}

impl<A: Address> PanelMember for ChangingTable<A> {
    fn control(&self) -> usize {
        self.control
    }

    /// Compares the answers, and then tries whether a batch is short enough to take turns.
    fn verify(&mut self) -> Result<Verified, SubjectError> {
        let keys: Vec<A> = self.walk.all_keys().collect();
        self.compare(keys.into_iter())?;
        let batches = (0..TRIALS).map(|_| self.run(Duration::ZERO).time);
        let fastest = batches.min().unwrap_or_default();
        let keys: Vec<A> = self.walk.sampled_keys().collect();
        self.compare(keys.into_iter())?;
        if fastest <= limits::UPDATES.longest {
            return Ok(Verified::Ready);
        }
        self.events.push(too_slow(self.table.algorithm(), self.walk.batch, fastest, self.rebuilds() > 0));
        Ok(Verified::SetAside(Validity::Refused))
    }
}

/// Why a member takes no turns.
fn too_slow(algorithm: Option<&str>, batch: usize, fastest: Duration, compiles: bool) -> String {
    format!(
        "{} needs {:.0} ms for {batch} change(s){}; a turn has {:.0} ms at most",
        algorithm.unwrap_or("no algorithm"),
        fastest.as_secs_f64() * 1e3,
        if compiles { ", because it compiles the whole table again" } else { "" },
        limits::UPDATES.longest.as_secs_f64() * 1e3
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{TableSettings, UpdateSettings};
    use fullview_router::algorithm::Names;
    use fullview_table::fib::registry::names;

    fn settings(algorithm: &str, batch: usize) -> Settings {
        let mut settings = Settings {
            table: TableSettings { inet: Some(500), inet6: Some(300), ..TableSettings::default() },
            updates: UpdateSettings { changes: Some(240), batch: Some(batch), ..UpdateSettings::default() },
            ..Settings::default()
        };
        settings.router.algorithm = Some(Names::One(algorithm.into()));
        settings
    }

    fn changing<A: BenchFamily>(algorithm: &str, batch: usize) -> ChangingTable<A> {
        let (settings, mut inputs) = (settings(algorithm, batch), Inputs::new());
        let factory = UpdateFactory::new(Cores::observe().unwrap());
        let stream = factory.stream::<A>(&mut inputs, &settings, 5).unwrap();
        factory.make(&mut inputs, &settings, &stream, 0).unwrap()
    }

    fn follows<A: BenchFamily>() {
        for algorithm in names::<A>().into_iter().chain(["auto"]) {
            let mut table = changing::<A>(algorithm, 3);
            assert_eq!(table.verify().unwrap(), Verified::Ready, "{algorithm}");
            let wanted = 2 * table.walk.stream.changes.len() as u64;
            while table.walk.applied < wanted {
                let slice = table.slice(Duration::ZERO, Duration::ZERO).unwrap();
                assert!(slice.counted > 0 && slice.counted == slice.offered && !slice.time.is_zero());
            }
            let found = table.findings();
            assert_eq!((&*found.reasons, table.fault.as_ref()), (&[][..], None), "{algorithm}");
            assert_eq!(found.counters["changes"], table.walk.applied as f64);
            let compiles = ["linear", "bsearch4", "bsearch6", "radix_lockless"].contains(&algorithm);
            assert!(!compiles || found.counters["rebuilds"] >= wanted as f64 / 4.0, "{algorithm}");
        }
    }

    #[test]
    fn every_algorithm_of_inet_follows() {
        follows::<u32>();
    }

    #[test]
    fn every_algorithm_of_inet6_follows() {
        follows::<u128>();
    }

    #[test]
    fn a_table_that_lost_a_change_is_misrouted() {
        let mut table = changing::<u32>("dpdk_lpm4", 1);
        let change = *table.walk.stream.changes.last().unwrap();
        let lost = Change { next_hop: Some(fullview_table::NextHop(9)), ..change };
        table.walk.rib.apply(lost);
        let found = table.findings();
        assert_eq!(found.reasons, [Validity::Misrouted]);
        assert!(found.events.last().unwrap().contains("dpdk_lpm4 answers wrong"), "{:?}", found.events);
    }

    #[test]
    fn the_control_makes_the_same_changes() {
        let (settings, mut inputs) = (settings("radix", 4), Inputs::new());
        let factory = UpdateFactory::new(Cores::observe().unwrap());
        let stream = factory.stream::<u32>(&mut inputs, &settings, 5).unwrap();
        let mut control = factory.control(&mut inputs, &settings, &stream).unwrap();
        let mut member = factory.make(&mut inputs, &settings, &stream, 0).unwrap();
        for _ in 0..50 {
            control.slice(Duration::ZERO, Duration::ZERO).unwrap();
            member.slice(Duration::ZERO, Duration::ZERO).unwrap();
        }
        assert_eq!(control.0.applied, member.walk.applied);
        assert!(control.0.rib.iter().eq(member.walk.rib.iter()));
    }

    #[test]
    fn a_member_set_aside_says_why() {
        let said = too_slow(Some("bsearch4"), 1, Duration::from_millis(213), true);
        let expected = "bsearch4 needs 213 ms for 1 change(s), because it compiles the whole table again; a turn has 16 ms at most";
        assert_eq!(said, expected);
    }
}
