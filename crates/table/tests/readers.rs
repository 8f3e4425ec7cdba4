//! Readers under churn: every answer that a reader gets was right at some moment during its lookup.
//!
//! The right answers are computed before the first change: a first pass over the seeded changes keeps, for each watched
//! address, the routes that contain it by length (without any code of the library), and records from which change on
//! which answer is right. Then one thread applies the changes while another looks up the watched addresses.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers fail by panicking, as tests do

mod support;

use std::iter;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::thread;

use fullview_table::fib::registry::Registered;
use fullview_table::fib::{Algorithm, Fib, Instance, Outcome};
use fullview_table::{Address, Change, NextHop, Prefix, Rib, probe};

use support::{random_table, verify};

/// The number of addresses that the reader looks up.
const WATCHED: usize = 512;
/// The length of a batch: not a round number.
const BATCH: usize = 47;
/// The number of changes of a table that is patched one by one, unless `FULLVIEW_CHURN` sets another one, as `./ci.sh
/// churn` does.
const CHANGES: u64 = 200_000;
/// The number of changes of a table that is compiled again, or patched in batches: each time, and in total.
const AT_ONCE: usize = 2_000;
const CHANGES_AT_ONCE: u64 = 200_000;
/// After how many changes the writer waits for the reader, and for how many of its rounds, however busy the machine is.
const PAUSES: usize = 100;
const LOOKS: u64 = 4;

/// Announcements and withdrawals around the watched addresses; most prefixes are long, as in real tables.
fn changes<A: Address>(watched: &[A], seed: u64) -> impl Iterator<Item = Change<A>> + '_ {
    probe::uniform::<u128>(seed).map(|draw| {
        let part = |at: u32, of: usize| (draw >> at) as u32 as usize % of;
        let shortest = A::BITS / 2 - 4;
        let longer = part(0, usize::from(A::BITS - shortest) + 1) as u8;
        let shorter = part(32, usize::from(A::BITS - shortest) + 1) as u8;
        // One in 4,096 may be short, because it rewrites much of a table.
        let len = if part(64, 4_096) == 0 { 8 + shorter % 8 } else { shortest + longer.max(shorter) };
        let near = watched[part(64, WATCHED * 7) % WATCHED] ^ A::from(part(96, 4)).unwrap();
        let next_hop = (draw >> 127 == 0 || part(112, 3) == 0).then(|| NextHop(part(80, 200) as u16 + 1));
        Change { prefix: Prefix::containing(near, len), next_hop }
    })
}

/// The right answers for one address, with the change from which on each is right.
struct History<A> {
    addr: A,
    /// The next hop of the route of each length that contains the address.
    routes: Vec<Option<NextHop>>,
    answers: Vec<(u64, NextHop)>,
}

impl<A: Address> History<A> {
    fn new(addr: A, rib: &Rib<A>) -> Self {
        let routes = (0..=A::BITS).map(|len| rib.get(Prefix::containing(addr, len))).collect();
        let mut history = History { addr, routes, answers: Vec::new() };
        history.answers.push((0, history.answer()));
        history
    }

    fn answer(&self) -> NextHop {
        self.routes.iter().rev().flatten().next().copied().unwrap_or(NextHop::NONE)
    }

    fn change(&mut self, number: u64, change: &Change<A>) {
        self.routes[usize::from(change.prefix.len())] = change.next_hop;
        let answer = self.answer();
        if self.answers.last().is_some_and(|(_, last)| *last != answer) {
            self.answers.push((number, answer));
        }
    }

    /// Whether this was the answer after one of the changes `from..=to`.
    fn allows(&self, answer: NextHop, from: u64, to: u64) -> bool {
        let first = self.answers.partition_point(|(number, _)| *number <= from) - 1;
        self.answers[first..]
            .iter()
            .take_while(|(number, _)| *number <= to.max(from))
            .any(|(_, right)| *right == answer)
    }
}

/// The watched addresses in order, with their right answers during `count` changes.
fn histories<A: Address>(rib: &Rib<A>, watched: &[A], seed: u64, count: u64) -> Vec<History<A>> {
    let mut histories: Vec<_> = watched.iter().map(|addr| History::new(*addr, rib)).collect();
    for (number, change) in (1..=count).zip(changes(watched, seed)) {
        let first = watched.partition_point(|addr| *addr < change.prefix.first());
        let inside = histories[first..].iter_mut().take_while(|history| history.addr <= change.prefix.last());
        inside.for_each(|history| history.change(number, &change));
    }
    histories
}

/// The state that writer and reader share.
struct Published<A: Address> {
    fib: RwLock<Arc<dyn Fib<A>>>,
    /// The number of changes begun, and of those that every reader sees now.
    begun: AtomicU64,
    visible: AtomicU64,
    /// The number of rounds of the reader.
    looks: AtomicU64,
}

/// The writer: it follows its RIB, and publishes.
struct Writer<'p, A: Address> {
    algorithm: &'static dyn Algorithm<A>,
    instance: Box<dyn Instance<A>>,
    rib: Rib<A>,
    published: &'p Published<A>,
}

impl<A: Address> Writer<'_, A> {
    fn apply(&mut self, changes: &[Change<A>]) {
        self.published.begun.fetch_add(changes.len() as u64, Ordering::Release);
        for change in changes {
            self.rib.apply(*change);
        }
        match self.instance.patch(&self.rib, changes) {
            Outcome::Applied => {}
            Outcome::Rebuild | Outcome::Batch => self.instance = self.algorithm.compile(&self.rib).unwrap(),
            Outcome::Error(error) => panic!("{}: {error}", self.algorithm.name()),
        }
        let fib = self.instance.fib();
        if !Arc::ptr_eq(&fib, &self.published.fib.read().unwrap()) {
            *self.published.fib.write().unwrap() = fib;
        }
        self.published.visible.fetch_add(changes.len() as u64, Ordering::Release);
    }
}

/// Looks up until the last change is visible; returns how many answers it has checked.
fn read<A: Address>(name: &str, published: &Published<A>, histories: &[History<A>], last: u64) -> u64 {
    let mut draws = probe::uniform::<u128>(5);
    let (mut addrs, mut answers) = ([A::zero(); BATCH], [NextHop::NONE; BATCH]);
    let mut checked = 0;
    loop {
        let chosen: Vec<_> =
            draws.by_ref().take(BATCH).map(|draw| &histories[draw as usize % WATCHED]).collect();
        for (addr, history) in addrs.iter_mut().zip(&chosen) {
            *addr = history.addr;
        }
        // This is loaded first, because the table could be replaced between the two loads.
        let from = published.visible.load(Ordering::Acquire);
        let fib = Arc::clone(&published.fib.read().unwrap());
        fib.lookup_batch(&addrs, &mut answers);
        let single = fib.lookup(addrs[0]);
        let to = published.begun.load(Ordering::Acquire);
        for (history, answer) in chosen.iter().zip(answers).chain([(&chosen[0], single)]) {
            let addr = history.addr.to_ip();
            assert!(
                history.allows(answer, from, to),
                "{name}: {addr} to {answer:?} at changes {from} to {to}"
            );
        }
        checked += answers.len() as u64 + 1;
        published.looks.fetch_add(1, Ordering::Relaxed);
        if from >= last {
            return checked;
        }
    }
}

/// The number of changes of a table that is patched.
fn changes_to_patch() -> u64 {
    std::env::var("FULLVIEW_CHURN")
        .map_or(CHANGES, |count| count.parse().expect("FULLVIEW_CHURN is a number"))
}

/// Whether one change can be patched into a small table.
fn patches<A: Address>(algorithm: &dyn Algorithm<A>) -> bool {
    let mut rib = random_table(1, 100, 9);
    let mut instance = algorithm.compile(&rib).unwrap();
    let route = rib.iter().last().unwrap();
    let change = Change { prefix: route.prefix, next_hop: Some(NextHop(route.next_hop.0 + 1)) };
    rib.apply(change);
    instance.patch(&rib, &[change]) == Outcome::Applied
}

fn churn<A: Address>(algorithm: &'static dyn Algorithm<A>, seed: u64) {
    let name = algorithm.name();
    let mut watched: Vec<A> = probe::uniform(seed ^ 1).take(WATCHED).collect();
    watched.sort_unstable();
    let (count, at_once) =
        if patches(algorithm) { (changes_to_patch(), 1) } else { (CHANGES_AT_ONCE, AT_ONCE) };
    let rib = random_table::<A>(seed, 2_000, 200);
    let histories = histories(&rib, &watched, seed, count);
    let instance = algorithm.compile(&rib).unwrap();
    let published = Published {
        fib: RwLock::new(instance.fib()),
        begun: AtomicU64::new(0),
        visible: AtomicU64::new(0),
        looks: AtomicU64::new(0),
    };
    let mut writer = Writer { algorithm, instance, rib, published: &published };
    let checked = thread::scope(|scope| {
        let reader = scope.spawn(|| read(name, &published, &histories, count));
        let mut changes = changes(&watched, seed).take(count as usize);
        let batches = iter::from_fn(|| Some(changes.by_ref().take(at_once).collect::<Vec<_>>()));
        let batches = batches.take_while(|batch| !batch.is_empty() && !reader.is_finished());
        for (number, batch) in batches.enumerate() {
            if number % (count as usize / at_once / PAUSES).max(1) == 0 {
                let before = published.looks.load(Ordering::Relaxed);
                while published.looks.load(Ordering::Relaxed) < before + LOOKS && !reader.is_finished() {
                    thread::yield_now();
                }
            }
            writer.apply(&batch);
        }
        reader.join().unwrap()
    });
    assert!(checked > 10_000, "{name}: the reader had no time");
    verify(name, &*published.fib.read().unwrap().clone(), &writer.rib, probe::edges(&writer.rib));
    println!("{name}: {count} changes, {checked} answers checked");
}

fn churn_all<A: Registered>() {
    for algorithm in A::ALGORITHMS.iter().filter(|algorithm| algorithm.name() != "linear") {
        churn(*algorithm, 42);
    }
}

#[test]
fn every_answer_is_right_for_a_state_in_between_inet() {
    churn_all::<u32>();
}

#[test]
fn every_answer_is_right_for_a_state_in_between_inet6() {
    churn_all::<u128>();
}
