//! Answers of the router, and its own requests.

use fullview_plane::wire::icmp::Icmpv4Kind;
use std::net::IpAddr;
use std::time::Duration;

use fullview_plane::interface::Interface;
use fullview_plane::wire::arp::ArpOperation;
use fullview_plane::wire::ethernet::{EtherType, Frame, Mac};
use fullview_plane::wire::extension::kind;
use fullview_plane::wire::icmpv6::Icmpv6Kind;
use fullview_plane::wire::ndp::{self, Builder, LinkAddress};
use fullview_router::host::advertisers::Advertisement;
use fullview_router::host::config::HostSettings;

use crate::support::*;

#[test]
fn a_vlan_is_a_separate_link() {
    let mut router = TestRouter::new(&config());
    let request = arp(ArpOperation::Request, "10.0.2.9", "10.0.2.1");
    assert!(router.send(0, std::slice::from_ref(&request)).is_empty(), "the address belongs to another link");
    let out = router.send(0, &[tagged(request)]);
    let [(0, answer)] = &out[..] else { panic!("{out:?}") };
    assert_eq!(Frame::new_checked(&answer[..]).unwrap().vlan(), Some(VLAN));
    assert_eq!((arp_of(answer).sender, arp_of(answer).sender_mac), (v4("10.0.2.1").to_bits(), ROUTER));

    let out = router.send(0, &[tagged(echo("10.0.2.9", "10.0.2.1"))]);
    let [(0, reply)] = &out[..] else { panic!("the solicitor is resolved: {out:?}") };
    assert_eq!(Frame::new_checked(&reply[..]).unwrap().tag_control(), Some(VLAN));
    assert_eq!(icmp_of(reply).2, Icmpv4Kind::EchoReply);
}

/// Port 0 has a link-local address, too.
fn router_with_link_local_address() -> TestRouter {
    let mut config = config();
    config.interfaces[0].addresses.push(address("169.254.0.1/16"));
    TestRouter::new(&config)
}

#[test]
fn a_link_local_address_of_the_router_answers() {
    let mut router = router_with_link_local_address();
    let solicited = router.send(0, &[echo("169.254.7.7", "169.254.0.1")]);
    let [(0, request)] = &solicited[..] else { panic!("{solicited:?}") };
    assert_eq!(arp_of(request).target, v4("169.254.7.7").to_bits());
    let out = router.send(0, &[arp(ArpOperation::Reply, "169.254.7.7", "169.254.0.1")]);
    let [(0, reply)] = &out[..] else { panic!("{out:?}") };
    let ends = ["169.254.0.1", "169.254.7.7"].map(|ip| IpAddr::V4(v4(ip)));
    assert_eq!(icmp_of(reply), (ends[0], ends[1], Icmpv4Kind::EchoReply));
    let out = router.send(0, &[inet("169.254.7.7", "169.254.0.1", 1)]);
    assert_eq!(icmp_of(&out[0].1), (ends[0], ends[1], Icmpv4Kind::ProtocolUnreachable));
}

#[test]
fn a_link_local_neighbour_gets_answers_and_nothing_is_forwarded_for_it() {
    let mut router = router_with_link_local_address();
    router.send(0, &[arp(ArpOperation::Request, "169.254.7.7", "169.254.0.1")]);
    for own in ["10.0.0.1", "10.0.1.1"] {
        let out = router.send(0, &[echo("169.254.7.7", own)]);
        let [(0, reply)] = &out[..] else { panic!("{out:?}") };
        assert_eq!(icmp_of(reply).2, Icmpv4Kind::EchoReply);
    }
    for (from, to) in
        [("169.254.7.7", "10.0.0.9"), ("10.0.0.9", "169.254.7.7"), ("169.254.7.7", "198.18.0.1")]
    {
        assert!(router.send(0, &[inet(from, to, 9)]).is_empty(), "from {from} to {to}");
    }
}

#[test]
fn the_loop_forwards_to_a_resolved_neighbour() {
    let mut router = TestRouter::new(&config());
    let out = router.send(0, &[inet("10.0.0.9", "10.0.1.9", 9), inet("10.0.0.9", "198.18.0.1", 9)]);
    let solicited: Vec<_> = out.iter().map(|(port, frame)| (*port, arp_of(frame).target)).collect();
    assert_eq!(
        solicited,
        [(1, v4("10.0.1.9").to_bits()), (1, v4("10.0.1.2").to_bits())],
        "requests for the station and the gateway"
    );
    for station in ["10.0.1.9", "10.0.1.2"] {
        assert_eq!(
            router.send(1, &[arp(ArpOperation::Reply, station, "10.0.1.1")]).len(),
            1,
            "the queued packet is sent"
        );
    }
    assert_eq!(router.stack.host().counters().forwarded, 2);
    for destination in ["10.0.1.9", "198.18.0.1", "198.19.0.1"] {
        assert_eq!(router.send(0, &[inet("10.0.0.9", destination, 9)]).len(), 1);
    }
    assert_eq!(router.stack.host().counters().forwarded, 2, "the loop forwards them, not the slow path");
    assert_eq!(router.stack.forwarder().counters().sent().packets, 3);
}

#[test]
fn a_lost_neighbour_is_solicited_again() {
    let mut router = TestRouter::new(&config());
    router.send(0, &[inet6("2001:db8::9", "2001:db8:1::9", 9)]);
    let answer =
        Builder::neighbor(Icmpv6Kind::NeighborAdvertisement, ndp::SOLICITED, v6("2001:db8:1::9").to_bits());
    let answer = answer.link_address(LinkAddress::Target, STATION).build();
    router.send(1, &[discovery("2001:db8:1::9", "2001:db8:1::1", answer)]);
    assert_eq!(router.send(0, &[inet6("2001:db8::9", "2001:db8:1::9", 9)]).len(), 1);
    let probes: usize = (0..40).map(|_| router.pass(Duration::from_secs(1)).len()).sum();
    assert_eq!((probes, router.stack.host().counters().lost_neighbors), (3, 1));
    let out = router.send(0, &[inet6("2001:db8::9", "2001:db8:1::9", 9)]);
    let (_, group, kind, _) = icmp6_of(&out[0].1);
    assert_eq!(
        (kind, group),
        (Icmpv6Kind::NeighborSolicitation, v6("ff02::1:ff00:9")),
        "the solicitation is multicast again"
    );
}

#[test]
fn addresses_are_announced_on_their_links() {
    let mut router = TestRouter::new(&config());
    router.stack.announce();
    let out = router.pass(Duration::ZERO);
    let (arps, ndps): (Vec<_>, Vec<_>) = out
        .iter()
        .partition(|(_, frame)| Frame::new_checked(&frame[..]).unwrap().ethertype() == EtherType::ARP);
    assert_eq!((arps.len(), ndps.len()), (3, 6));
    assert!(arps.iter().all(|(_, frame)| arp_of(frame).sender == arp_of(frame).target));
    let kinds = ndps.iter().map(|(_, frame)| icmp6_of(frame)).all(|(_, to, kind, message)| {
        let flags = Builder::neighbor(kind, ndp::ROUTER | ndp::OVERRIDE, 0).build()[4..8].to_vec();
        to == v6("ff02::1") && kind == Icmpv6Kind::NeighborAdvertisement && message[4..8] == flags[..]
    });
    assert!(kinds);
}

#[test]
fn router_advertisements_are_sent_only_if_configured() {
    let solicitation = || {
        let message = [&[133, 0, 0, 0, 0, 0, 0, 0, 1, 1][..], &STATION.0].concat();
        discovery("fe80::9", "ff02::2", message)
    };
    let mut silent = TestRouter::new(&config());
    assert!(silent.send(0, &[solicitation()]).is_empty() && silent.pass(Duration::from_secs(999)).is_empty());

    let advertisements = vec![(0, Advertisement::default())];
    let with = fullview_router::host::config::HostConfig {
        settings: HostSettings { advertisements, ..HostSettings::default() },
        ..config()
    };
    let mut router = TestRouter::new(&with);
    let out = router.pass(Duration::ZERO);
    let [(0, frame)] = &out[..] else { panic!("{out:?}") };
    let (from, to, kind, message) = icmp6_of(frame);
    assert_eq!((from, to, kind), (v6("fe80::1"), v6("ff02::1"), Icmpv6Kind::RouterAdvertisement));
    assert_eq!(message.len(), 16 + 8 + 8 + 32, "the link address, the MTU, one prefix");
    assert!(router.send(0, &[solicitation()]).is_empty(), "no second advertisement within three seconds");
    assert_eq!(router.pass(Duration::from_secs(3)).len(), 1);
    assert_eq!(router.stack.next_deadline(), Some(router.now + Duration::from_secs(200)));
}

#[test]
fn redirects_are_sent_only_if_configured() {
    let resolve = |router: &mut TestRouter| {
        router.send(
            0,
            &[
                arp(ArpOperation::Request, "10.0.0.9", "10.0.0.1"),
                arp(ArpOperation::Request, "10.0.0.8", "10.0.0.1"),
            ],
        );
        for host in ["2001:db8::9", "2001:db8::8"] {
            let message = Builder::neighbor(Icmpv6Kind::NeighborSolicitation, 0, v6("2001:db8::1").to_bits());
            let message = message.link_address(LinkAddress::Source, STATION).build();
            router.send(0, &[discovery(host, "2001:db8::1", message)]);
        }
    };
    let transit = [inet("10.0.0.9", "10.0.0.8", 9), inet6("2001:db8::9", "2001:db8::8", 9)];
    let mut silent = TestRouter::new(&config());
    resolve(&mut silent);
    assert_eq!(silent.send(0, &transit).len(), 2);

    let mut redirecting = config();
    redirecting.interfaces[0] = Interface { redirects: true, ..interface(0) };
    let mut router = TestRouter::new(&redirecting);
    resolve(&mut router);
    let out = router.send(0, &transit);
    assert_eq!(out.len(), 4, "the packets are forwarded too");
    let (from, to, kind) = icmp_of(&out[2].1);
    assert_eq!((from, to, kind), (v4("10.0.0.1").into(), v4("10.0.0.9").into(), Icmpv4Kind::Redirect));
    let (from, to, kind, message) = icmp6_of(&out[3].1);
    assert_eq!((from, to, kind), (v6("fe80::1"), v6("2001:db8::9"), Icmpv6Kind::Redirect));
    assert_eq!(ndp::target(&message[..24]), Ok(v6("2001:db8::8").to_bits()));
    let whole_units = transit[1].len() - (transit[1].len() - 14) % 8;
    assert!(out[2].1.ends_with(&transit[0][14..]) && out[3].1.ends_with(&transit[1][14..whole_units]));
    let expired = [inet("10.0.0.9", "10.0.0.8", 1), inet6("2001:db8::9", "2001:db8::8", 1)];
    assert_eq!(router.send(0, &expired).len(), 2, "an expired packet causes no redirect");
}

#[test]
fn claims_to_an_address_of_the_router_are_ignored() {
    let mut router = TestRouter::new(&config());
    let claim =
        Builder::neighbor(Icmpv6Kind::NeighborAdvertisement, ndp::OVERRIDE, v6("2001:db8::1").to_bits());
    let claim = claim.link_address(LinkAddress::Target, STATION).build();
    let out = router.send(
        0,
        &[
            arp(ArpOperation::Reply, "10.0.0.1", "10.0.0.1"),
            arp(ArpOperation::Request, "10.0.1.1", "10.0.0.7"),
            discovery("2001:db8::9", "ff02::1", claim),
        ],
    );
    assert!(out.is_empty());
    assert_eq!(router.stack.host().counters().conflicts, 3);
    let stranger =
        ethernet(Mac([8; 6]), EtherType::ARP, &arp(ArpOperation::Request, "10.0.0.9", "10.0.0.1")[14..]);
    assert!(router.send(0, &[stranger]).is_empty(), "a frame to another station");
}

/// A fragment of a packet to the router, behind these extension headers.
fn fragment6(before: &[u8], field: u16, bytes: usize) -> Vec<u8> {
    let [high, low] = field.to_be_bytes();
    let first = if before.is_empty() { kind::FRAGMENT } else { kind::DESTINATION };
    let payload = [before, &[253, 0, high, low, 0, 0, 0, 9], &vec![7; bytes]].concat();
    inet6_with("2001:db8::9", "2001:db8::1", 9, first, &payload)
}

#[test]
fn a_fragment_that_can_be_part_of_no_packet_is_reported_by_the_field_that_is_wrong() {
    const MORE: u16 = 1;
    let mut router = TestRouter::new(&config());
    let request = Builder::neighbor(Icmpv6Kind::NeighborSolicitation, 0, v6("2001:db8::1").to_bits());
    let request = request.link_address(LinkAddress::Source, STATION).build();
    router.send(0, &[discovery("2001:db8::9", "ff02::1:ff00:1", request)]);
    let options = [kind::FRAGMENT, 0, 1, 4, 0, 0, 0, 0];
    for (frame, pointer) in [
        (fragment6(&[], MORE, 9), 4),
        (fragment6(&options, MORE, 9), 4),
        (fragment6(&[], 65_528, 8), 42),
        (fragment6(&options, 65_528 | MORE, 8), 50),
        (fragment6(&[], 65_528 | MORE, 9), 42),
    ] {
        let out = router.send(0, &[frame]);
        let [(0, report)] = &out[..] else { panic!("{out:?}") };
        let (from, to, kind, message) = icmp6_of(report);
        assert_eq!((from, to, kind), (v6("2001:db8::1"), v6("2001:db8::9"), Icmpv6Kind::ParameterProblem));
        assert_eq!(message[4..8], [0, 0, 0, pointer]);
    }
    for silent in [fragment6(&[], MORE, 0), fragment6(&[], MORE, 8), fragment6(&[], 65_528, 7)] {
        assert!(router.send(0, &[silent]).is_empty());
    }
}
