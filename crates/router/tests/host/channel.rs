//! Several workers and one host for all of them: what one hands over, and what the other says.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fullview_plane::burst::{Arena, Burst};
use fullview_plane::interface::{Interface, InterfaceAddress};
use fullview_plane::verdict::{Punt, Reason, Verdict};
use fullview_plane::view::{TableReaders, View, ViewParts};
use fullview_plane::wire::arp::{ArpOperation, ArpPacket};
use fullview_plane::wire::ethernet::{EtherType, Mac};
use fullview_plane::worker::{Rejected, SlowPath};
use fullview_router::host::HostStack;
use fullview_router::host::channel::{HostEndpoint, HostEvent, Wake, WorkerEndpoint, channel};
use fullview_router::host::config::{HostSettings, StaticNeighbor};
use fullview_router::host::next_hop::Hop;
use fullview_router::host::output::{OutFrame, Output};
use fullview_router::host::view_resolver::{NeighborChange, ViewResolver};
use fullview_table::fib::{Algorithm, linear::Linear};
use fullview_table::{Address, NextHop, Prefix, Rib};

const ROUTER: Mac = Mac([2, 0, 0, 0, 0, 1]);
const STATION: Mac = Mac([2, 0, 0, 0, 0, 9]);
const NOW: Duration = Duration::from_secs(1);

fn ends(workers: usize) -> (HostEndpoint, Vec<WorkerEndpoint>, Arc<AtomicU32>) {
    let rung = Arc::<AtomicU32>::default();
    let ring = Arc::clone(&rung);
    let wake: Wake = Arc::new(move || _ = ring.fetch_add(1, Ordering::Relaxed));
    let (host, workers) = channel(workers, &wake);
    (host, workers, rung)
}

fn view(addresses: &[&str]) -> Arc<View> {
    view_by(addresses, true)
}

/// Next hop 1 is the router itself, 2 the link.
fn view_by(addresses: &[&str], up: bool) -> Arc<View> {
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

fn hops() -> Vec<Option<Hop>> {
    vec![None, Some(Hop::Own), Some(Hop::Link(0))]
}

fn host(addresses: &[&str]) -> (HostStack<ViewResolver>, Output) {
    let mut host = HostStack::mirrored(ViewResolver::new(view(&[]), hops()), &HostSettings::default());
    let mut output = Output::default();
    host.follow(Duration::ZERO, view(addresses), hops(), &mut output);
    (host, output)
}

/// Has a worker reject frames with these verdicts; what it sends because of that.
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
    worker.take(Rejected { view: &view, packets, redirects: &[], out: &mut out, free });
    out[0].iter().map(|packet| packet.frame().to_vec()).collect()
}

fn question() -> Vec<u8> {
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
fn what_a_worker_rejects_is_answered_by_the_first_of_them() {
    let (mut end, mut workers, rung) = ends(2);
    let (mut host, announced) = host(&["192.0.2.1"]);
    assert_eq!(announced.frames.len(), 1, "a new address is announced");
    let arp = (question(), Verdict::Punt(Punt::Arp));
    assert!(reject(&mut workers[1], &[arp]).is_empty());
    assert_eq!(rung.load(Ordering::Relaxed), 1);
    let mut output = Output::default();
    let heard = end.next_event().unwrap();
    host.handle_event(NOW, &heard, &mut output);
    assert!(end.next_event().is_none() && !end.has_events());
    let learnt = ((0, [192, 0, 2, 9].into()), STATION);
    assert_eq!(host.take_neighbor_changes(), [NeighborChange::Resolved(learnt.0, learnt.1)]);
    assert_eq!(host.resolved_neighbors().collect::<Vec<_>>(), [learnt]);
    assert!(end.send(&mut output));
    assert!(reject(&mut workers[1], &[]).is_empty(), "it does not send");
    let [answer] = &reject(&mut workers[0], &[])[..] else { panic!("one answer") };
    assert!(answer.starts_with(&[STATION.0, ROUTER.0].concat()), "{answer:?}");
    assert!(!end.send(&mut output), "there is nothing more");
}

#[test]
fn only_what_a_host_does_something_about_is_handed_over() {
    let (mut end, mut workers, rung) = ends(1);
    let silent = [
        Verdict::Drop(Reason::Blackhole),
        Verdict::Drop(Reason::Checksum),
        Verdict::Punt(Punt::NotIp),
        Verdict::Punt(Punt::Multicast),
    ];
    reject(&mut workers[0], &silent.map(|verdict| (question(), verdict)));
    assert!(end.next_event().is_none() && rung.load(Ordering::Relaxed) == 0);
    let told = [Verdict::Drop(Reason::TtlExpired), Verdict::Punt(Punt::Glean)];
    reject(&mut workers[0], &told.map(|verdict| (question(), verdict)));
    let heard = std::iter::from_fn(|| end.next_event());
    let verdicts: Vec<_> = heard
        .map(|heard| match heard {
            HostEvent::Packet { verdict, frame, .. } if frame.frame() == question() => verdict,
            _ => panic!("another packet"),
        })
        .collect();
    assert_eq!(verdicts, told);
}

#[test]
fn every_worker_has_its_turn_and_too_much_is_lost_and_counted() {
    let (mut end, mut workers, _) = ends(2);
    let many: Vec<_> = (0..100).map(|_| (question(), Verdict::Punt(Punt::Arp))).collect();
    for _ in 0..3 {
        reject(&mut workers[0], &many);
    }
    reject(&mut workers[1], &many[..1]);
    let first: Vec<_> = (0..2).map(|_| end.next_event().unwrap()).collect();
    assert_eq!((first.len(), end.dropped()), (2, 300 - 256));
    let rest = std::iter::from_fn(|| end.next_event()).count();
    assert_eq!(rest, 256 + 1 - 2);
    let frame = OutFrame { port: 0, bytes: question() };
    let mut output = Output { frames: vec![frame; 1500] };
    assert!(end.send(&mut output) && output.frames.is_empty());
    assert_eq!(end.dropped(), 300 - 256 + 1500 - 1024);
}

fn station(host: u8) -> StaticNeighbor {
    StaticNeighbor { interface: 0, ip: [192, 0, 2, host].into(), mac: STATION }
}

#[test]
fn a_host_follows_addresses_and_stations_as_they_change() {
    let (mut host, _) = host(&["192.0.2.1"]);
    let mut output = Output::default();
    host.follow(Duration::ZERO, view(&["192.0.2.1", "192.0.2.2"]), hops(), &mut output);
    let [announced] = &output.frames[..] else { panic!("one address is new: {output:?}") };
    let message = ArpPacket::parse(&announced.bytes[14..]).unwrap().unwrap();
    assert_eq!(message.sender, u32::from_ip([192, 0, 2, 2].into()));
    host.set_static_neighbors(NOW, &[station(7), station(8)]);
    host.take_neighbor_changes();
    host.set_static_neighbors(NOW, &[station(8)]);
    let news = host.take_neighbor_changes();
    assert!(news.contains(&NeighborChange::Lost((0, [192, 0, 2, 7].into()))), "{news:?}");
    assert_eq!(
        host.resolved_neighbors().map(|(key, _)| key).collect::<Vec<_>>(),
        [(0, [192, 0, 2, 8].into())]
    );
}

#[test]
fn by_a_link_that_is_down_nobody_is_reached() {
    let (mut end, mut workers, _) = ends(1);
    let own = ["192.0.2.1", "192.0.2.2"];
    let (mut host, _) = host(&own);
    let mut output = Output::default();
    host.set_static_neighbors(NOW, &[station(7)]);
    reject(&mut workers[0], &[(question(), Verdict::Punt(Punt::Arp))]);
    host.handle_event(NOW, &end.next_event().unwrap(), &mut output);
    let (kept, learnt) = ((0, [192, 0, 2, 7].into()), (0, [192, 0, 2, 9].into()));
    assert_eq!(
        host.take_neighbor_changes(),
        [kept, learnt].map(|key| NeighborChange::Resolved(key, STATION))
    );

    output.frames.clear();
    host.follow(NOW, view_by(&own, false), hops(), &mut output);
    let news = host.take_neighbor_changes();
    assert!(
        news.len() == 2 && [kept, learnt].iter().all(|key| news.contains(&NeighborChange::Lost(*key))),
        "{news:?}"
    );
    host.set_static_neighbors(NOW, &[station(7), station(8)]);
    assert_eq!((host.take_neighbor_changes(), host.resolved_neighbors().count()), (Vec::new(), 0));
    host.follow(NOW, view_by(&["192.0.2.3"], false), hops(), &mut output);
    assert!(output.frames.is_empty(), "nobody is told: {output:?}");

    host.follow(NOW, view_by(&own, true), hops(), &mut output);
    let mut known: Vec<_> = host.resolved_neighbors().collect();
    known.sort();
    assert_eq!(known, [(kept, STATION), ((0, [192, 0, 2, 8].into()), STATION)], "and the other is asked for");
    assert_eq!(host.take_neighbor_changes().len(), 2);
    let told =
        output.frames.iter().map(|frame| ArpPacket::parse(&frame.bytes[14..]).unwrap().unwrap().sender);
    assert_eq!(told.collect::<Vec<_>>(), own.map(|ip| u32::from_ip(ip.parse().unwrap())));
}
