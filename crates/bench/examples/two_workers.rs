//! Whether workers take anything from each other: one alone, the other alone, both at once.
//!
//!     cargo run --release -p fullview-bench --example two_workers -- full-view.txt.gz
//!
//! Each worker has a core, packet memory, memory ports, a generator and a receiver of its own, and takes packets all the
//! way; the view and the FIB of the whole table are the same for both. Slices of the three cases alternate, and inside of
//! each slice the loop with the worker alternates with one that only generates, passes on and receives: the difference
//! in time per packet is the worker's. A fourth case shows that the measurement would notice a shared cache line: both
//! workers, and for each packet an addition to a number that they share. Without a table a synthetic one is made.

// An example fails by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::VecDeque;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use core_affinity::CoreId;
use fullview_bench::probe::probe;
use fullview_bench::traffic::check::{Departure, Passage};
use fullview_bench::traffic::flow::FlowSet;
use fullview_bench::traffic::frame::{FrameSize, Frames, Macs};
use fullview_bench::traffic::generator::Generator;
use fullview_bench::traffic::model::Model;
use fullview_bench::traffic::sink::Sink;
use fullview_plane::adjacency::{Adjacencies, Adjacency};
use fullview_plane::burst::{Arena, Burst, Packet};
use fullview_plane::forward::Forwarder;
use fullview_plane::interface::Interface;
use fullview_plane::port::Port;
use fullview_plane::port::memory::{MemoryPort, Receiver, Sender, link, pair};
use fullview_plane::view::{TableReaders, View, ViewParts, Views};
use fullview_plane::wire::ethernet::Mac;
use fullview_plane::worker::{DropAll, Worker, Yield};
use fullview_table::feed::{self, Options, synthetic::Synthetic};
use fullview_table::fib::registry;
use fullview_table::{NextHop, Table};

/// Packets of a burst, and slots of a worker.
const WAVE: usize = 64;
const SLOTS: usize = 2048;
/// Destinations, in prefixes drawn from the whole table.
const PACKETS: usize = 1 << 16;
const ROUNDS: usize = 60;
const SLICE: Duration = Duration::from_millis(100);
/// Time between two changes from the loop with the worker to the one without, in bursts.
const TURN: usize = 256;

const MACS: Macs = Macs { source: Mac([2, 0, 0, 0, 0, 1]), destination: Mac([2, 0, 0, 0, 0, 2]) };
const EGRESS_MAC: Mac = Mac([2, 0, 0, 0, 0, 3]);

/// A line of its own, and the next one too, which some processors fetch along with it.
#[repr(align(128))]
struct Line(AtomicU64);

static SHARED: Line = Line(AtomicU64::new(0));

fn main() {
    let table = match std::env::args().nth(1) {
        Some(path) => feed::load(path.as_ref(), &Options::default()).unwrap().table,
        None => Synthetic::default().table().unwrap(),
    };
    let cores = [0, 1].map(|place| core_affinity::get_core_ids().unwrap()[place].id);
    let distance = probe(cores[0], cores[1], Duration::from_millis(200)).unwrap();
    println!("{} + {} routes; cores {cores:?}, {distance}", table.inet.len(), table.inet6.len());
    let views = Views::new(view(&table));
    let flows = Model::Prefixes { packets: PACKETS }.flows(&table.inet, 1).unwrap();
    let barrier = Barrier::new(2);
    let [one, other] = thread::scope(|scope| {
        cores
            .map(|core| {
                let (views, flows, barrier) = (&views, &flows, &barrier);
                scope.spawn(move || side(cores, core, views, flows, barrier, &table_departures()))
            })
            .map(|side| side.join().unwrap())
    });
    report(cores[0], &one);
    report(cores[1], &other);
    let distance = probe(cores[0], cores[1], Duration::from_millis(200)).unwrap();
    println!("afterwards: {distance}; additions to the shared number: {}", SHARED.0.load(Ordering::Relaxed));
}

/// A router with one neighbour for every next hop.
fn view(table: &Table) -> View {
    let mut adjacencies = Adjacencies::new();
    for (index, departure) in (0..).zip(table_departures()).skip(1) {
        let neighbor = Adjacency::Neighbor { interface: 1, mac: departure.destination };
        adjacencies.set(NextHop(index), neighbor);
    }
    let interfaces = vec![Interface::new(0, MACS.destination), Interface::new(1, EGRESS_MAC)];
    let inet = registry::find::<u32>("dir18").unwrap().compile(&table.inet).unwrap().fib();
    let inet6 = registry::find::<u128>("btree6").unwrap().compile(&table.inet6).unwrap().fib();
    View::new(ViewParts::new(interfaces, adjacencies, TableReaders::fixed(inet, inet6))).unwrap()
}

/// Each next hop has an address of its own, so that a wrong one shows.
fn table_departures() -> Vec<Departure> {
    let departure = |next_hop: u32| {
        let [_, _, high, low] = next_hop.to_be_bytes();
        Departure { port: 1, source: EGRESS_MAC, destination: Mac([2, 0, 0, 1, high, low]) }
    };
    (0..=u32::from(NextHop::MAX)).map(departure).collect()
}

/// Who works in a slice.
#[derive(Clone, Copy, PartialEq)]
enum Case {
    Alone(usize),
    Both,
    SharedLine,
}

/// Packets a second of the whole loop, and of the worker's share of it.
#[derive(Clone, Copy)]
struct Rate {
    whole: f64,
    worker: f64,
}

/// By case: alone, both, with a shared line.
type Rates = [Vec<Rate>; 3];

fn side(
    cores: [usize; 2],
    core: usize,
    views: &Views,
    flows: &FlowSet<u32>,
    barrier: &Barrier,
    departures: &[Departure],
) -> Rates {
    assert!(core_affinity::set_for_current(CoreId { id: core }), "core {core} is not to be had");
    let frames = Frames::<u32>::new(FrameSize::Smallest, MACS).unwrap();
    let mut arena = Arena::new(SLOTS);
    let mut bench = Bench::new(&mut arena, &frames, flows, views, departures);
    let mut rates = Rates::default();
    for round in 0..=ROUNDS {
        let mut cases = [Case::Alone(cores[0]), Case::Alone(cores[1]), Case::Both, Case::SharedLine];
        cases.rotate_left(round % 4);
        for case in cases {
            barrier.wait();
            let place = match case {
                Case::Alone(of) if of != core => continue,
                Case::Alone(_) => 0,
                Case::Both => 1,
                Case::SharedLine => 2,
            };
            let rate = bench.slice(case == Case::SharedLine);
            // The first round fills caches.
            rates[place].extend((round > 0).then_some(rate));
        }
    }
    bench.check();
    rates
}

type Wired<'a> = Worker<'a, MemoryPort<'a>, DropAll, Yield>;

/// A worker, and what sends to it and receives from it on the same core.
struct Bench<'a, 'f> {
    free: VecDeque<Packet<'a>>,
    worker: Wired<'a>,
    near: MemoryPort<'a>,
    far: MemoryPort<'a>,
    bare: [(Sender<'a>, Receiver<'a>); 2],
    generator: Generator<'f, u32>,
    routed: Sink<'f, u32>,
    direct: Sink<'f, u32>,
    sent: u64,
}

impl<'a, 'f> Bench<'a, 'f> {
    fn new(
        arena: &'a mut Arena,
        frames: &'f Frames<u32>,
        flows: &'f FlowSet<u32>,
        views: &Views,
        departures: &'f [Departure],
    ) -> Bench<'a, 'f> {
        let mut free: VecDeque<Packet<'a>> = arena.packets().collect();
        free.iter_mut().for_each(|slot| frames.prepare(slot));
        let ((inside, near), (outside, far)) = (pair([0, 0], SLOTS), pair([1, 1], SLOTS));
        let ports = vec![Some(inside), Some(outside)];
        let forwarder = Forwarder::new(views.reader());
        let one_in = 64.try_into().unwrap();
        Bench {
            free,
            worker: Worker::new(forwarder, ports, std::iter::empty(), DropAll, Yield),
            near,
            far,
            bare: [link(SLOTS), link(SLOTS)],
            generator: Generator::new(flows, frames, 0),
            routed: Sink::new(flows, frames, Passage::Routed(departures), one_in),
            direct: Sink::new(flows, frames, Passage::Direct, one_in),
            sent: 0,
        }
    }

    fn slice(&mut self, shares_line: bool) -> Rate {
        let began = Instant::now();
        let (mut with, mut without, mut packets) = (Duration::ZERO, Duration::ZERO, 0);
        while began.elapsed() < SLICE {
            packets += TURN * WAVE;
            let turn = Instant::now();
            (0..TURN).for_each(|_| self.through_the_worker(shares_line));
            with += turn.elapsed();
            let turn = Instant::now();
            (0..TURN).for_each(|_| self.past_the_worker());
            without += turn.elapsed();
        }
        let rate = |time: Duration| packets as f64 / time.as_secs_f64();
        Rate { whole: rate(with), worker: rate(with.saturating_sub(without)) }
    }

    fn generate(&mut self) -> Burst<'a> {
        let mut burst = Burst::new();
        burst.fill(self.free.drain(..WAVE));
        self.generator.fill(&mut burst);
        burst
    }

    fn through_the_worker(&mut self, shares_line: bool) {
        let mut burst = self.generate();
        self.sent += WAVE as u64;
        self.near.transmit(&mut burst).unwrap();
        self.worker.round().unwrap();
        self.far.receive(&mut burst, WAVE).unwrap();
        if shares_line {
            burst.iter().for_each(|_| _ = SHARED.0.fetch_add(1, Ordering::Relaxed));
        }
        self.routed.receive(&burst);
        self.free.extend(burst.drain());
    }

    fn past_the_worker(&mut self) {
        let mut burst = self.generate();
        for (sender, receiver) in &mut self.bare {
            sender.send(&mut burst);
            receiver.receive(&mut burst, WAVE);
        }
        self.direct.receive(&burst);
        self.free.extend(burst.drain());
    }

    /// No packet was lost, and none came out wrong.
    fn check(&self) {
        let tally = self.routed.tally();
        assert_eq!((tally.packets, tally.wrong, self.free.len()), (self.sent, 0, SLOTS));
        assert!(tally.checked > 0);
    }
}

fn report(core: usize, [alone, both, shared]: &Rates) {
    let figure = |rates: &[Rate], of: fn(&Rate) -> f64| median(rates.iter().map(of).collect()) / 1e6;
    let kept = |rates: &[Rate], of: fn(&Rate) -> f64| {
        100.0 * median(alone.iter().zip(rates).map(|(alone, rate)| of(rate) / of(alone)).collect())
    };
    println!(
        "worker on core {core}: medians of {} slices, in Mpps, and what is left of its rate alone",
        alone.len()
    );
    for (name, of) in
        [("whole loop", (|rate| rate.whole) as fn(&Rate) -> f64), ("worker", |rate| rate.worker)]
    {
        println!(
            "  {name:10}  alone {:6.2}  both {:6.2} = {:5.1} %  with a shared line {:6.2} = {:5.1} %",
            figure(alone, of),
            figure(both, of),
            kept(both, of),
            figure(shared, of),
            kept(shared, of)
        );
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
