//! The queues between several workers and their common host stack.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fullview_plane::burst::{Arena, Burst};
use fullview_plane::interface::{Interface, InterfaceAddress};
use fullview_plane::verdict::{Punt, Reason, RejectAnswer, Verdict};
use fullview_plane::view::{TableReaders, View, ViewParts};
use fullview_plane::wire::arp::{ArpOperation, ArpPacket};
use fullview_plane::wire::ethernet::{EtherType, Mac};
use fullview_plane::worker::{Rejected, SlowPath};
use fullview_router::host::channel::{HostEndpoint, HostEvent, Wake, WorkerEndpoint, channel};
use fullview_router::host::config::{HostSettings, NeighborSettings, StaticNeighbor};
use fullview_router::host::next_hop::HostAction;
use fullview_router::host::output::{OutFrame, Output};
use fullview_router::host::view_resolver::{NeighborChange, ViewResolver};
use fullview_router::host::{HostStack, NeighborId};
use fullview_router::route::{NextHopVia, RouteAction};
use fullview_table::fib::{Algorithm, linear::Linear};
use fullview_table::{Address, NextHop, Prefix, Rib};

use crate::support::inet;

const ROUTER: Mac = Mac([2, 0, 0, 0, 0, 1]);
const STATION: Mac = Mac([2, 0, 0, 0, 0, 9]);
const NOW: Duration = Duration::from_secs(1);

fn endpoints(workers: usize) -> (HostEndpoint, Vec<WorkerEndpoint>, Arc<AtomicU32>) {
    let wakeups = Arc::<AtomicU32>::default();
    let counter = Arc::clone(&wakeups);
    let wake: Wake = Arc::new(move || _ = counter.fetch_add(1, Ordering::Relaxed));
    let (host, workers) = channel(workers, &wake);
    (host, workers, wakeups)
}

fn view(addresses: &[&str]) -> Arc<View> {
    view_with(addresses, true)
}

/// Next hop 1 is the router itself, next hop 2 the link.
fn view_with(addresses: &[&str], up: bool) -> Arc<View> {
    let mut rib = Rib::<u32>::default();
    rib.announce("192.0.2.0/24".parse::<Prefix<u32>>().unwrap(), NextHop(2));
    rib.announce("192.0.2.1/32".parse::<Prefix<u32>>().unwrap(), NextHop(1));
    let inet = Linear.compile(&rib).unwrap().fib();
    let inet6 = Linear.compile(&Rib::<u128>::default()).unwrap().fib();
    let own = |ip: &&str| InterfaceAddress { ip: ip.parse().unwrap(), len: 24 };
    let addresses = addresses.iter().map(own).collect();
    let interface = Interface { addresses, up, ..Interface::new(0, ROUTER) };
    let parts = ViewParts::new(vec![interface], Default::default(), TableReaders::fixed(inet, inet6));
    Arc::new(View::new(parts).unwrap())
}

fn actions() -> Vec<Option<HostAction>> {
    let link = NextHopVia { link: 0, neighbor: None };
    vec![None, Some(RouteAction::Local), Some(RouteAction::Forward(link))]
}

fn host(addresses: &[&str]) -> (HostStack<ViewResolver>, Output) {
    let mut host = HostStack::mirrored(ViewResolver::new(view(&[]), actions()), &HostSettings::default());
    let mut output = Output::default();
    host.follow(Duration::ZERO, view(addresses), actions(), &mut output);
    (host, output)
}

/// Makes a worker reject frames with these verdicts. Returns the frames that it transmits.
fn reject(worker: &mut WorkerEndpoint, frames: &[(Vec<u8>, Verdict)]) -> Vec<Vec<u8>> {
    let view = view(&[]);
    let mut arena = Arena::new(frames.len() + 4);
    let (mut packets, mut free, mut out) = (Burst::new(), Burst::new(), [Burst::new()]);
    free.fill(arena.packets());
    for (frame, verdict) in frames {
        let slot = free.pop().unwrap();
        assert!(slot.set_frame(frame));
        (slot.verdict, slot.interface, slot.port) = (*verdict, 0, 0);
        packets.fill([slot].into_iter());
    }
    let (packets, free) = (&mut packets, &mut free);
    worker.take(Rejected { view: &view, packets, filter: None, redirects: &[], out: &mut out, free });
    out[0].iter().map(|packet| packet.frame().to_vec()).collect()
}

fn request() -> Vec<u8> {
    let message = ArpPacket {
        operation: ArpOperation::Request,
        sender_mac: STATION,
        sender: u32::from_ip([192, 0, 2, 9].into()),
        target_mac: Mac::default(),
        target: u32::from_ip([192, 0, 2, 1].into()),
    };
    [&Mac::BROADCAST.0[..], &STATION.0, &EtherType::ARP.0.to_be_bytes(), &message.bytes()].concat()
}

#[test]
fn the_first_worker_transmits_the_answers_to_all() {
    let (mut end, mut workers, wakeups) = endpoints(2);
    let (mut host, announced) = host(&["192.0.2.1"]);
    assert_eq!(announced.frames.len(), 1, "a new address is announced");
    let arp = (request(), Verdict::Punt(Punt::Arp));
    assert!(reject(&mut workers[1], &[arp]).is_empty());
    assert_eq!(wakeups.load(Ordering::Relaxed), 1);
    let mut output = Output::default();
    let event = end.next_event().unwrap();
    host.handle_event(NOW, &event, &mut output);
    assert!(end.next_event().is_none() && !end.has_events());
    let learned = (neighbor(9), STATION);
    assert_eq!(host.take_neighbor_changes(), [NeighborChange::Resolved(learned.0, learned.1)]);
    assert_eq!(host.resolved_neighbors().collect::<Vec<_>>(), [learned]);
    assert!(end.send(&mut output));
    assert!(reject(&mut workers[1], &[]).is_empty(), "the second worker does not transmit");
    let [answer] = &reject(&mut workers[0], &[])[..] else { panic!("one answer") };
    assert!(answer.starts_with(&[STATION.0, ROUTER.0].concat()), "{answer:?}");
    assert!(!end.send(&mut output), "no frames are left");
}

#[test]
fn only_packets_that_the_host_stack_handles_are_sent() {
    let (mut end, mut workers, wakeups) = endpoints(1);
    let silent = [
        Verdict::Drop(Reason::Blackhole),
        Verdict::Drop(Reason::Checksum),
        Verdict::Punt(Punt::NotIp),
        Verdict::Punt(Punt::Multicast),
    ];
    reject(&mut workers[0], &silent.map(|verdict| (request(), verdict)));
    assert!(end.next_event().is_none() && wakeups.load(Ordering::Relaxed) == 0);
    let handled =
        [Verdict::Drop(Reason::TtlExpired), Verdict::Punt(Punt::Glean), Verdict::Reject(RejectAnswer::RESET)];
    reject(&mut workers[0], &handled.map(|verdict| (request(), verdict)));
    let events = std::iter::from_fn(|| end.next_event());
    let verdicts: Vec<_> = events
        .map(|event| match event {
            HostEvent::Packet { verdict, frame, .. } if frame.frame() == request() => verdict,
            _ => panic!("another packet"),
        })
        .collect();
    assert_eq!(verdicts, handled);
}

#[test]
fn workers_take_turns_and_overflow_is_counted() {
    let (mut end, mut workers, _) = endpoints(2);
    let many: Vec<_> = (0..100).map(|_| (request(), Verdict::Punt(Punt::Arp))).collect();
    for _ in 0..3 {
        reject(&mut workers[0], &many);
    }
    reject(&mut workers[1], &many[..1]);
    let first: Vec<_> = (0..2).map(|_| end.next_event().unwrap()).collect();
    assert_eq!((first.len(), end.dropped()), (2, 300 - 256));
    let rest = std::iter::from_fn(|| end.next_event()).count();
    assert_eq!(rest, 256 + 1 - 2);
    let frame = OutFrame { port: 0, bytes: request() };
    let mut output = Output { frames: vec![frame; 1500] };
    assert!(end.send(&mut output) && output.frames.is_empty());
    assert_eq!(end.dropped(), 300 - 256 + 1500 - 1024);
}

#[test]
fn frames_that_a_worker_drops_are_counted() {
    let (mut end, mut workers, _) = endpoints(1);
    end.send(&mut Output { frames: vec![OutFrame { port: 9, bytes: request() }] });
    assert!(reject(&mut workers[0], &[]).is_empty());
    assert_eq!(end.dropped(), 1, "there is no such port");
}

/// A neighbour advertisement to the router, as far as a worker looks at it.
fn advertisement() -> Vec<u8> {
    const ICMPV6: u8 = 58;
    let mut bytes = [&ROUTER.0[..], &STATION.0, &EtherType::IPV6.0.to_be_bytes(), &[0; 64]].concat();
    bytes[14..22].copy_from_slice(&[0x60, 0, 0, 0, 0, 24, ICMPV6, 255]);
    bytes
}

/// Makes a worker reject far more packets than wait for the host stack.
fn flood(worker: &mut WorkerEndpoint, verdict: Verdict) {
    let many: Vec<_> = (0..60).map(|_| (request(), verdict)).collect();
    (0..10).for_each(|_| _ = reject(worker, &many));
}

#[test]
fn floods_do_not_keep_more_important_packets_from_the_host_stack() {
    let (mut end, mut workers, _) = endpoints(1);
    let worker = &mut workers[0];
    let mut first_after = |worker: &mut WorkerEndpoint, frame: Vec<u8>, verdict: Verdict| {
        reject(worker, &[(frame, verdict)]);
        match end.next_event() {
            Some(HostEvent::Packet { verdict, frame, .. }) => (verdict, frame.frame().to_vec()),
            _ => panic!("no packet"),
        }
    };
    let (arp, local) = (Verdict::Punt(Punt::Arp), Verdict::Punt(Punt::Local));
    flood(worker, Verdict::Punt(Punt::Glean));
    flood(worker, Verdict::Drop(Reason::TtlExpired));
    assert_eq!(first_after(worker, request(), local), (local, request()), "a packet to the router");
    flood(worker, local);
    assert_eq!(first_after(worker, request(), arp), (arp, request()));
    assert_eq!(first_after(worker, advertisement(), local), (local, advertisement()));
}

#[test]
fn a_flood_of_requests_leaves_turns_for_other_packets() {
    let (mut end, mut workers, _) = endpoints(1);
    let [arp, local, glean] = [Punt::Arp, Punt::Local, Punt::Glean].map(Verdict::Punt);
    [arp, local, glean].into_iter().for_each(|verdict| flood(&mut workers[0], verdict));
    let mut taken = [0; 3];
    for event in std::iter::from_fn(|| end.next_event()).take(256) {
        let HostEvent::Packet { verdict, .. } = event else { panic!("another event") };
        let class = [arp, local, glean].iter().position(|of| *of == verdict).unwrap();
        taken[class] += 1;
    }
    assert_eq!(taken, [206, 25, 25], "eight or more before one of each");
}

#[test]
fn a_few_packets_are_taken_in_the_order_of_their_importance() {
    let (mut end, mut workers, _) = endpoints(1);
    let verdicts = [Punt::Arp, Punt::Local, Punt::Glean].map(Verdict::Punt);
    for _ in 0..20 {
        verdicts.into_iter().rev().for_each(|verdict| _ = reject(&mut workers[0], &[(request(), verdict)]));
        let of = |event| match event {
            HostEvent::Packet { verdict, .. } => Some(verdict),
            HostEvent::RedirectCandidate(_) => None,
        };
        let taken: Vec<Verdict> = std::iter::from_fn(|| end.next_event()).filter_map(of).collect();
        assert_eq!(taken, verdicts);
    }
}

#[test]
fn a_neighbour_that_makes_room_for_another_is_lost() {
    let (mut end, mut workers, _) = endpoints(1);
    let neighbors = NeighborSettings { capacity: 1, ..NeighborSettings::default() };
    let settings = HostSettings { neighbors, ..HostSettings::default() };
    let mut host = HostStack::mirrored(ViewResolver::new(view(&[]), actions()), &settings);
    let mut output = Output::default();
    host.follow(Duration::ZERO, view(&["192.0.2.1"]), actions(), &mut output);
    let to_another = inet("192.0.2.9", "192.0.2.20", 9);
    reject(
        &mut workers[0],
        &[(request(), Verdict::Punt(Punt::Arp)), (to_another, Verdict::Punt(Punt::Glean))],
    );
    for event in std::iter::from_fn(|| end.next_event()) {
        host.handle_event(NOW, &event, &mut output);
    }
    let changes = [NeighborChange::Resolved(neighbor(9), STATION), NeighborChange::Lost(neighbor(9))];
    assert_eq!(host.take_neighbor_changes(), changes);
}

#[test]
fn the_groups_of_new_addresses_are_reported_twice() {
    let (mut host, _) = host(&["192.0.2.1", "2001:db8::1"]);
    assert_eq!(host.next_deadline(), Some(Duration::ZERO));
    let mut reports = |millis| {
        let mut output = Output::default();
        host.tick(Duration::from_millis(millis), &mut output);
        output.frames.len()
    };
    assert_eq!([0, 1, 1000, 5000].map(&mut reports), [1, 0, 1, 0]);
    host.follow(NOW, view(&["192.0.2.1", "192.0.2.2", "2001:db8::1"]), actions(), &mut Output::default());
    assert_eq!(host.next_deadline(), None, "no group is new");
    host.follow(NOW, view(&["2001:db8::1", "2001:db8::2"]), actions(), &mut Output::default());
    assert_eq!(host.next_deadline(), Some(NOW));
}

fn neighbor(host: u8) -> NeighborId {
    NeighborId { interface: 0, ip: [192, 0, 2, host].into() }
}

fn station(host: u8) -> StaticNeighbor {
    StaticNeighbor { interface: 0, ip: [192, 0, 2, host].into(), mac: STATION }
}

#[test]
fn new_addresses_are_announced_and_removed_neighbours_are_lost() {
    let (mut host, _) = host(&["192.0.2.1"]);
    let mut output = Output::default();
    host.follow(Duration::ZERO, view(&["192.0.2.1", "192.0.2.2"]), actions(), &mut output);
    let [announced] = &output.frames[..] else { panic!("one address is new: {output:?}") };
    let message = ArpPacket::parse(&announced.bytes[14..]).unwrap().unwrap();
    assert_eq!(message.sender, u32::from_ip([192, 0, 2, 2].into()));
    host.set_static_neighbors(NOW, &[station(7), station(8)]);
    host.take_neighbor_changes();
    host.set_static_neighbors(NOW, &[station(8)]);
    let changes = host.take_neighbor_changes();
    assert!(changes.contains(&NeighborChange::Lost(neighbor(7))), "{changes:?}");
    assert_eq!(host.resolved_neighbors().map(|(key, _)| key).collect::<Vec<_>>(), [neighbor(8)]);
}

#[test]
fn neighbours_on_a_link_that_goes_down_are_lost() {
    let (mut end, mut workers, _) = endpoints(1);
    let own = ["192.0.2.1", "192.0.2.2"];
    let (mut host, _) = host(&own);
    let mut output = Output::default();
    host.set_static_neighbors(NOW, &[station(7)]);
    reject(&mut workers[0], &[(request(), Verdict::Punt(Punt::Arp))]);
    host.handle_event(NOW, &end.next_event().unwrap(), &mut output);
    let (kept, learned) = (neighbor(7), neighbor(9));
    assert_eq!(
        host.take_neighbor_changes(),
        [kept, learned].map(|key| NeighborChange::Resolved(key, STATION))
    );

    output.frames.clear();
    host.follow(NOW, view_with(&own, false), actions(), &mut output);
    let changes = host.take_neighbor_changes();
    assert!(
        changes.len() == 2 && [kept, learned].iter().all(|key| changes.contains(&NeighborChange::Lost(*key))),
        "{changes:?}"
    );
    host.set_static_neighbors(NOW, &[station(7), station(8)]);
    assert_eq!((host.take_neighbor_changes(), host.resolved_neighbors().count()), (Vec::new(), 0));
    host.follow(NOW, view_with(&["192.0.2.3"], false), actions(), &mut output);
    assert!(output.frames.is_empty(), "nothing is announced: {output:?}");

    host.follow(NOW, view_with(&own, true), actions(), &mut output);
    let mut known: Vec<_> = host.resolved_neighbors().collect();
    known.sort();
    assert_eq!(
        known,
        [(kept, STATION), (neighbor(8), STATION)],
        "the learned neighbour is resolved again later"
    );
    assert_eq!(host.take_neighbor_changes().len(), 2);
    let announced =
        output.frames.iter().map(|frame| ArpPacket::parse(&frame.bytes[14..]).unwrap().unwrap().sender);
    assert_eq!(announced.collect::<Vec<_>>(), own.map(|ip| u32::from_ip(ip.parse().unwrap())));
}
