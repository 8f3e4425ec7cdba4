//! Several workers with a filter: each packet is judged by the worker that has the states of its flow, whichever receives it, and
//! no worker loses packet memory to another.

use std::collections::HashSet;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use fullview_filter::address::Address;
use fullview_filter::interfaces::{FilterInterface, Interfaces};
use fullview_filter::pf::files::RulesetFiles;
use fullview_filter::pf::host::{HostFacts, HostInterface};
use fullview_filter::pf::{load, lower};
use fullview_filter::ruleset::RuleSet;
use fullview_filter::state::WorkerLimits;
use fullview_plane::burst::{Arena, BURST};
use fullview_plane::counters::Counters;
use fullview_plane::flow_owner::owner;
use fullview_plane::forward::{BurstFilter, EnforceableRules};
use fullview_plane::port::memory::MemoryPort;
use fullview_plane::verdict::Reason;
use fullview_plane::wire::ethernet::{EtherType, Frame, HEADER as ETHERNET};
use fullview_plane::wire::ipv4::Ipv4Packet;
use fullview_plane::worker::{DropAll, Exchange, Wait, WakeWorker, Worker, Yield};
use fullview_testnet::eventually;
use proptest::prelude::*;

use crate::outside::{Outside, cables};
use crate::{OURS, forwarder};

/// Slots that the other ends of each worker's ports have.
const SLOTS: usize = 4 * BURST;
/// Who reports that a packet was lost.
const ON_THE_WAY: [u8; 4] = [10, 0, 1, 250];

/// What hosts behind port 0 begin passes, and the answers.
const RULES: &str = "block all\npass in on port0 keep state\npass out on port1 keep state";

struct Text;

impl RulesetFiles for Text {
    fn read(&self, _: &str) -> io::Result<String> {
        Ok(RULES.to_owned())
    }
}

fn rules() -> EnforceableRules {
    let names = || (0..2).map(|number| (number, format!("port{number}")));
    let host = |(_, name)| HostInterface { name, ..HostInterface::default() };
    let facts = HostFacts { interfaces: names().map(host).collect() };
    let named = |(number, name)| FilterInterface { name, number, ..FilterInterface::default() };
    let lowered = lower::lower(
        &load::load("pf.conf", &Text, &facts).unwrap(),
        &Interfaces(names().map(named).collect()),
    );
    EnforceableRules::new(RuleSet::new(lowered.unwrap().parts).unwrap()).unwrap()
}

fn packet(from: [u8; 4], to: [u8; 4], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 20];
    bytes.extend(payload);
    let mut packet = Ipv4Packet::new_unchecked(&mut bytes);
    packet.set_header_len(20);
    packet.set_total_len(20 + payload.len() as u16);
    packet.set_ttl(9);
    packet.set_protocol(protocol);
    packet.set_source(u32::from_be_bytes(from));
    packet.set_destination(u32::from_be_bytes(to));
    packet.fill_checksum();
    bytes
}

fn frame(packet: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; ETHERNET];
    bytes.extend(packet);
    bytes.resize(bytes.len().max(60), 0);
    let mut frame = Frame::new_unchecked(&mut bytes);
    frame.set_destination(OURS);
    frame.set_outer_ethertype(EtherType::IPV4);
    bytes
}

/// Flows are between host `flow` on the one side and host `flow` on the other.
fn hosts(flow: u8) -> ([u8; 4], [u8; 4]) {
    ([10, 0, 0, 1 + flow], [10, 0, 1, 1 + flow / 3])
}

/// From port 4000 to port 53.
fn there(flow: u8) -> Vec<u8> {
    let (near, far) = hosts(flow);
    packet(near, far, 17, &[0x0f, 0xa0, 0, 53, 0, 8, 0, 0])
}

fn back(flow: u8) -> Vec<u8> {
    let (near, far) = hosts(flow);
    packet(far, near, 17, &[0, 53, 0x0f, 0xa0, 0, 8, 0, 0])
}

/// Time exceeded, about a packet there.
fn error(flow: u8) -> Vec<u8> {
    packet(ON_THE_WAY, hosts(flow).0, 1, &[&[11, 0, 0, 0, 0, 0, 0, 0][..], &there(flow)].concat())
}

fn owner_of(flow: u8, workers: usize) -> usize {
    let (near, far) = hosts(flow);
    owner(Address::inet(u32::from_be_bytes(near)), Address::inet(u32::from_be_bytes(far)), workers)
}

type TestWorker<'a, W> = Worker<'a, MemoryPort<'a>, DropAll, W>;

/// A worker without an exchange, and its surroundings.
fn worker<'a, W: Wait<MemoryPort<'a>>>(
    (rules, seed): (&EnforceableRules, u64),
    arena: &'a mut Arena,
    wait: W,
) -> (TestWorker<'a, W>, Outside<'a>) {
    let (inside, ports) = cables(2, 2 * SLOTS);
    let outside = Outside { ports, free: arena.packets().collect() };
    let mut forwarder = forwarder(2);
    forwarder.set_filter(BurstFilter::new(rules, WorkerLimits::default(), seed));
    (Worker::new(forwarder, inside, std::iter::empty(), DropAll, wait), outside)
}

fn arenas(workers: usize) -> Vec<Arena> {
    (0..workers).map(|_| Arena::new(SLOTS)).collect()
}

/// Workers that one thread drives.
struct Workers<'a>(Vec<(TestWorker<'a, Yield>, Outside<'a>)>);

impl<'a> Workers<'a> {
    fn new(arenas: &'a mut [Arena]) -> Workers<'a> {
        let (rules, nothing) = (rules(), || Box::new(|| ()) as WakeWorker);
        let exchanges = Exchange::between((0..arenas.len()).map(|_| nothing()), true);
        let started = arenas.iter_mut().zip(exchanges).zip(0..).map(|((arena, exchange), seed)| {
            let (mut worker, outside) = worker((&rules, seed), arena, Yield);
            worker.set_exchange(exchange);
            (worker, outside)
        });
        Workers(started.collect())
    }

    /// Sends packets to a port of a worker.
    fn send(&mut self, to: usize, port: usize, frames: &[Vec<u8>]) {
        self.0[to].1.reclaim();
        self.0[to].1.send(port, frames);
    }

    fn round(&mut self) {
        self.0.iter_mut().for_each(|(worker, _)| _ = worker.round().unwrap());
    }

    /// Sends a packet to a port of a worker, and returns how many come out at the other port of any.
    fn carry(&mut self, to: usize, port: usize, frame: Vec<u8>) -> usize {
        self.send(to, port, &[frame]);
        // One worker may be asked before the one that hands a packet over to it.
        (0..2).for_each(|_| self.round());
        self.0.iter_mut().map(|(_, outside)| outside.receive(1 - port).len()).sum()
    }

    fn dropped(&self, reason: Reason) -> u64 {
        self.0.iter().map(|(worker, _)| worker.published().counters().drops[reason.index()]).sum()
    }

    /// Whether the other ends have all their slots again.
    fn are_slots_back(&mut self) -> bool {
        // One round pays for a burst at most.
        (0..8).for_each(|_| self.round());
        self.0.iter_mut().all(|(_, outside)| outside.reclaim() == SLOTS)
    }
}

/// What is sent, by which flow, and to which worker.
#[derive(Clone, Copy, Debug)]
enum Sent {
    There(u8, usize),
    Back(u8, usize),
    Error(u8, usize),
}

fn sent() -> impl Strategy<Value = Sent> {
    let (flow, worker) = (0u8..24, 0usize..3);
    (0..3, flow, worker).prop_map(|(kind, flow, worker)| match kind {
        0 => Sent::There(flow, worker),
        1 => Sent::Back(flow, worker),
        _ => Sent::Error(flow, worker),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The oracle: an answer, or an error about it, passes when its flow has begun, whichever workers received the packets.
    #[test]
    fn flows_pass_by_their_states_whichever_worker_receives_them(
        workers in 1usize..4,
        sequence in prop::collection::vec(sent(), 1..120),
    ) {
        let mut arenas = arenas(workers);
        let (mut workers, count) = (Workers::new(&mut arenas), workers);
        let mut begun = HashSet::new();
        for step in sequence {
            let (passed, expected) = match step {
                Sent::There(flow, to) => {
                    begun.insert(flow);
                    (workers.carry(to % count, 0, frame(&there(flow))), true)
                }
                Sent::Back(flow, to) => (workers.carry(to % count, 1, frame(&back(flow))), begun.contains(&flow)),
                Sent::Error(flow, to) => (workers.carry(to % count, 1, frame(&error(flow))), begun.contains(&flow)),
            };
            prop_assert_eq!(passed, usize::from(expected), "{:?}", step);
        }
        prop_assert_eq!(workers.dropped(Reason::HandOver), 0);
        prop_assert!(workers.are_slots_back());
    }
}

/// So many packets of flows that this worker has the states of.
fn flows_of(worker: usize, packets: usize) -> Vec<Vec<u8>> {
    let flows = (0..24u8).cycle().filter(|flow| owner_of(*flow, 2) == worker);
    flows.take(packets).map(|flow| frame(&there(flow))).collect()
}

#[test]
fn what_the_other_worker_has_no_room_for_is_counted_and_freed() {
    const ROOM: usize = 2 * BURST;
    let mut arenas = arenas(2);
    let mut workers = Workers::new(&mut arenas);
    workers.send(0, 0, &flows_of(1, BURST));
    workers.send(0, 0, &flows_of(1, BURST));
    workers.send(0, 0, &flows_of(1, 7));
    (0..3).for_each(|_| _ = workers.0[0].0.round().unwrap());
    assert_eq!(workers.dropped(Reason::HandOver), 7);
    (0..3).for_each(|_| _ = workers.0[1].0.round().unwrap());
    let passed = [BURST, BURST].map(|_| workers.0[1].1.receive(1).len());
    assert_eq!(passed.iter().sum::<usize>(), ROOM);
    assert!(workers.are_slots_back());
}

/// The first worker floods the third one.
#[test]
fn a_flood_from_one_worker_keeps_no_other_from_its_turn() {
    let mut arenas = arenas(3);
    let mut workers = Workers::new(&mut arenas);
    let to_third = |packets| {
        let flows = (0..24u8).cycle().filter(|flow| owner_of(*flow, 3) == 2);
        flows.take(packets).map(|flow| frame(&there(flow))).collect::<Vec<_>>()
    };
    workers.0[2].0.receive_at_most(32);
    let mut passed = 0;
    for _ in 0..100 {
        workers.send(0, 0, &to_third(BURST / 2));
        workers.send(1, 0, &to_third(9));
        workers.round();
        passed += workers.0[2].1.receive(1).len();
    }
    let dropped = |number: usize| workers.0[number].0.published().counters().drops[Reason::HandOver.index()];
    assert!(dropped(0) > 0 && dropped(1) == 0, "{} of the flood, {} of the others", dropped(0), dropped(1));
    assert!(passed > 100 * 9);
}

/// Its number may be another interface's by then, whose packets the rules may let in.
#[test]
fn packets_of_a_port_that_was_taken_out_meanwhile_are_dropped() {
    let mut arenas = arenas(2);
    let mut workers = Workers::new(&mut arenas);
    workers.send(0, 0, &flows_of(1, 5));
    workers.0[0].0.round().unwrap();
    let (port, _) = workers.0[1].0.take_port(0).unwrap();
    workers.0[1].0.put_port(0, port.unwrap(), Vec::new());
    workers.round();
    assert_eq!(
        (workers.dropped(Reason::HandOver), workers.0[1].1.receive(1).len()),
        (0, 5),
        "those before are forwarded"
    );
    // The other worker has not taken it out yet.
    workers.send(0, 0, &flows_of(1, 5));
    workers.round();
    workers.round();
    assert_eq!((workers.dropped(Reason::HandOver), workers.0[1].1.receive(1).len()), (5, 0));
    workers.0[0].0.take_port(0).unwrap();
    assert_eq!(workers.carry(1, 0, flows_of(0, 1).remove(0)), 1, "both have taken it out");
}

#[test]
fn what_was_handed_over_before_a_silence_is_dropped() {
    let mut arenas = arenas(2);
    let mut workers = Workers::new(&mut arenas);
    workers.send(0, 0, &flows_of(1, 5));
    workers.0[0].0.round().unwrap();
    thread::sleep(Duration::from_millis(1100));
    workers.round();
    assert_eq!((workers.dropped(Reason::Stale), workers.0[1].1.receive(1).len()), (5, 0));
    assert!(workers.are_slots_back());
}

#[test]
fn slots_that_wait_between_workers_come_back_at_the_end() {
    let mut arenas = arenas(2);
    let mut workers = Workers::new(&mut arenas);
    workers.send(0, 0, &flows_of(1, 5));
    workers.0[0].0.round().unwrap();
    assert!(!workers.0[0].0.finish(), "the other one still works");
    assert!(workers.0[1].0.finish());
    let mut counters = Counters::new(0);
    let exchanges = workers.0.iter_mut().flat_map(|(worker, _)| worker.take_exchange());
    assert_eq!(exchanges.flat_map(|exchange| exchange.end(&mut counters)).count(), 5);
    assert_eq!(counters.drop_reasons().collect::<Vec<_>>(), [(Reason::HandOver, 5)]);
}

/// Waits until it is woken, for longer than the test has patience.
struct Park(Arc<AtomicUsize>);

impl<P> Wait<P> for Park {
    fn wait(&mut self, _ports: &[Option<P>]) {
        self.0.fetch_add(1, Ordering::Relaxed);
        thread::park_timeout(Duration::from_secs(1000));
    }
}

/// The worker's thread has to be woken for each packet.
#[test]
fn a_sleeping_worker_wakes_for_what_is_handed_over() {
    let (rules, sleeps, stop) = (rules(), Arc::<AtomicUsize>::default(), &AtomicBool::new(false));
    let mut arenas = arenas(2);
    let [first, second] = &mut arenas[..] else { unreachable!() };
    let (mut here, mut outside) = worker((&rules, 1), first, Yield);
    let (mut sleeper, mut outside_of_sleeper) = worker((&rules, 2), second, Park(Arc::clone(&sleeps)));
    thread::scope(|scope| {
        let (give, take) = mpsc::channel();
        let thread = scope.spawn(move || {
            sleeper.set_exchange(take.recv().unwrap());
            sleeper.run(stop).unwrap();
        });
        let thread = thread.thread().clone();
        let woken = thread.clone();
        let wakes: [WakeWorker; 2] = [Box::new(|| ()), Box::new(move || woken.unpark())];
        let mut exchanges = Exchange::between(wakes, true);
        give.send(exchanges.remove(1)).unwrap();
        here.set_exchange(exchanges.remove(0));
        for number in 1..=200 {
            outside.reclaim();
            outside.send(0, &flows_of(1, 1));
            here.round().unwrap();
            let has_passed = eventually(|| outside_of_sleeper.receive(1).len() == 1);
            assert!(has_passed, "packet {number}");
        }
        stop.store(true, Ordering::Relaxed);
        thread.unpark();
    });
    assert!(sleeps.load(Ordering::Relaxed) > 0);
}
