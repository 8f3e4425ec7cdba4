//! IPv6 to the router itself.

use std::net::Ipv6Addr;

use fullview_plane::wire::icmpv6::Icmpv6Kind;

use super::{Cases, IntoInet6};
use crate::frames::Inet6;
use crate::topology::{self, LEFT, LINK_LOCAL, RIGHT, ROUTER, STATION};

pub fn add(cases: &mut Cases) {
    echo(cases);
    closed(cases);
    fragments(cases);
}

fn request(cases: &mut Cases, destination: Ipv6Addr) -> Inet6 {
    Inet6::icmp(cases.source6(), destination, Icmpv6Kind::EchoRequest, 0x0102_0003, b"to be sent back")
}

fn echo(cases: &mut Cases) {
    let own = topology::inet6(LEFT, ROUTER.into());
    for (name, packet) in [
        ("", request(cases, own)),
        (" of another link", request(cases, topology::inet6(RIGHT, ROUTER.into()))),
        (", hop limit 1", request(cases, own).hop_limit(1)),
        (", hop limit 0", request(cases, own).hop_limit(0)),
        (", class and flow", request(cases, own).class_and_flow(0xbb, 0x12345)),
        (" to link-local", request(cases, LINK_LOCAL)),
        (" to subnet-router anycast", request(cases, topology::inet6(LEFT, 0))),
        (" to all nodes", request(cases, "ff02::1".inet6())),
        (" to all routers", request(cases, "ff02::2".inet6())),
        (" to a strange group", request(cases, "ff02::99".inet6())),
        (" without data", Inet6::icmp(cases.source6(), own, Icmpv6Kind::EchoRequest, 7, &[])),
        (", full frame", Inet6::icmp(cases.source6(), own, Icmpv6Kind::EchoRequest, 7, &[0x5a; 1452])),
        (" with a code", Inet6::icmp(cases.source6(), own, Icmpv6Kind::Other(128, 3), 7, b"code")),
        (
            " without a route back",
            Inet6::icmp("2001:2:0:ff::9".inet6(), own, Icmpv6Kind::EchoRequest, 7, b"lost"),
        ),
        (
            " from a neighbour",
            Inet6::icmp(topology::inet6(LEFT, STATION.into()), own, Icmpv6Kind::EchoRequest, 7, b"near"),
        ),
    ] {
        cases.inet6(format!("echo{name}"), &packet);
    }
    let mut packet = request(cases, own);
    packet.payload[2] ^= 1;
    cases.inet6("echo, checksum", &packet);
    let mut packet = request(cases, own);
    packet.payload.truncate(7);
    cases.inet6("echo, cut", &packet);
}

fn closed(cases: &mut Cases) {
    let own = topology::inet6(LEFT, ROUTER.into());
    let mut damaged = cases.udp6(own);
    damaged.payload[6] ^= 1;
    let mut unsummed = cases.udp6(own);
    unsummed.payload[6..8].fill(0);
    let mut short = cases.udp6(own);
    short.payload.truncate(5);
    let with = |cases: &mut Cases, next_header| Inet6::new(cases.source6(), own, next_header, vec![0; 16]);
    for (name, packet) in [
        ("closed port", cases.udp6(own)),
        ("closed port of another link", cases.udp6(topology::inet6(RIGHT, ROUTER.into()))),
        ("closed port, link-local", cases.udp6(LINK_LOCAL)),
        ("closed port, hop limit 1", cases.udp6(own).hop_limit(1)),
        ("closed port, long", cases.udp6(own).payload(vec![1; 1452])),
        ("closed port, damaged datagram", damaged),
        ("closed port, no checksum", unsummed),
        ("closed port, datagram cut", short),
        ("closed port, to all nodes", cases.udp6("ff02::1")),
        ("unknown next header", with(cases, 253)),
        ("OSPF to the router", with(cases, 89)),
        ("no next header", with(cases, 59)),
        ("TCP to the router", Inet6::syn(cases.source6(), own)),
        (
            "unknown error to the router",
            Inet6::icmp(cases.source6(), own, Icmpv6Kind::Other(100, 0), 0, &[0; 4]),
        ),
        (
            "unknown information to the router",
            Inet6::icmp(cases.source6(), own, Icmpv6Kind::Other(200, 0), 0, &[0; 4]),
        ),
        ("echo reply to the router", Inet6::icmp(cases.source6(), own, Icmpv6Kind::EchoReply, 0, b"unasked")),
    ] {
        cases.inet6(name, &packet);
    }
}

fn fragments(cases: &mut Cases) {
    const FRAGMENT: u8 = 44;
    let own = topology::inet6(LEFT, ROUTER.into());
    for (name, [high, low], content) in [
        ("first fragment of uneven length", [0, 1], 9),
        ("last fragment beyond the longest packet", [0xff, 0xf8], 16),
        ("fragment beyond the longest packet, of uneven length", [0xff, 0xf9], 9),
    ] {
        let packet = cases.udp6(own).payload(vec![7; content]);
        let packet = packet.extension(FRAGMENT, &[0, 0, high, low, 0, 0, 0, 9]);
        cases.inet6(format!("{name}, to the router"), &packet);
    }
}
