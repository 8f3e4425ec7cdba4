//! One table, plain interfaces: frames in, frames out, or the exact reason why not.

use fullview_plane::adjacency::{Adjacencies, Adjacency, MAX_MTU};
use fullview_plane::burst::{Arena, BURST, Burst, FRAME_CAPACITY, Slot};
use fullview_plane::counters::Traffic;
use fullview_plane::forward::Forwarder;
use fullview_plane::interface::Interface;
use fullview_plane::verdict::{Punt, Reason, Verdict};
use fullview_plane::view::{TableReaders, View, ViewParts, ViewReader};
use fullview_plane::wire::ethernet::{EtherType, HEADER as ETHERNET, Mac};
use fullview_plane::wire::ipv4::{self, Ipv4Packet};
use fullview_table::fib::{Algorithm, linear::Linear};
use fullview_table::{NextHop, Rib};
use proptest::prelude::*;

use crate::frames::*;

/// Ports 0, 1 and 2 are untagged, port 3 is VLAN 100.
const PORTS: usize = 4;
const VLAN_PORT: u16 = 3;

/// Next hops: 1 → port 1, 2 → port 2 with a short MTU, 3 → port 3 with a tag, 4 → this router, 5 → unresolved.
fn forwarder() -> Forwarder {
    let (mut inet, mut inet6) = (Rib::<u32>::default(), Rib::<u128>::default());
    for (prefix, hop) in [
        ("198.19.0.0/16", 1),
        ("198.18.2.0/24", 2),
        ("198.18.3.0/24", 3),
        ("198.18.4.1/32", 4),
        ("198.18.5.0/24", 5),
    ] {
        inet.announce(prefix.parse().unwrap(), NextHop(hop));
    }
    for (prefix, hop) in [
        ("2001:2:0:1::/64", 1),
        ("2001:2:0:2::/64", 2),
        ("2001:2:0:3::/64", 3),
        ("2001:2:0:4::1/128", 4),
        ("64:ff9b::/96", 1),
    ] {
        inet6.announce(prefix.parse().unwrap(), NextHop(hop));
    }
    let mut adjacencies = Adjacencies::new();
    for port in 1..=3 {
        adjacencies.set(NextHop(port), Adjacency::Neighbor { interface: port, mac: neighbor(port) });
    }
    adjacencies.set(NextHop(4), Adjacency::Local);
    let mtu = [1500, 1500, 100, MAX_MTU.into()];
    let interface = |port: u16| Interface { mtu: mtu[usize::from(port)], ..Interface::new(port, OURS) };
    let mut interfaces = Vec::from_iter((0..PORTS as u16).map(interface));
    interfaces[usize::from(VLAN_PORT)].vlan = Some(100);
    let (inet, inet6) = (Linear.compile(&inet).unwrap().fib(), Linear.compile(&inet6).unwrap().fib());
    let parts = ViewParts::new(interfaces, adjacencies, TableReaders::fixed(inet, inet6));
    Forwarder::new(ViewReader::fixed(View::new(parts).unwrap()))
}

/// Runs every row alone, then all rows in one burst, both families mixed.
fn check(rows: Vec<(&str, u16, Vec<u8>, Fate)>) {
    for (name, port, frame, expected) in &rows {
        let fate = run(&mut forwarder(), &[(*port, frame.clone())]).remove(0);
        assert_eq!(&fate, expected, "{name}");
    }
    let frames: Vec<_> = rows.iter().map(|(_, port, frame, _)| (*port, frame.clone())).collect();
    for ((name, .., expected), fate) in rows.iter().zip(run(&mut forwarder(), &frames)) {
        assert_eq!(&fate, expected, "{name}, in one burst with the others");
    }
}

#[test]
fn correct_packets_are_forwarded_with_no_other_change() {
    let long = |len: usize| [good(), vec![0; len - 60]].concat();
    let option = inet_with(SRC, DST, 64, &[1, 130, 3, 0]);
    let nat64 = inet6(SRC6, "64:ff9b::198.19.0.1", 64);
    check(vec![
        ("IPv4", 0, good(), sent(1, forwarded(good(), 1))),
        ("IPv6", 0, good6(), sent(1, forwarded(good6(), 1))),
        ("TTL 2", 0, inet(SRC, DST, 2), sent(1, forwarded(inet(SRC, DST, 2), 1))),
        ("TTL 255", 0, inet(SRC, DST, 255), sent(1, forwarded(inet(SRC, DST, 255), 1))),
        ("hop limit 2", 0, inet6(SRC6, DST6, 2), sent(1, forwarded(inet6(SRC6, DST6, 2), 1))),
        ("hop limit 255", 0, inet6(SRC6, DST6, 255), sent(1, forwarded(inet6(SRC6, DST6, 255), 1))),
        ("padding", 0, long(200), sent(1, forwarded(long(200), 1))),
        ("an option for the end host", 0, option.clone(), sent(1, forwarded(option, 1))),
        ("inside ::/8 and right", 0, nat64.clone(), sent(1, forwarded(nat64, 1))),
        ("other port in", 2, good(), sent(1, forwarded(good(), 1))),
        ("169.253/16", 0, inet("169.253.0.1", DST, 9), sent(1, forwarded(inet("169.253.0.1", DST, 9), 1))),
    ]);
}

#[test]
fn damaged_packets_are_dropped_with_the_correct_reason() {
    let total = |len: u16| with_summed(good(), 2, &len.to_be_bytes());
    let mut damaged_options = inet_with(SRC, DST, 64, &[1, 1, 1, 0]);
    damaged_options[ETHERNET + 21] = 2;
    check(vec![
        ("empty", 0, vec![], dropped(Reason::TooShort)),
        ("part of a MAC", 0, cut(good(), 5), dropped(Reason::TooShort)),
        ("Ethernet only", 0, cut(good(), 14), dropped(Reason::TooShort)),
        ("IPv4 header cut", 0, cut(good(), 33), dropped(Reason::TooShort)),
        ("IPv6 header cut", 0, cut(good6(), 53), dropped(Reason::TooShort)),
        ("tag cut", 0, cut(tagged(good(), 5), 17), dropped(Reason::TooShort)),
        ("IPv6 in an IPv4 frame", 0, with(good(), 0, &[0x65]), dropped(Reason::BadVersion)),
        ("IPv4 in an IPv6 frame", 0, with(good6(), 0, &[0x45]), dropped(Reason::BadVersion)),
        ("IHL 4", 0, with(good(), 0, &[0x44]), dropped(Reason::HeaderLength)),
        ("IHL 0", 0, with(good(), 0, &[0x40]), dropped(Reason::HeaderLength)),
        ("IHL beyond the frame", 0, cut(with(good(), 0, &[0x4f]), 60), dropped(Reason::HeaderLength)),
        ("total length 19", 0, total(19), dropped(Reason::TotalLength)),
        ("total length 0", 0, total(0), dropped(Reason::TotalLength)),
        ("total length beyond the frame", 0, total(47), dropped(Reason::TotalLength)),
        ("IPv6 payload beyond the frame", 0, with(good6(), 4, &[0, 13]), dropped(Reason::TotalLength)),
        ("checksum", 0, with(good(), 10, &[0x12, 0x34]), dropped(Reason::Checksum)),
        ("a flipped bit", 0, with(good(), 4, &[0x12, 0x35]), dropped(Reason::Checksum)),
        ("options outside the checksum", 0, damaged_options, dropped(Reason::Checksum)),
        ("loose source route", 0, inet_with(SRC, DST, 64, &[131, 3, 4, 0]), dropped(Reason::SourceRoute)),
        (
            "strict source route, later",
            0,
            inet_with(SRC, DST, 64, &[1, 7, 2, 137]),
            dropped(Reason::SourceRoute),
        ),
    ]);
}

#[test]
fn frames_for_others_are_dropped() {
    let ours_tagged = tagged(good(), 100);
    check(vec![
        ("another station", 0, to(good(), SENDER), dropped(Reason::NotOurMac)),
        ("another station, IPv6", 0, to(good6(), SENDER), dropped(Reason::NotOurMac)),
        ("unicast in a broadcast", 0, to(good(), Mac::BROADCAST), dropped(Reason::LinkBroadcast)),
        ("no such port", PORTS as u16, good(), dropped(Reason::UnknownPort)),
        ("LLDP", 0, ethernet(EtherType(0x88cc), &[0; 46]), punted(Punt::NotIp)),
        ("802.3 length", 0, ethernet(EtherType(46), &[0; 46]), punted(Punt::NotIp)),
        ("two tags", 0, tagged(tagged(good(), 0), 0), punted(Punt::NotIp)),
        ("tagged where none is expected", 0, ours_tagged, punted(Punt::OtherVlan)),
        ("another VLAN", VLAN_PORT, tagged(good(), 101), punted(Punt::OtherVlan)),
        ("untagged where a tag is expected", VLAN_PORT, good(), punted(Punt::OtherVlan)),
        ("ARP", 0, to(ethernet(EtherType::ARP, &[0; 28]), Mac::BROADCAST), punted(Punt::Arp)),
    ]);
}

#[test]
fn tags_are_removed_and_inserted() {
    let into_vlan = inet(SRC, "198.18.3.3", 64);
    let into_vlan6 = inet6(SRC6, "2001:2:0:3::3", 64);
    check(vec![
        ("off", VLAN_PORT, tagged(good(), 0x2064), sent(1, forwarded(good(), 1))),
        ("off, IPv6", VLAN_PORT, tagged(good6(), 100), sent(1, forwarded(good6(), 1))),
        ("priority only", 0, tagged(good(), 0xe000), sent(1, forwarded(good(), 1))),
        ("on", 0, into_vlan.clone(), sent(3, tagged(forwarded(into_vlan.clone(), 3), 100))),
        ("on, IPv6", 0, into_vlan6.clone(), sent(3, tagged(forwarded(into_vlan6, 3), 100))),
        (
            "off and on",
            VLAN_PORT,
            tagged(into_vlan.clone(), 100),
            sent(3, tagged(forwarded(into_vlan, 3), 100)),
        ),
    ]);
}

#[test]
fn martians_are_not_forwarded() {
    let mut rows = Vec::new();
    for source in
        ["0.0.0.0", "0.1.2.3", "127.0.0.1", "224.0.0.5", "239.1.1.1", "240.0.0.1", "255.255.255.255"]
    {
        rows.push((source, 0, inet(source, DST, 64), dropped(Reason::MartianSource)));
    }
    for destination in ["0.0.0.0", "127.1.2.3", "240.0.0.1", "255.255.255.254"] {
        rows.push((destination, 0, inet(SRC, destination, 64), dropped(Reason::MartianDestination)));
    }
    for source in ["::", "::1", "::ffff:198.18.0.1", "ff0e::1"] {
        rows.push((source, 0, inet6(source, DST6, 64), dropped(Reason::MartianSource)));
    }
    for destination in ["::", "::1", "::ffff:198.19.0.1"] {
        rows.push((destination, 0, inet6(SRC6, destination, 64), dropped(Reason::MartianDestination)));
    }
    rows.extend([
        ("from 169.254/16", 0, inet("169.254.0.1", DST, 64), punted(Punt::LinkLocal)),
        ("to 169.254/16", 0, inet(SRC, "169.254.0.1", 64), punted(Punt::LinkLocal)),
        ("from fe80::/10", 0, inet6("fe80::1", DST6, 64), punted(Punt::LinkLocal)),
        ("to fe80::/10", 0, inet6(SRC6, "febf::1", 64), punted(Punt::LinkLocal)),
        ("multicast", 0, inet(SRC, "239.1.2.3", 64), punted(Punt::Multicast)),
        (
            "multicast frame",
            0,
            to(inet(SRC, "239.1.2.3", 64), Mac([1, 0, 0x5e, 1, 2, 3])),
            punted(Punt::Multicast),
        ),
        ("IPv6 multicast", 0, inet6(SRC6, "ff0e::1", 64), punted(Punt::Multicast)),
        (
            "OSPF hello",
            0,
            to(inet(SRC, "224.0.0.5", 1), Mac([1, 0, 0x5e, 0, 0, 5])),
            punted(Punt::LinkMulticast),
        ),
        ("neighbour solicitation", 0, inet6("::", "ff02::1:ff00:1", 255), punted(Punt::LinkMulticast)),
    ]);
    check(rows);
}

#[test]
fn hops_routes_and_links_can_be_missing() {
    check(vec![
        ("TTL 0", 0, inet(SRC, DST, 0), dropped(Reason::TtlExpired)),
        ("TTL 1", 0, inet(SRC, DST, 1), dropped(Reason::TtlExpired)),
        ("hop limit 0", 0, inet6(SRC6, DST6, 0), dropped(Reason::HopLimitExpired)),
        ("hop limit 1", 0, inet6(SRC6, DST6, 1), dropped(Reason::HopLimitExpired)),
        ("no route", 0, inet(SRC, "203.0.113.1", 64), dropped(Reason::NoRoute)),
        ("no IPv6 route", 0, inet6(SRC6, "2001:db8::1", 64), dropped(Reason::NoRoute)),
        ("no link address", 0, inet(SRC, "198.18.5.5", 64), dropped(Reason::NoAdjacency)),
        ("for this router", 0, inet(SRC, "198.18.4.1", 64), punted(Punt::Local)),
        ("for this router, last hop", 0, inet(SRC, "198.18.4.1", 1), punted(Punt::Local)),
        ("for this router, IPv6", 0, inet6(SRC6, "2001:2:0:4::1", 1), punted(Punt::Local)),
    ]);
}

#[test]
fn the_mtu_limits_the_packet_and_not_its_padding() {
    let sized = |total: u16| {
        let mut frame = inet(SRC, "198.18.2.2", 64);
        frame.resize(300, 0xcc);
        with_summed(frame, 2, &total.to_be_bytes())
    };
    let sized6 = |payload: u16| {
        let mut frame = inet6(SRC6, "2001:2:0:2::2", 64);
        frame.resize(300, 0xcc);
        with(frame, 4, &payload.to_be_bytes())
    };
    check(vec![
        ("fits", 0, sized(100), sent(2, forwarded(sized(100), 2))),
        ("one byte more", 0, sized(101), dropped(Reason::TooBig)),
        ("IPv6 fits", 0, sized6(60), sent(2, forwarded(sized6(60), 2))),
        ("IPv6, one byte more", 0, sized6(61), dropped(Reason::TooBig)),
    ]);
}

#[test]
fn every_reason_except_the_full_ring_is_counted_at_its_interface() {
    let mut forwarder = forwarder();
    let frames = [(0, good()), (2, good6()), (0, cut(good(), 20)), (0, inet(SRC, DST, 1)), (9, good())];
    run(&mut forwarder, &frames);
    let counters = forwarder.take_counters();
    assert_eq!(counters.interfaces[0].received, Traffic { packets: 3, bytes: 60 + 20 + 60 });
    assert_eq!(counters.interfaces[2].received, Traffic { packets: 1, bytes: 66 });
    assert_eq!(counters.interfaces[1].sent, Traffic { packets: 2, bytes: 126 });
    let reasons: Vec<_> = counters.drop_reasons().collect();
    assert_eq!(reasons, [(Reason::TooShort, 1), (Reason::UnknownPort, 1), (Reason::TtlExpired, 1)]);
    assert_eq!((forwarder.counters().received().packets, forwarder.counters().dropped()), (0, 0));
}

#[test]
fn a_full_egress_hands_packets_back_in_order() {
    let (mut forwarder, mut arena) = (forwarder(), Arena::new(10));
    let (mut burst, mut rejected) = (Burst::new(), Burst::new());
    let mut filler = Arena::new(BURST - 4);
    let mut ports = [Burst::new(), Burst::new()];
    ports[1].fill(filler.packets());
    for (n, packet) in arena.packets().enumerate() {
        packet.set_frame(&with_summed(good(), 4, &[0, n as u8]));
        packet.port = 0;
        burst.push(packet).unwrap();
    }
    forwarder.process(&mut burst, &mut ports[..], &mut rejected);
    let numbers = |burst: &[&mut Slot]| -> Vec<u8> {
        burst.iter().map(|packet| packet.frame()[ETHERNET + 5]).collect()
    };
    assert_eq!(numbers(&ports[1][BURST - 4..]), [0, 1, 2, 3]);
    assert_eq!(numbers(&rejected), [4, 5, 6, 7, 8, 9]);
    assert!(rejected.iter().all(|packet| packet.verdict == Verdict::Drop(Reason::EgressFull)));
    assert_eq!(forwarder.counters().drops[Reason::EgressFull.index()], 6);
    let at = |interface: usize| forwarder.counters().interface_drops[interface][Reason::EgressFull.index()];
    assert_eq!((at(0), at(1)), (0, 6), "counted at the port without room");
    assert_eq!(forwarder.counters().sent().packets, 4);
}

/// Short and long runs, and packets without a route among them.
#[test]
fn each_port_gets_its_packets_in_order_however_they_alternate() {
    let (mut forwarder, mut arena) = (forwarder(), Arena::new(BURST));
    let (mut burst, mut rejected) = (Burst::new(), Burst::new());
    let mut ports = [Burst::new(), Burst::new(), Burst::new()];
    let port_of = |n: usize| if n < 60 { 1 } else { [2, 1, 0, 2, 2, 1, 1][n * n % 7] };
    for (n, packet) in arena.packets().enumerate() {
        let destination = ["198.18.99.1", DST, "198.18.2.2"][port_of(n)];
        packet.set_frame(&with_summed(inet(SRC, destination, 64), 4, &[0, n as u8]));
        packet.port = 0;
        burst.push(packet).unwrap();
    }
    forwarder.process(&mut burst, &mut ports[..], &mut rejected);
    let numbers = |burst: &[&mut Slot]| -> Vec<usize> {
        burst.iter().map(|packet| usize::from(packet.frame()[ETHERNET + 5])).collect()
    };
    let expected = |port: usize| (0..BURST).filter(|n| port_of(*n) == port).collect::<Vec<_>>();
    assert_eq!(numbers(&rejected), expected(0));
    assert_eq!(forwarder.counters().drops[Reason::NoRoute.index()], rejected.len() as u64);
    for port in [1, 2] {
        assert_eq!(numbers(&ports[port]), expected(port), "port {port}");
        let bytes = ports[port].iter().map(|packet| packet.frame_len() as u64).sum();
        let sent = Traffic { packets: ports[port].len() as u64, bytes };
        assert_eq!(forwarder.counters().interfaces[port].sent, sent);
    }
}

#[test]
fn what_the_rejected_burst_has_no_room_for_stays_unprocessed() {
    let (mut forwarder, mut arena) = (forwarder(), Arena::new(BURST + 5));
    let (mut burst, mut out, mut rejected) = (Burst::new(), Burst::new(), Burst::new());
    let mut packets = arena.packets();
    rejected.fill(packets.by_ref().take(BURST - 3));
    for packet in packets {
        packet.set_frame(&cut(good(), 20));
        burst.push(packet).unwrap();
    }
    forwarder.process(&mut burst, &mut out, &mut rejected);
    assert_eq!((burst.len(), out.len(), rejected.len()), (5, 0, BURST));
    rejected.drain();
    forwarder.process(&mut burst, &mut out, &mut rejected);
    assert_eq!((burst.len(), rejected.len(), forwarder.counters().dropped()), (0, 5, 8));
}

#[test]
fn full_bursts_of_both_families_keep_their_order() {
    let frames: Vec<_> = (0..BURST).map(|n| (0, if n % 3 == 0 { good6() } else { good() })).collect();
    let fates = run(&mut forwarder(), &frames);
    for ((_, frame), fate) in frames.into_iter().zip(fates) {
        assert_eq!(fate, sent(1, forwarded(frame, 1)));
    }
}

#[test]
fn the_longest_packet_still_fits_behind_a_tag() {
    let mut frame = inet(SRC, "198.18.3.3", 64);
    frame.resize(FRAME_CAPACITY, 0xdd);
    let frame = with_summed(frame, 2, &MAX_MTU.to_be_bytes());
    let mut expected = tagged(forwarded(frame.clone(), VLAN_PORT), 100);
    expected.truncate(FRAME_CAPACITY); // 4 bytes of padding, none of the packet
    check(vec![
        ("longest", 0, frame.clone(), sent(VLAN_PORT, expected)),
        ("one byte more", 0, with_summed(frame, 2, &(MAX_MTU + 1).to_be_bytes()), dropped(Reason::TooBig)),
    ]);
}

proptest! {
    #[test]
    fn random_bytes_never_panic_and_never_vanish(frames in prop::collection::vec(
        (0u16..6, prop::collection::vec(any::<u8>(), 0..120)), 1..20,
    )) {
        prop_assert_eq!(run(&mut forwarder(), &frames).len(), frames.len());
    }

    /// A correct frame with a few wrong bytes reaches more branches than random bytes.
    #[test]
    fn disturbed_frames_never_panic(
        is_inet in any::<bool>(), len in 0usize..90, spots in prop::collection::vec((0usize..64, any::<u8>()), 0..4),
    ) {
        let mut frame = if is_inet { good() } else { good6() };
        frame.resize(len, 0);
        for (at, byte) in spots {
            if let Some(spot) = frame.get_mut(at) {
                *spot = byte;
            }
        }
        run(&mut forwarder(), &[(0, frame)]);
    }

    #[test]
    fn any_right_inet_packet_changes_only_where_it_must(
        tos in any::<u8>(), id in any::<u16>(), ttl in 2u8.., protocol in any::<u8>(), host in any::<u16>(),
        payload in prop::collection::vec(any::<u8>(), 18..1400),
    ) {
        let mut frame = good();
        frame.truncate(ETHERNET + ipv4::HEADER);
        frame.extend(&payload);
        let mut packet = Ipv4Packet::new_unchecked(&mut frame[ETHERNET..]);
        packet.set_total_len((ipv4::HEADER + payload.len()) as u16);
        packet.set_type_of_service(tos);
        packet.set_identification(id);
        packet.set_ttl(ttl);
        packet.set_protocol(protocol);
        packet.set_destination(v4("198.19.0.0") | u32::from(host));
        packet.fill_checksum();
        let fate = run(&mut forwarder(), &[(0, frame.clone())]).remove(0);
        prop_assert_eq!(fate, sent(1, forwarded(frame, 1)));
    }
}
