//! What states cost: `cargo run --release -p fullview-filter --example states [STATES…]` prints nanoseconds for making one,
//! finding one in bursts of 32, and finding it by its answer, beside a `hashbrown` table of the same keys; for how long one
//! call of the sweep keeps the packets waiting while all states expire; and for how long a reload does, usually and when every
//! state gets the numbers of the new rules at once.
#![allow(clippy::unwrap_used)]

use std::time::Instant;

use fullview_filter::address::Address;
use fullview_filter::packet::{Direction, Packet, Pass};
use fullview_filter::rule::{CompiledRule, FlowMask, RuleAction, SourceLimits, StateOptions};
use fullview_filter::ruleset::{Language, RuleSet, RuleSetParts};
use fullview_filter::state::{FilterWorker, FlowHasher, FlowKey, WorkerLimits};
use fullview_filter::verdict::{DecidedBy, Decision, Verdict};
use hashbrown::HashTable;

const BURST: usize = 32;
const NOTHING: Decision = Decision { verdict: Verdict::Pass, rule: None, by: DecidedBy::Rule };

fn main() {
    let mut sizes: Vec<u32> = std::env::args().skip(1).map(|size| size.parse().unwrap()).collect();
    if sizes.is_empty() {
        sizes = vec![64, 1000, 5000, 100_000, 1_000_000, 5_000_000];
    }
    println!(
        "{:>9} {:>8} {:>7} {:>7} {:>7} {:>13} {:>12} {:>12} {:>13} {:>13}",
        "states",
        "insert",
        "hit",
        "answer",
        "bytes",
        "hashbrown hit",
        "sweep p99.9",
        "sweep max",
        "reload",
        "settling all"
    );
    sizes.into_iter().for_each(measure);
}

fn rules(source: Option<SourceLimits>) -> RuleSet {
    let mut parts = RuleSetParts::new(Language::Pf);
    let state = Some(StateOptions { source, ..StateOptions::default() });
    parts.rules = vec![CompiledRule { state, ..CompiledRule::new(RuleAction::Pass) }];
    RuleSet::new(parts).unwrap()
}

/// The packet of a flow, whose number is spread so that flows come in no order.
fn packet(number: u32, answer: bool) -> Packet {
    let spread = number.wrapping_mul(0x9e37_79b1);
    let client = (Address::inet(0x0a00_0000 | spread >> 8), 1024 + (spread & 0xff) as u16);
    let server = (Address::inet(0xc633_6400 | number & 0xff), 443);
    let pass = |direction| Pass { direction, interface: 1, received_on: 1 };
    if answer {
        Packet::udp(pass(Direction::Out), server, client)
    } else {
        Packet::udp(pass(Direction::In), client, server)
    }
}

/// Nanoseconds a packet for so many packets in bursts.
fn bursts(set: &RuleSet, worker: &mut FilterWorker, order: &[u32], answer: bool) -> f64 {
    let mut decisions = [NOTHING; BURST];
    let mut burst = Vec::with_capacity(BURST);
    let mut nanoseconds = 0;
    for numbers in order.chunks(BURST) {
        burst.clear();
        burst.extend(numbers.iter().map(|number| packet(*number, answer)));
        let start = Instant::now();
        set.check_burst(worker, 1000, &mut burst, &mut decisions);
        nanoseconds += start.elapsed().as_nanos();
    }
    nanoseconds as f64 / order.len() as f64
}

fn measure(states: u32) {
    let set = rules(None);
    let (mut worker, insert) = full(&set, WorkerLimits { states, ..WorkerLimits::default() });
    let order: Vec<u32> = (0..2_000_000_u64)
        .map(|turn| (turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) as u32 % states)
        .collect();
    bursts(&set, &mut worker, &order[..order.len() / 2], false);
    let hit = bursts(&set, &mut worker, &order, false);
    let answer = bursts(&set, &mut worker, &order, true);
    let bytes = worker.states().bytes() as f64 / f64::from(states);
    let [usual, longest] = expire(&set, &mut worker);
    let [reload, settling] = reload(states);
    println!(
        "{states:>9} {insert:>8.1} {hit:>7.1} {answer:>7.1} {bytes:>7.1} {:>13.1} {usual:>9.1} us {longest:>9.1} us \
         {reload:>10.3} ms {settling:>10.3} ms",
        with_hashbrown(states, &order)
    );
}

/// A worker with as many states as it has room for, and nanoseconds for making one.
fn full(set: &RuleSet, limits: WorkerLimits) -> (FilterWorker, f64) {
    let mut worker = FilterWorker::new(limits, set.counted_rules(), 7);
    let all: Vec<u32> = (0..limits.states).collect();
    let insert = bursts(set, &mut worker, &all, false);
    assert_eq!(worker.states().len(), limits.states as usize);
    (worker, insert)
}

/// The time within which 999 of 1,000 calls of the sweep end while all states expire, and that of the longest call, in
/// microseconds. The machine interrupts some calls, of which the longest may be one.
fn expire(set: &RuleSet, worker: &mut FilterWorker) -> [f64; 2] {
    let (mut now, mut calls) = (10_000_000, Vec::new());
    while !worker.states().is_empty() {
        now += 10;
        let start = Instant::now();
        set.sweep(worker, now);
        calls.push(start.elapsed().as_nanos());
    }
    calls.sort_unstable();
    let last = calls.len() - 1;
    [last * 999 / 1000, last].map(|place| calls[place] as f64 / 1000.0)
}

/// A worker remembers so many reloads; the next one gives all states the numbers of the new rules.
const REMEMBERED: usize = 64;

/// The median of the reloads that a worker remembers, and the one after them, in milliseconds. Nearly each state has a source of its
/// own, which every reload visits.
fn reload(states: u32) -> [f64; 2] {
    let set = rules(Some(SourceLimits { max_states: Some(256), ..SourceLimits::by(FlowMask::SOURCE) }));
    let limits = WorkerLimits { states, sources: states + states / 4, ..WorkerLimits::default() };
    let (mut worker, _) = full(&set, limits);
    let mut usual: Vec<f64> = (0..REMEMBERED).map(|_| adopt(&set, &mut worker)).collect();
    usual.sort_unstable_by(f64::total_cmp);
    [usual[REMEMBERED / 2], adopt(&set, &mut worker)]
}

fn adopt(set: &RuleSet, worker: &mut FilterWorker) -> f64 {
    let adoption = set.adoption(set);
    let start = Instant::now();
    let returned = worker.adopt(adoption);
    let taken = start.elapsed();
    drop(returned);
    taken.as_secs_f64() * 1e3
}

fn with_hashbrown(states: u32, order: &[u32]) -> f64 {
    let hasher = FlowHasher::new(7);
    let keys: Vec<FlowKey> = (0..states).map(|number| FlowKey::of(&packet(number, false))).collect();
    let mut table = HashTable::<u32>::with_capacity(states as usize);
    for number in 0..states {
        table.insert_unique(hasher.hash(&keys[number as usize]), number, |number| {
            hasher.hash(&keys[*number as usize])
        });
    }
    let mut found = 0;
    let mut nanoseconds = 0;
    for numbers in order.chunks(BURST) {
        let burst: Vec<_> = numbers.iter().map(|number| FlowKey::of(&packet(*number, false))).collect();
        let start = Instant::now();
        for key in &burst {
            let entry = table.find(hasher.hash(key), |number| keys[*number as usize] == *key);
            found += u64::from(*std::hint::black_box(entry.unwrap()));
        }
        nanoseconds += start.elapsed().as_nanos();
    }
    std::hint::black_box(found);
    nanoseconds as f64 / order.len() as f64
}
