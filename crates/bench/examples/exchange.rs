//! What it costs that two workers share a filter: the loop with states as one worker has it, with a look at each packet's owner, and
//! when every packet comes to the worker that does not own it.
//!
//!     cargo run --release -p fullview-bench --example exchange
//!
//! Each worker has a core, packet memory, memory ports, and a generator and a receiver that run between its rounds. Both work at once,
//! in slices of the three cases that take turns in a random order. The rates are those of the whole loop, of both workers together.

// An example fails by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use core_affinity::CoreId;
use fullview_bench::probe::probe;
use fullview_filter::address::Address;
use fullview_filter::rule::{CompiledRule, RuleAction, StateOptions};
use fullview_filter::ruleset::{Language, RuleSet, RuleSetParts};
use fullview_filter::state::WorkerLimits;
use fullview_plane::adjacency::{Adjacencies, Adjacency};
use fullview_plane::burst::{Arena, Burst, Packet};
use fullview_plane::flow_owner::owner;
use fullview_plane::forward::{BurstFilter, EnforceableRules, Forwarder};
use fullview_plane::interface::Interface;
use fullview_plane::port::Port;
use fullview_plane::port::memory::{MemoryPort, pair};
use fullview_plane::view::{TableReaders, View, ViewParts, Views};
use fullview_plane::wire::ethernet::{EtherType, Frame, HEADER, Mac};
use fullview_plane::wire::ipv4::{Ipv4Packet, protocol};
use fullview_plane::worker::{DropAll, Exchange, WakeWorker, Worker, Yield};
use fullview_table::fib::registry;
use fullview_table::{NextHop, Rib};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

const WORKERS: usize = 2;
/// Flows of each worker.
const FLOWS: usize = 2500;
/// Packets of a burst, and slots of a worker.
const WAVE: usize = 64;
const SLOTS: usize = 4096;
const ROUNDS: usize = 40;
const SLICE: Duration = Duration::from_millis(50);
/// Bursts between two looks at the clock.
const TURN: usize = 64;
const OURS: Mac = Mac([2, 0, 0, 0, 0, 1]);

/// How packets come to their owners.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Case {
    /// They are not looked at.
    NoExchange,
    AtTheirOwners,
    AtTheOther,
}

const CASES: [Case; 3] = [Case::NoExchange, Case::AtTheirOwners, Case::AtTheOther];

fn main() {
    let cores: [usize; WORKERS] = [0, 1].map(|place| core_affinity::get_core_ids().unwrap()[place].id);
    let distance = probe(cores[0], cores[1], Duration::from_millis(200)).unwrap();
    println!("cores {cores:?}, {distance}");
    let (views, rules) = (Views::new(view()), rules());
    let mut arenas: Vec<Arena> = (0..CASES.len() * WORKERS).map(|_| Arena::new(SLOTS)).collect();
    let mut sides: [Vec<Bench<'_>>; WORKERS] = [Vec::new(), Vec::new()];
    let mut memory = arenas.iter_mut();
    for case in CASES {
        let wakes = [(); WORKERS].map(|()| Box::new(|| ()) as WakeWorker);
        for (number, exchange) in Exchange::between(wakes, true).into_iter().enumerate() {
            let forwarder = forwarder(&views, &rules, number as u64);
            sides[number].push(Bench::new(memory.next().unwrap(), forwarder, (case, number), exchange));
        }
    }
    let (barrier, counted) = (Barrier::new(WORKERS), [(); CASES.len()].map(|()| AtomicU64::new(0)));
    let mut rates = thread::scope(|scope| {
        let threads = sides.into_iter().zip(cores).map(|(benches, core)| {
            let (barrier, counted) = (&barrier, &counted);
            scope.spawn(move || side(core, benches, barrier, counted))
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    report(&rates.swap_remove(0));
}

/// 10.1.0.0/16 is behind port 1.
fn view() -> View {
    let (mut rib, mut adjacencies) = (Rib::<u32>::default(), Adjacencies::new());
    rib.announce("10.1.0.0/16".parse().unwrap(), NextHop(1));
    adjacencies.set(NextHop(1), Adjacency::Neighbor { interface: 1, mac: Mac([4; 6]) });
    let interfaces = (0..2).map(|port| Interface::new(port, OURS)).collect();
    let inet = registry::find::<u32>("dir18").unwrap().compile(&rib).unwrap().fib();
    let inet6 = registry::find::<u128>("btree6").unwrap().compile(&Rib::default()).unwrap().fib();
    View::new(ViewParts::new(interfaces, adjacencies, TableReaders::fixed(inet, inet6))).unwrap()
}

/// Everything passes with a state.
fn rules() -> EnforceableRules {
    let mut parts = RuleSetParts::new(Language::Ipfw);
    parts.rules =
        vec![CompiledRule { state: Some(StateOptions::default()), ..CompiledRule::new(RuleAction::Pass) }];
    EnforceableRules::new(RuleSet::new(parts).unwrap()).unwrap()
}

fn forwarder(views: &Views, rules: &EnforceableRules, seed: u64) -> Forwarder {
    let mut forwarder = Forwarder::new(views.reader());
    forwarder.set_filter(BurstFilter::new(rules, WorkerLimits::default(), seed));
    forwarder
}

/// Small UDP packets of as many flows that this worker owns.
fn flows_of(worker: usize) -> Vec<[u8; 60]> {
    let hosts = (0..u32::from(u16::MAX)).map(|host| [0x0a00_0001 + host, 0x0a01_0001 + host / 3]);
    let owned = hosts.filter(|ends| {
        let [from, to] = ends.map(Address::inet);
        owner(from, to, WORKERS) == worker
    });
    owned.take(FLOWS).map(frame).collect()
}

fn frame([from, to]: [u32; 2]) -> [u8; 60] {
    let mut bytes = [0; 60];
    let mut frame = Frame::new_unchecked(&mut bytes[..]);
    frame.set_destination(OURS);
    frame.set_outer_ethertype(EtherType::IPV4);
    let mut packet = Ipv4Packet::new_unchecked(frame.payload_mut());
    packet.set_header_len(20);
    packet.set_total_len(46);
    packet.set_ttl(64);
    packet.set_protocol(protocol::UDP);
    packet.set_source(from);
    packet.set_destination(to);
    packet.fill_checksum();
    bytes[HEADER + 20..HEADER + 26].copy_from_slice(&[0x10, 0, 0, 53, 0, 26]);
    bytes
}

/// A worker, and what sends to it and receives from it.
struct Bench<'a> {
    worker: Worker<'a, MemoryPort<'a>, DropAll, Yield>,
    near: MemoryPort<'a>,
    far: MemoryPort<'a>,
    free: Vec<Packet<'a>>,
    frames: Vec<[u8; 60]>,
    next: usize,
}

impl<'a> Bench<'a> {
    fn new(
        arena: &'a mut Arena,
        forwarder: Forwarder,
        (case, worker): (Case, usize),
        exchange: Exchange<'a>,
    ) -> Bench<'a> {
        let [(inside, near), (outside, far)] = [0, 1].map(|number| pair([number, number], 4 * SLOTS));
        let ports = vec![Some(inside), Some(outside)];
        let mut bench = Bench {
            worker: Worker::new(forwarder, ports, std::iter::empty(), DropAll, Yield),
            near,
            far,
            free: arena.packets().collect(),
            frames: flows_of(if case == Case::AtTheOther { 1 - worker } else { worker }),
            next: 0,
        };
        if case != Case::NoExchange {
            bench.worker.set_exchange(exchange);
        }
        bench
    }

    /// Sends a burst, if there is memory, and returns how many packets came out.
    fn turn(&mut self) -> usize {
        let mut burst = Burst::new();
        if self.free.len() >= WAVE {
            burst.fill(self.free.drain(self.free.len() - WAVE..));
            for packet in burst.iter_mut() {
                packet.set_frame(&self.frames[self.next]);
                self.next = (self.next + 1) % FLOWS;
            }
            self.near.transmit(&mut burst).unwrap();
        }
        self.worker.round().unwrap();
        let received = self.far.receive(&mut burst, 4 * WAVE).unwrap();
        self.free.extend(burst.drain());
        while self.near.reclaim(&mut burst) > 0 {
            self.free.extend(burst.drain());
        }
        received
    }
}

/// Packets a second of both workers, by case.
type Rates = [Vec<f64>; CASES.len()];

/// Runs this core's part of all slices.
fn side(
    core: usize,
    mut benches: Vec<Bench<'_>>,
    barrier: &Barrier,
    counted: &[AtomicU64; CASES.len()],
) -> Rates {
    assert!(core_affinity::set_for_current(CoreId { id: core }), "core {core} is not to be had");
    let (mut rates, mut random) = (Rates::default(), ChaCha8Rng::seed_from_u64(1));
    for round in 0..=ROUNDS {
        let mut order: Vec<usize> = (0..CASES.len()).collect();
        order.shuffle(&mut random);
        for case in order {
            barrier.wait();
            counted[case].store(0, Ordering::Relaxed);
            barrier.wait();
            let (began, mut packets) = (Instant::now(), 0);
            while began.elapsed() < SLICE {
                packets += (0..TURN).map(|_| benches[case].turn()).sum::<usize>();
            }
            let rate = packets as f64 / began.elapsed().as_secs_f64();
            counted[case].fetch_add(rate as u64, Ordering::Relaxed);
            barrier.wait();
            // The first round fills caches and makes the states.
            rates[case].extend((round > 0).then(|| counted[case].load(Ordering::Relaxed) as f64));
        }
    }
    for bench in &benches {
        let counters = bench.worker.published().counters();
        println!("core {core}: {} packets, {} dropped", counters.received().packets, counters.dropped());
    }
    rates
}

fn report(rates: &Rates) {
    let base = &rates[0];
    for (case, rates) in CASES.iter().zip(rates) {
        let kept = median(rates.iter().zip(base).map(|(rate, base)| rate / base).collect());
        // Both workers work at once.
        let more = |(rate, base): (&f64, &f64)| WORKERS as f64 * 1e9 * (1.0 / rate - 1.0 / base);
        let more = median(rates.iter().zip(base).map(more).collect());
        let median = median(rates.clone()) / 1e6;
        println!(
            "{case:?}: {median:.2} Mpps, {:.1} % of the first, {more:.1} ns more a packet",
            100.0 * kept
        );
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
