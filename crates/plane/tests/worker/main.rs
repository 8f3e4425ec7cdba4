//! A worker between memory ports: every packet is forwarded, answered or freed, and every slot comes back.

// Helpers of a test panic on failure, as the test itself does.
#![allow(clippy::unwrap_used)]

mod exchange;
mod outside;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use fullview_plane::adjacency::{Adjacencies, Adjacency};
use fullview_plane::burst::{Arena, BURST, Burst};
use fullview_plane::counters::{Counters, Traffic};
use fullview_plane::forward::Forwarder;
use fullview_plane::interface::Interface;
use fullview_plane::noted_links::NotedLinks;
use fullview_plane::policy::{PolicyAction, PolicyRule, RuleTransport};
use fullview_plane::port::memory::{MemoryPort, pair};
use fullview_plane::port::{Port, PortError, PortLosses};
use fullview_plane::verdict::{Punt, Reason, Verdict};
use fullview_plane::view::{TableReaders, View, ViewParts, ViewReader, Views};
use fullview_plane::wire::ethernet::{EtherType, Frame, HEADER as ETHERNET, Mac};
use fullview_plane::wire::ipv4::Ipv4Packet;
use fullview_plane::worker::{DropAll, Rejected, SlowPath, Wait, Worker, Yield};
use fullview_table::fib::framework::{Attachment, SharedReader, Time};
use fullview_table::fib::registry::Registered;
use fullview_table::fib::{Algorithm, Fib, linear::Linear};
use fullview_table::group::{GroupView, Groups, Member};
use fullview_table::{NextHop, NextHops, Rib, Target};
use fullview_testnet::eventually;
use outside::{Outside, cables};

const OURS: Mac = Mac([2, 0, 0, 0, 0, 1]);

/// 10.0.N.0/24 is on port N; 10.1.0.1 is this router.
fn forwarder(ports: u16) -> Forwarder {
    let (mut rib, mut adjacencies) = (Rib::<u32>::default(), Adjacencies::new());
    for port in 0..ports {
        rib.announce(format!("10.0.{port}.0/24").parse().unwrap(), NextHop(port + 1));
        adjacencies.set(NextHop(port + 1), Adjacency::Neighbor { interface: port, mac: Mac([4; 6]) });
    }
    rib.announce("10.1.0.1/32".parse().unwrap(), NextHop(100));
    adjacencies.set(NextHop(100), Adjacency::Local);
    let interfaces = (0..ports).map(|port| Interface::new(port, OURS)).collect();
    let inet6 = Linear.compile(&Rib::<u128>::default()).unwrap().fib();
    let tables = TableReaders::fixed(Linear.compile(&rib).unwrap().fib(), inet6);
    Forwarder::new(ViewReader::fixed(View::new(ViewParts::new(interfaces, adjacencies, tables)).unwrap()))
}

fn frame(destination: [u8; 4], ttl: u8) -> Vec<u8> {
    let mut bytes = vec![0; 60];
    let mut frame = Frame::new_unchecked(&mut bytes);
    frame.set_destination(OURS);
    frame.set_outer_ethertype(EtherType::IPV4);
    let mut packet = Ipv4Packet::new_unchecked(frame.payload_mut());
    packet.set_header_len(20);
    packet.set_total_len(46);
    packet.set_ttl(ttl);
    packet.set_source(0xc612_0001);
    packet.set_destination(u32::from_be_bytes(destination));
    packet.fill_checksum();
    bytes
}

#[test]
fn a_worker_without_packets_begins_rounds() {
    let (inside, _outside) = cables(1, 2 * BURST);
    let mut worker = Worker::new(forwarder(1), inside, std::iter::empty(), DropAll, Yield);
    let published = worker.published();
    let first = published.round_began();
    assert!(eventually(|| {
        worker.round().unwrap();
        published.round_began() > first
    }));
    let last = published.round_began();
    thread::sleep(Duration::from_millis(20));
    assert_eq!(published.round_began(), last, "no round has begun");
}

/// Returns every punted packet to its sender with exchanged addresses.
struct Echo {
    seen: Vec<Verdict>,
}

impl SlowPath for Echo {
    fn take(&mut self, rejected: Rejected<'_, '_>) {
        let mut packets = std::mem::take(rejected.packets);
        for packet in packets.drain() {
            self.seen.push(packet.verdict);
            let port = usize::from(packet.port);
            if packet.verdict == Verdict::Punt(Punt::Local) {
                packet.frame_mut()[..6].copy_from_slice(&[9; 6]);
                rejected.out[port].push(packet).unwrap();
            } else {
                rejected.free.fill([packet].into_iter());
            }
        }
    }
}

#[test]
fn packets_are_forwarded_answered_or_freed_and_slots_return_to_their_port() {
    let mut arena = Arena::new(40);
    let (inside, ports) = cables(3, 2 * BURST);
    let mut outside = Outside { ports, free: arena.packets().collect() };
    let slow = Echo { seen: Vec::new() };
    let mut worker = Worker::new(forwarder(3), inside, std::iter::empty(), slow, Yield);
    let [forwarded, local, expired] =
        [frame([10, 0, 1, 1], 9), frame([10, 1, 0, 1], 9), frame([10, 0, 1, 1], 1)];
    outside.send(0, &[forwarded.clone(), local.clone(), expired.clone(), forwarded.clone()]);
    outside.send(2, &[local]);
    assert_eq!(worker.round().unwrap(), 5);
    assert_eq!(worker.round().unwrap(), 0);
    assert_eq!([0, 1, 2].map(|port| outside.receive(port).len()), [1, 2, 1]);
    worker.round().unwrap();
    worker.round().unwrap();
    assert_eq!(outside.reclaim(), 40, "every slot is back");
    let local = Verdict::Punt(Punt::Local);
    assert_eq!(worker.slow().seen, [local, Verdict::Drop(Reason::TtlExpired), local]);
    let counters = worker.published().counters();
    assert_eq!((counters.received().packets, counters.sent().packets), (5, 2));
    assert_eq!((counters.punts[Punt::Local.index()], counters.dropped()), (2, 1));
    let rounds = worker.published().worker();
    assert_eq!((rounds.rounds, rounds.idle_rounds), (4, 3));
}

#[test]
fn packets_for_a_missing_port_are_counted_as_dropped_and_freed() {
    let mut arena = Arena::new(4);
    let (mut inside, ports) = cables(2, 2 * BURST);
    inside[1] = None;
    let mut outside = Outside { ports, free: arena.packets().collect() };
    let mut worker = Worker::new(forwarder(2), inside, std::iter::empty(), DropAll, Yield);
    outside.send(0, &[frame([10, 0, 1, 1], 9), frame([10, 0, 1, 2], 9)]);
    assert_eq!((worker.round().unwrap(), worker.round().unwrap()), (2, 0));
    let counters = worker.published().counters();
    assert_eq!((counters.sent(), counters.interface_drops[1]), (Traffic::default(), counters.drops));
    assert_eq!(counters.drop_reasons().collect::<Vec<_>>(), [(Reason::InterfaceDown, 2)]);
    assert_eq!(outside.reclaim(), 4);
}

/// A port whose link fails when the worker sends by it, if it is to fail.
struct FailingPort<'a> {
    port: MemoryPort<'a>,
    links: Arc<NotedLinks>,
    fails: bool,
}

impl<'a> Port<'a> for FailingPort<'a> {
    fn receive(&mut self, burst: &mut Burst<'a>, limit: usize) -> Result<usize, PortError> {
        self.port.receive(burst, limit)
    }

    fn transmit(&mut self, burst: &mut Burst<'a>) -> Result<usize, PortError> {
        if !self.fails {
            return self.port.transmit(burst);
        }
        self.links.note(u32::from(burst[0].port) + 1, true);
        Err(PortError::Down { interface: "failing".into() })
    }

    fn reclaim(&mut self, free: &mut Burst<'a>) -> usize {
        self.port.reclaim(free)
    }

    fn recycle(&mut self, free: &mut Burst<'a>) -> usize {
        self.port.recycle(free)
    }

    fn refused(&self) -> u64 {
        self.port.refused()
    }

    fn is_finished(&self) -> bool {
        self.port.is_finished()
    }

    fn overruns(&mut self) -> Result<u64, PortError> {
        self.port.overruns()
    }

    fn losses(&mut self) -> PortLosses {
        self.port.losses()
    }

    fn has_unsent(&mut self) -> bool {
        self.port.has_unsent()
    }
}

/// 10.2.0.0/16 is by ports 1 and 2, the latter with a tag.
fn parts_with_group() -> ViewParts {
    let (mut next_hops, mut groups, mut rib) =
        (NextHops::default(), Groups::default(), Rib::<u32>::default());
    (0..2).for_each(|number| drop(next_hops.intern(Target::Number(number))));
    let members = [1, 2].map(|hop| Member { next_hop: NextHop(hop), weight: 1 });
    let group = groups.acquire(&mut next_hops, &members).unwrap();
    groups.publish();
    rib.announce("10.2.0.0/16".parse().unwrap(), group);
    for hop in [1, 2] {
        rib.announce(format!("10.0.{hop}.0/24").parse().unwrap(), NextHop(hop));
    }
    let mut adjacencies = Adjacencies::new();
    for interface in [1, 2] {
        let mac = Mac([4, 0, 0, 0, 0, interface as u8]);
        adjacencies.set(NextHop(interface), Adjacency::Neighbor { interface, mac });
    }
    let mut interfaces: Vec<_> = (0..3).map(|port| Interface::new(port, OURS)).collect();
    interfaces[2].vlan = Some(7);
    let inet6 = Linear.compile(&Rib::<u128>::default()).unwrap().fib();
    let tables = TableReaders::fixed(Linear.compile(&rib).unwrap().fib(), inet6);
    ViewParts { groups: groups.shared_reader(), ..ViewParts::new(interfaces, adjacencies, tables) }
}

/// A router with these parts, and a port whose link fails.
fn failing_router<'a>(
    parts: ViewParts,
    failing: u16,
    arena: &'a mut Arena,
) -> (Worker<'a, FailingPort<'a>, DropAll, Yield>, Outside<'a>) {
    let (inside, ports) = cables(3, 2 * BURST);
    let links = Arc::<NotedLinks>::default();
    let inside = (0..).zip(inside).map(|(number, port)| {
        port.map(|port| FailingPort { port, links: Arc::clone(&links), fails: number == failing })
    });
    let mut forwarder = Forwarder::new(ViewReader::fixed(View::new(parts).unwrap()));
    forwarder.watch_links(Arc::clone(&links), &[1, 2, 3]);
    let outside = Outside { ports, free: arena.packets().collect() };
    (Worker::new(forwarder, inside.collect(), std::iter::empty(), DropAll, Yield), outside)
}

/// A frame that has left by a port of that router.
fn forwarded(destination: [u8; 4], port: u8) -> Vec<u8> {
    let mut bytes = frame(destination, 8);
    bytes[..12].copy_from_slice(&[4, 0, 0, 0, 0, port, 2, 0, 0, 0, 0, 1]);
    if port == 2 {
        bytes.splice(12..12, [0x81, 0, 0, 7]);
    }
    bytes
}

#[test]
fn what_a_failed_link_did_not_take_leaves_by_another_one_of_its_group() {
    for (failed, other) in [(1, 2), (2, 1)] {
        let mut arena = Arena::new(200);
        let (mut worker, mut outside) = failing_router(parts_with_group(), failed, &mut arena);
        let flows: Vec<_> = (0..100).map(|host| [10, 2, 0, host]).chain([[10, 0, 1, 1]]).collect();
        outside.send(0, &flows.iter().map(|flow| frame(*flow, 9)).collect::<Vec<_>>());
        worker.round().unwrap();
        let mut arrived = outside.receive(other);
        arrived.sort();
        let mut expected: Vec<_> = flows.iter().map(|flow| forwarded(*flow, other as u8)).collect();
        // The last one has no other way.
        let lost = if failed == 1 { expected.pop() } else { None };
        expected.sort();
        assert_eq!(arrived, expected);
        let counters = worker.published().counters();
        let sent = [1, 2].map(|interface| counters.interfaces[interface].sent);
        let bytes = arrived.iter().map(|frame| frame.len() as u64).sum();
        assert_eq!(sent[other - 1], Traffic { packets: arrived.len() as u64, bytes });
        assert_eq!(
            (sent[usize::from(failed) - 1], counters.dropped()),
            (Traffic::default(), lost.iter().count() as u64)
        );
        (0..2).for_each(|_| _ = worker.round().unwrap());
        assert_eq!(outside.reclaim(), 200, "every slot is back");
    }
}

#[test]
fn what_a_failed_link_did_not_take_is_counted_at_the_port_that_has_no_room_for_it() {
    let mut arena = Arena::new(3 * BURST + 100);
    let (mut worker, mut outside) = failing_router(parts_with_group(), 1, &mut arena);
    for _ in 0..3 {
        outside.send(0, &vec![frame([10, 0, 2, 1], 9); BURST]);
        worker.round().unwrap();
    }
    let to_group: Vec<_> = (0..100).map(|host| frame([10, 2, 0, host], 9)).collect();
    outside.send(0, &to_group);
    worker.round().unwrap();
    let counters = worker.published().counters();
    assert_eq!(counters.drop_reasons().collect::<Vec<_>>(), [(Reason::EgressFull, 100)]);
    assert_eq!(counters.interface_drops[2][Reason::EgressFull.index()], 100);
    let sent = [1, 2].map(|interface| counters.interfaces[interface].sent.packets);
    assert_eq!(sent, [0, 2 * BURST as u64]);
}

/// A packet does not show which rule or leak chose the table of its route.
#[test]
fn what_a_failed_link_did_not_take_is_dropped_where_packets_are_looked_up_in_several_ways() {
    let (mut with_rules, mut with_tables) = (parts_with_group(), parts_with_group());
    let rule = PolicyRule {
        priority: 1,
        source: None,
        destination: None,
        transport: RuleTransport::default(),
        inverted: false,
        action: PolicyAction::LookUp(0),
    };
    with_rules.interfaces[0].rules.inet = [rule].into();
    with_tables.tables.extend(with_tables.tables.clone());
    for parts in [with_rules, with_tables] {
        let mut arena = Arena::new(100);
        let (mut worker, mut outside) = failing_router(parts, 1, &mut arena);
        let frames: Vec<_> = (0..100).map(|host| frame([10, 2, 0, host], 9)).collect();
        outside.send(0, &frames);
        worker.round().unwrap();
        let (arrived, counters) = (outside.receive(2).len() as u64, worker.published().counters());
        let dropped = counters.interface_drops[1][Reason::InterfaceDown.index()];
        assert!(arrived > 0 && dropped > 0, "{arrived} arrived, {dropped} were dropped");
        assert_eq!((arrived + dropped, counters.dropped()), (100, dropped));
    }
}

#[test]
fn what_the_slow_path_sends_to_a_missing_port_is_not_counted() {
    let mut arena = Arena::new(4 * BURST);
    let slow = Talkative { waits: false, sent: 0 };
    let mut worker = Worker::new(forwarder(2), vec![source(0, 1, 0), None], arena.packets(), slow, Yield);
    worker.round().unwrap();
    assert_eq!((worker.slow().sent, worker.published().counters()), (1, Counters::new(2)));
}

#[test]
fn frames_that_a_port_dropped_are_counted_at_its_interface() {
    let losses = PortLosses { too_long: 1, several: 2, damaged: 3, stale: 4, unsendable: 5, dropped: 6 };
    let port = source(1, 0, 0).map(|port| Source { losses, overruns: 0, ..port });
    let mut worker =
        Worker::new(forwarder(2), vec![source(0, 1, 0), port], std::iter::empty(), DropAll, Yield);
    worker.run(&AtomicBool::new(false)).unwrap();
    let counters = worker.published().counters();
    assert_eq!(counters.interface_drops[1], counters.drops);
    let reasons = counters.drop_reasons().map(|(reason, count)| (reason.name(), count));
    let expected =
        ["frame_too_long", "several_packets", "frame_damaged", "stale", "unsendable", "dropped_by_kernel"];
    assert_eq!(reasons.collect::<Vec<_>>(), expected.into_iter().zip(1..).collect::<Vec<_>>());
}

#[test]
fn after_a_silence_frames_of_unknown_age_are_dropped_and_later_ones_are_sent() {
    // More than the port has slots.
    const OLD: usize = 3 * BURST + 3;
    const NEW: usize = BURST + 5;
    let mut arena = Arena::new(4 * BURST);
    let port = source(0, 1, OLD + NEW).map(|port| Source { undated: OLD, ..port });
    let mut worker = Worker::new(forwarder(2), vec![port, source(1, 0, 0)], arena.packets(), DropAll, Yield);
    thread::sleep(SILENCE);
    for _ in 0..2 {
        worker.round().unwrap();
    }
    let counters = worker.published().counters();
    assert_eq!(counters.interface_drops[0][Reason::Stale.index()], OLD as u64);
    assert_eq!((counters.dropped(), counters.interfaces[1].sent.packets), (OLD as u64, NEW as u64));
    let (ports, packets) = worker.into_parts();
    let in_ports = ports.iter().flatten().map(|port| port.free.len() + port.sent.len());
    assert_eq!(in_ports.sum::<usize>() + packets.len(), 4 * BURST);
}

/// The thread is stopped in a round, before it receives.
#[test]
fn frames_that_came_in_while_a_worker_was_silent_within_a_round_are_dropped() {
    const OLD: usize = BURST + 3;
    let mut arena = Arena::new(4 * BURST);
    let port = source(0, 1, OLD + 7).map(|port| Source { silence: SILENCE, undated: OLD, ..port });
    let mut worker = Worker::new(forwarder(2), vec![port, source(1, 0, 0)], arena.packets(), DropAll, Yield);
    (0..3).for_each(|_| _ = worker.round().unwrap());
    let counters = worker.published().counters();
    assert_eq!(counters.interface_drops[0][Reason::Stale.index()], OLD as u64);
    assert_eq!((counters.dropped(), counters.interfaces[1].sent.packets), (OLD as u64, 7));
    let (ports, packets) = worker.into_parts();
    let in_ports = ports.iter().flatten().map(|port| port.free.len() + port.sent.len());
    assert_eq!(in_ports.sum::<usize>() + packets.len(), 4 * BURST);
}

/// After this time a thread is taken for one that was stopped.
const SILENCE: Duration = Duration::from_millis(1100);

/// A port that fills every slot with the same frame, and frees the slots it sends.
struct Source<'a> {
    number: u16,
    frame: Vec<u8>,
    free: Vec<&'a mut fullview_plane::burst::Slot>,
    sent: Vec<&'a mut fullview_plane::burst::Slot>,
    left: usize,
    /// Frames of those that are left, of which the first came in long ago.
    undated: usize,
    /// How long the next call that receives takes.
    silence: Duration,
    overruns: u64,
    /// The most packets that one call sends.
    room: usize,
    losses: PortLosses,
    /// Whether each call that receives packets reports that the link is down, too.
    is_down: bool,
    /// Packets that it sends before its link goes down.
    until_down: usize,
}

impl Source<'_> {
    fn unless(&self, is_down: bool, count: usize) -> Result<usize, PortError> {
        let down = PortError::Down { interface: format!("port {}", self.number) };
        if is_down { Err(down) } else { Ok(count) }
    }
}

impl<'a> Port<'a> for Source<'a> {
    fn receive(&mut self, burst: &mut Burst<'a>, limit: usize) -> Result<usize, PortError> {
        thread::sleep(std::mem::take(&mut self.silence));
        let count = limit.min(burst.room()).min(self.free.len()).min(self.left);
        self.undated = self.undated.saturating_sub(count);
        let first = self.free.len() - count;
        for packet in self.free.drain(first..) {
            packet.set_frame(&self.frame);
            packet.port = self.number;
            burst.fill([packet].into_iter());
        }
        self.left -= count;
        self.unless(self.is_down, count)
    }

    fn transmit(&mut self, burst: &mut Burst<'a>) -> Result<usize, PortError> {
        let count = burst.len().min(self.room).min(self.until_down);
        self.sent.extend(burst.drain_front(count));
        self.until_down -= count;
        self.unless(self.until_down == 0, count)
    }

    fn reclaim(&mut self, free: &mut Burst<'a>) -> usize {
        let count = free.room().min(self.sent.len());
        free.fill(self.sent.drain(..count));
        count
    }

    fn recycle(&mut self, free: &mut Burst<'a>) -> usize {
        let count = free.len().min((2 * BURST).saturating_sub(self.free.len()));
        self.free.extend(free.drain_front(count));
        count
    }

    fn overruns(&mut self) -> Result<u64, PortError> {
        Ok(std::mem::take(&mut self.overruns))
    }

    fn refused(&self) -> u64 {
        0
    }

    fn is_finished(&self) -> bool {
        self.left == 0
    }

    fn losses(&mut self) -> PortLosses {
        std::mem::take(&mut self.losses)
    }

    fn undated(&mut self) -> usize {
        self.undated
    }

    fn has_unsent(&mut self) -> bool {
        false
    }
}

fn source<'a>(number: u16, to: u8, left: usize) -> Option<Source<'a>> {
    let frame = frame([10, 0, to, 1], 64);
    Some(Source {
        number,
        frame,
        free: Vec::new(),
        sent: Vec::new(),
        left,
        undated: 0,
        silence: Duration::ZERO,
        overruns: number.into(),
        room: usize::MAX,
        losses: PortLosses::default(),
        is_down: false,
        until_down: usize::MAX,
    })
}

/// Has packets of its own to send by port 1, each for as long as the port has no room.
struct Talkative {
    waits: bool,
    sent: usize,
}

impl SlowPath for Talkative {
    fn take(&mut self, rejected: Rejected<'_, '_>) {
        let Some(packet) = rejected.free.pop() else { return };
        packet.verdict = Verdict::Punt(Punt::Local);
        let refused = rejected.out[1].push(packet).err();
        self.waits = refused.is_some();
        self.sent += usize::from(refused.is_none());
        rejected.free.fill(refused.into_iter());
    }

    fn has_pending(&self) -> bool {
        self.waits
    }
}

#[test]
fn what_the_slow_path_sends_gets_room_at_a_port_that_is_always_full() {
    let mut arena = Arena::new(8 * BURST);
    let slow_port = source(1, 0, 0).map(|port| Source { room: 10, ..port });
    let ports = vec![source(0, 1, 50_000), slow_port];
    let slow = Talkative { waits: false, sent: 0 };
    let mut worker = Worker::new(forwarder(2), ports, arena.packets(), slow, Yield);
    for _ in 0..100 {
        assert!(worker.round().unwrap() > 10, "the load goes on");
    }
    assert!(worker.slow().sent > 40, "{} packets", worker.slow().sent);
}

/// Both ports receive more packets than there are slots, so that every slot has to return to its port.
#[test]
fn busy_ports_do_not_take_each_others_slots() {
    let mut arena = Arena::new(2 * BURST);
    let ports = vec![source(0, 1, 5_000), source(1, 0, 50_000)];
    let mut worker = Worker::new(forwarder(2), ports, arena.packets(), DropAll, Yield);
    worker.run(&AtomicBool::new(false)).unwrap();
    let counters = worker.published().counters();
    assert_eq!(counters.interfaces.iter().map(|seen| seen.sent.packets).collect::<Vec<_>>(), [50_000, 5_000]);
    assert_eq!((counters.dropped(), worker.published().worker().idle_rounds), (0, 0));
    assert_eq!(counters.interfaces.iter().map(|seen| seen.overruns).collect::<Vec<_>>(), [0, 1]);
}

/// The others go on, what the port had received is forwarded, and each slot comes back.
#[test]
fn a_port_is_taken_out_and_another_one_put_in_its_place() {
    let (mut arena, mut more) = (Arena::new(3 * BURST), Arena::new(BURST));
    let ports = vec![source(0, 1, 100_000), source(1, 0, 0), source(2, 1, BURST + 10)];
    let mut worker = Worker::new(forwarder(3), ports, arena.packets(), DropAll, Yield);
    let (taken, due) = worker.take_port(2).unwrap();
    let held = taken.map_or(0, |port| port.free.len() + port.sent.len()) + due.len();
    let published = worker.published();
    let received =
        || published.counters().interfaces.iter().map(|seen| seen.received.packets).collect::<Vec<_>>();
    worker.round().unwrap();
    assert_eq!(received(), [BURST as u64, 0, BURST as u64 + 10]);
    assert!(held <= BURST && held + worker.take_packets(BURST - held).len() == BURST, "{held}");
    let given: Vec<_> = more.packets().collect();
    worker.put_port(2, source(2, 0, 20).unwrap(), given);
    (0..3).for_each(|_| assert!(worker.round().unwrap() >= BURST));
    assert_eq!(received()[2], BURST as u64 + 30);
    let (ports, packets) = worker.into_parts();
    let held: usize = ports.iter().flatten().map(|port| port.free.len() + port.sent.len()).sum();
    assert_eq!(held + packets.len(), 3 * BURST);
}

/// A port whose link goes down under load reports that with the packets that it received before.
#[test]
fn packets_that_a_port_received_before_its_link_went_down_are_forwarded() {
    let mut arena = Arena::new(4 * BURST);
    let failing = source(0, 1, 1_000).map(|port| Source { is_down: true, ..port });
    let ports = vec![failing, source(1, 0, 0)];
    let mut worker = Worker::new(forwarder(2), ports, arena.packets(), DropAll, Yield);
    let rounds: Vec<_> = (0..5).map(|_| worker.round().unwrap()).collect();
    assert_eq!(rounds, [BURST, BURST, BURST, 1_000 - 3 * BURST, 0]);
    assert_eq!(worker.published().counters().interfaces[1].sent.packets, 1_000);
    let (ports, packets) = worker.into_parts();
    let held: usize = ports.iter().flatten().map(|port| port.free.len() + port.sent.len()).sum();
    assert_eq!(held + packets.len(), 4 * BURST);
}

#[test]
fn a_worker_receives_no_more_at_once_than_it_may() {
    let mut arena = Arena::new(4 * BURST);
    let ports = vec![source(0, 1, 100), source(1, 0, 0)];
    let mut worker = Worker::new(forwarder(2), ports, arena.packets(), DropAll, Yield);
    worker.receive_at_most(32);
    let rounds: Vec<_> = (0..5).map(|_| worker.round().unwrap()).collect();
    assert_eq!(rounds, [32, 32, 32, 4, 0]);
    assert_eq!(worker.published().counters().interfaces[1].sent.packets, 100);
}

/// A packet that waits for room is counted when it is sent, or dropped because the link went down.
#[test]
fn no_counter_decreases_when_a_link_goes_down_while_packets_wait_for_it() {
    let mut arena = Arena::new(4 * BURST);
    let failing = source(1, 0, 0).map(|port| Source { room: 10, until_down: 35, ..port });
    let ports = vec![source(0, 1, 300), failing];
    let mut worker = Worker::new(forwarder(2), ports, arena.packets(), DropAll, Yield);
    let published = worker.published();
    let sent: Vec<_> = (0..6)
        .map(|_| {
            worker.round().unwrap();
            published.counters().interfaces[1].sent
        })
        .collect();
    let expected = [10, 20, 30, 35, 35, 35].map(|packets| Traffic { packets, bytes: 60 * packets });
    assert_eq!(sent, expected);
    let reasons: Vec<_> = published.counters().drop_reasons().collect();
    assert_eq!(reasons, [(Reason::InterfaceDown, 300 - 34 - 35), (Reason::EgressFull, 34)]);
}

/// Where a kernel writes into slots, frames that arrive before the first round would find none.
#[test]
fn ports_have_their_slots_before_the_first_round() {
    let mut arena = Arena::new(BURST);
    let ports = vec![source(0, 1, 0), source(1, 0, 0)];
    let worker = Worker::new(forwarder(2), ports, arena.packets(), DropAll, Yield);
    let (ports, packets) = worker.into_parts();
    let held: Vec<usize> = ports.iter().flatten().map(|port| port.free.len()).collect();
    assert_eq!((held, packets.len()), (vec![BURST / 2; 2], 0));
}

#[test]
fn packets_that_wait_for_a_full_port_are_reported() {
    let mut arena = Arena::new(4);
    let (first, near) = pair([0, 0], 4);
    let (second, far) = pair([1, 1], 1);
    let mut outside = Outside { ports: vec![near, far], free: arena.packets().collect() };
    let ports = vec![Some(first), Some(second)];
    let mut worker = Worker::new(forwarder(2), ports, std::iter::empty(), DropAll, Yield);
    outside.send(0, &[frame([10, 0, 1, 1], 9), frame([10, 0, 1, 2], 9)]);
    assert_eq!((worker.round().unwrap(), worker.has_unsent()), (2, true));
    assert_eq!(outside.receive(1).len(), 1);
    worker.round().unwrap();
    assert_eq!((outside.receive(1).len(), worker.has_unsent()), (1, false));
}

/// Stops the worker at each third wait.
struct StopAt<'s>(&'s AtomicBool, u32);

impl<P> Wait<P> for StopAt<'_> {
    fn wait(&mut self, ports: &[Option<P>]) {
        assert_eq!(ports.len(), 1);
        self.1 += 1;
        self.0.store(self.1.is_multiple_of(3), Ordering::Relaxed);
    }
}

#[test]
fn an_idle_worker_waits_until_it_is_stopped() {
    let stop = AtomicBool::new(false);
    let (inside, _outside) = cables(1, 2 * BURST);
    let wait = StopAt(&stop, 0);
    let mut worker = Worker::new(forwarder(1), inside, std::iter::empty(), DropAll, wait);
    worker.run(&stop).unwrap();
    let counters = worker.published().worker();
    assert!(counters.rounds > 3 && counters.rounds == counters.idle_rounds);
}

/// A worker's view, and the writer's halves of the groups and the IPv4 FIB in it.
struct Published {
    views: Views,
    groups: Groups,
    inet: Attachment<u32>,
}

/// What a worker holds of one moment.
type Held = (Weak<View>, Weak<GroupView>, Weak<dyn Fib<u32>>);

impl Published {
    fn new() -> Published {
        let mut inet = Attachment::new(Time::ZERO, 0, u32::ALGORITHMS.into(), Arc::default());
        inet.force(Time::ZERO, &Rib::default(), "linear").unwrap();
        let groups = Groups::default();
        let views = Views::new(Published::view(&groups, &inet));
        Published { views, groups, inet }
    }

    fn view(groups: &Groups, inet: &Attachment<u32>) -> View {
        let inet6 = SharedReader::fixed(Linear.compile(&Rib::<u128>::default()).unwrap().fib());
        let tables = TableReaders { inet: inet.shared_reader(), inet6 };
        let parts = ViewParts::new(vec![Interface::new(0, OURS)], Adjacencies::new(), tables);
        View::new(ViewParts { groups: groups.shared_reader(), ..parts }).unwrap()
    }

    fn held(&self) -> Held {
        let groups = self.groups.shared_reader().current();
        (Arc::downgrade(&self.views.current()), Arc::downgrade(&groups), Arc::downgrade(&self.inet.fib()))
    }

    /// Replaces groups and FIB, and the view too if that is asked for.
    fn replace(&mut self, has_new_view: bool, algorithm: &str) {
        self.groups.publish();
        self.inet.force(Time::ZERO, &Rib::default(), algorithm).unwrap();
        if has_new_view {
            self.views.publish(Published::view(&self.groups, &self.inet));
        }
    }
}

/// Whether view, groups and FIB still exist.
fn exist((view, groups, fib): &Held) -> [bool; 3] {
    [view.strong_count() > 0, groups.strong_count() > 0, fib.strong_count() > 0]
}

/// The writer uses next-hop indices and memory again when no worker has what was replaced.
#[test]
fn a_worker_without_packets_lets_go_of_what_was_replaced() {
    let mut published = Published::new();
    let forwarder = Forwarder::new(published.views.reader());
    let stop = AtomicBool::new(false);
    let (inside, _outside) = cables(1, 2 * BURST);
    let mut worker = Worker::new(forwarder, inside, std::iter::empty(), DropAll, StopAt(&stop, 0));
    for (has_new_view, algorithm) in [(false, "bsearch4"), (true, "linear")] {
        let held = published.held();
        published.replace(has_new_view, algorithm);
        assert_eq!(exist(&held), [true; 3]);
        stop.store(false, Ordering::Relaxed);
        worker.run(&stop).unwrap();
        assert_eq!(exist(&held), [!has_new_view, false, false]);
    }
}

/// Such as one whose packets are all of known flows, which need no lookup.
#[test]
fn a_worker_that_never_waits_lets_go_of_what_was_replaced() {
    let mut published = Published::new();
    let forwarder = Forwarder::new(published.views.reader());
    let (inside, _outside) = cables(1, 2 * BURST);
    let mut worker = Worker::new(forwarder, inside, std::iter::empty(), DropAll, Yield);
    let held = published.held();
    published.replace(true, "bsearch4");
    (0..10_000).for_each(|_| assert_eq!(worker.round().unwrap(), 0));
    assert_eq!(exist(&held), [false; 3]);
}

/// Reads the counters of two running workers, which never decrease.
#[test]
fn workers_share_nothing_and_are_read_without_a_lock() {
    const PACKETS: usize = 100_000;
    let work = || {
        let mut arena = Arena::new(BURST);
        let ports = vec![source(0, 1, PACKETS), source(1, 0, PACKETS)];
        let mut worker = Worker::new(forwarder(2), ports, arena.packets(), DropAll, Yield);
        let published = worker.published();
        thread::scope(|scope| {
            let reading = scope.spawn(move || {
                let mut last = 0;
                while last < 2 * PACKETS as u64 {
                    let now = published.counters().sent().packets;
                    assert!(now >= last);
                    last = now;
                    thread::yield_now();
                }
            });
            worker.run(&AtomicBool::new(false)).unwrap();
            worker.round().unwrap();
            reading.join().unwrap();
        });
    };
    thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(work))));
}

#[test]
fn frames_reach_the_wire_rewritten() {
    let mut arena = Arena::new(2);
    let (inside, ports) = cables(2, 2 * BURST);
    let mut outside = Outside { ports, free: arena.packets().collect() };
    let mut worker = Worker::new(forwarder(2), inside, std::iter::empty(), DropAll, Yield);
    outside.send(0, &[frame([10, 0, 1, 1], 9)]);
    worker.round().unwrap();
    let out = outside.receive(1).remove(0);
    assert_eq!((&out[..6], &out[6..12], out[ETHERNET + 8]), (&[4; 6][..], &OURS.0[..], 8));
}
