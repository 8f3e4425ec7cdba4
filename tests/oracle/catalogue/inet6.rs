//! IPv6 in transit: right, damaged, expired, unroutable, too big, martian.

use std::net::Ipv6Addr;

use fullview_plane::wire::ethernet::EtherType;
use fullview_plane::wire::icmpv6::Icmpv6Kind;
use fullview_plane::wire::ipv4::protocol;

use super::{Cases, IntoInet6};
use crate::frames::{Inet6, from_station};
use crate::topology::{self, LEFT, RIGHT, ROUTER, STATION};

const RIGHT_HOST: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 9, 0, 0, 0, 1);
const NARROW_HOST: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0xa, 0, 0, 0, 1);
const NOWHERE: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0xff, 0, 0, 0, 1);

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const NO_NEXT_HEADER: u8 = 59;
const DESTINATION_OPTIONS: u8 = 60;

pub fn add(cases: &mut Cases) {
    transit(cases);
    extensions(cases);
    damage(cases);
    unreachable(cases);
    errors_about_errors(cases);
    too_big(cases);
    martians(cases);
}

fn transit(cases: &mut Cases) {
    for (name, packet) in [
        ("gateway", cases.udp6(RIGHT_HOST)),
        ("neighbour", cases.udp6(topology::inet6(RIGHT, STATION.into()))),
        ("back out by the same link", cases.udp6(topology::inet6(LEFT, STATION.into()))),
        ("hop limit 2", cases.udp6(RIGHT_HOST).hop_limit(2)),
        ("hop limit 255", cases.udp6(RIGHT_HOST).hop_limit(255)),
        ("class and flow", cases.udp6(RIGHT_HOST).class_and_flow(0xff, 0xabcde)),
        ("no payload", Inet6::new(cases.source6(), RIGHT_HOST, NO_NEXT_HEADER, vec![])),
        ("full frame", cases.udp6(RIGHT_HOST).payload(vec![7; 1452])),
        ("hop limit 1", cases.udp6(RIGHT_HOST).hop_limit(1)),
        ("hop limit 0", cases.udp6(RIGHT_HOST).hop_limit(0)),
        ("hop limit 1, class and flow", cases.udp6(RIGHT_HOST).hop_limit(1).class_and_flow(0xb8, 0x12345)),
        ("hop limit 1, long", cases.udp6(RIGHT_HOST).hop_limit(1).payload(vec![3; 1400])),
        ("hop limit 1, as long as the quote", cases.udp6(RIGHT_HOST).hop_limit(1).payload(vec![3; 1184])),
        (
            "hop limit 1, a byte longer than the quote",
            cases.udp6(RIGHT_HOST).hop_limit(1).payload(vec![3; 1185]),
        ),
        ("hop limit 1 and no route", cases.udp6(NOWHERE).hop_limit(1)),
        ("hop limit 1 and to be discarded", cases.udp6("2001:2:0:b::1").hop_limit(1)),
    ] {
        cases.inet6(name, &packet);
    }
    let padded = [cases.udp6(RIGHT_HOST).frame_from(LEFT), vec![0; 9]].concat();
    cases.frame("inet6: padding", padded);
    let padded = [cases.udp6(RIGHT_HOST).hop_limit(1).frame_from(LEFT), vec![0; 9]].concat();
    cases.frame("inet6: hop limit 1, padding", padded);
}

fn extensions(cases: &mut Cases) {
    let rows: [(&str, u8, &[u8]); 12] = [
        ("hop-by-hop padding", HOP_BY_HOP, &[0, 0, 1, 4, 0, 0, 0, 0]),
        ("router alert", HOP_BY_HOP, &[0, 0, 5, 2, 0, 0, 1, 0]),
        ("hop-by-hop option to skip", HOP_BY_HOP, &[0, 0, 0x1e, 4, 0, 0, 0, 0]),
        ("hop-by-hop option to discard", HOP_BY_HOP, &[0, 0, 0x5e, 4, 0, 0, 0, 0]),
        ("hop-by-hop option to report", HOP_BY_HOP, &[0, 0, 0x9e, 4, 0, 0, 0, 0]),
        ("hop-by-hop option to report unless to a group", HOP_BY_HOP, &[0, 0, 0xde, 4, 0, 0, 0, 0]),
        ("hop-by-hop header beyond the packet", HOP_BY_HOP, &[0, 200, 1, 4, 0, 0, 0, 0]),
        ("destination options", DESTINATION_OPTIONS, &[0, 0, 0x9e, 4, 0, 0, 0, 0]),
        ("routing header, segments left", ROUTING, &[0, 0, 0, 1, 0, 0, 0, 0]),
        ("first fragment", FRAGMENT, &[0, 0, 0, 1, 0, 0, 0, 9]),
        ("last fragment", FRAGMENT, &[0, 0, 0, 8, 0, 0, 0, 9]),
        ("atomic fragment", FRAGMENT, &[0, 0, 0, 0, 0, 0, 0, 9]),
    ];
    for (name, kind, header) in rows {
        let packet = cases.udp6(RIGHT_HOST).extension(kind, header);
        cases.inet6(name, &packet);
        let packet = cases.udp6(RIGHT_HOST).extension(kind, header).hop_limit(1);
        cases.inet6(format!("{name}, hop limit 1"), &packet);
        let packet = cases.udp6(topology::inet6(LEFT, ROUTER.into())).extension(kind, header);
        cases.inet6(format!("{name}, to the router"), &packet);
    }
}

fn damage(cases: &mut Cases) {
    let good = cases.udp6(RIGHT_HOST).bytes();
    let len = (good.len() - 40) as u16;
    for (name, at, bytes) in [
        ("version 5", 0, vec![0x50]),
        ("version 4", 0, vec![0x40]),
        ("payload length 0", 4, vec![0, 0]),
        ("payload length one less", 4, (len - 1).to_be_bytes().to_vec()),
        ("payload length one more", 4, (len + 1).to_be_bytes().to_vec()),
        ("payload length 65535", 4, vec![0xff, 0xff]),
    ] {
        let mut changed = good.clone();
        changed[at..at + bytes.len()].copy_from_slice(&bytes);
        cases.frame(format!("inet6: {name}"), from_station(LEFT, EtherType::IPV6, &changed));
    }
    for cut in [0, 1, 39, 40, 41, good.len() - 1] {
        let frame = from_station(LEFT, EtherType::IPV6, &good[..cut]);
        cases.frame(format!("inet6: cut to {cut} bytes"), frame);
    }
}

fn unreachable(cases: &mut Cases) {
    for (name, destination) in [
        ("no route", NOWHERE),
        ("blackhole", "2001:2:0:b::1".inet6()),
        ("unreachable", "2001:2:0:c::1".inet6()),
        ("prohibit", "2001:2:0:d::1".inet6()),
    ] {
        let packet = cases.udp6(destination);
        cases.inet6(name, &packet);
        let packet = cases.udp6(destination).payload(vec![9; 1400]).class_and_flow(0x48, 7);
        cases.inet6(format!("{name}, long, class"), &packet);
    }
    let packet = Inet6::udp(NOWHERE, RIGHT_HOST).hop_limit(1);
    cases.inet6("hop limit 1 and no route back", &packet);
    let packet = Inet6::udp("2001:2:0:9::77".inet6(), RIGHT_HOST).hop_limit(1);
    cases.inet6("hop limit 1 and another link back", &packet);
    let packet = Inet6::udp(topology::inet6(LEFT, STATION.into()), RIGHT_HOST).hop_limit(1);
    cases.inet6("hop limit 1 from a neighbour", &packet);
}

fn errors_about_errors(cases: &mut Cases) {
    let quoted = Inet6::udp(RIGHT_HOST, NOWHERE).bytes();
    for (name, kind, body) in [
        ("echo request", Icmpv6Kind::EchoRequest, &b"ping"[..]),
        ("echo reply", Icmpv6Kind::EchoReply, &b"ping"[..]),
        ("destination unreachable", Icmpv6Kind::NoRoute, &quoted),
        ("packet too big", Icmpv6Kind::PacketTooBig, &quoted),
        ("time exceeded", Icmpv6Kind::TimeExceeded, &quoted),
        ("unknown error", Icmpv6Kind::Other(100, 0), &quoted),
        ("redirect", Icmpv6Kind::Redirect, &[0; 32]),
        ("unknown information", Icmpv6Kind::Other(200, 0), &[0; 4]),
    ] {
        let packet = Inet6::icmp(cases.source6(), RIGHT_HOST, kind, 0, body).hop_limit(1);
        cases.inet6(format!("hop limit 1, {name}"), &packet);
        let packet = Inet6::icmp(cases.source6(), NOWHERE, kind, 0, body);
        cases.inet6(format!("no route, {name}"), &packet);
    }
    let packet = Inet6::icmp(cases.source6(), NOWHERE, Icmpv6Kind::NoRoute, 0, &quoted);
    let packet = packet.extension(DESTINATION_OPTIONS, &[0, 0, 1, 4, 0, 0, 0, 0]);
    cases.inet6("no route, an error behind an extension header", &packet);
    let packet = Inet6::new(cases.source6(), NOWHERE, protocol::ICMPV6, vec![]);
    cases.inet6("no route, ICMPv6 without a type", &packet);
}

fn too_big(cases: &mut Cases) {
    const FITS: usize = 1280 - 48;
    let long = |cases: &mut Cases, payload| cases.udp6(NARROW_HOST).payload(vec![7; payload]);
    for (name, packet) in [
        ("fits exactly", long(cases, FITS)),
        ("a byte too big", long(cases, FITS + 1)),
        ("much too big", long(cases, 1452).class_and_flow(0xb8, 5)),
        ("too big, hop limit 1", long(cases, 1400).hop_limit(1)),
        ("too big, fragment", long(cases, 1400).extension(FRAGMENT, &[0, 0, 0, 8, 0, 0, 0, 9])),
        ("too big, an error", Inet6::icmp(cases.source6(), NARROW_HOST, Icmpv6Kind::NoRoute, 0, &[0; 1400])),
    ] {
        cases.inet6(name, &packet);
    }
}

fn martians(cases: &mut Cases) {
    for source in ["::", "::1", "ff02::1", "ff0e::1", "fe80::2", "::ffff:10.0.1.9", "fc00::1", "fec0::1"] {
        let from = |destination| Inet6::udp(source.inet6(), destination);
        cases.inet6(format!("from {source}"), &from(RIGHT_HOST));
        cases.inet6(format!("from {source}, hop limit 1"), &from(RIGHT_HOST).hop_limit(1));
        cases.inet6(format!("from {source}, no route"), &from(NOWHERE));
        cases.inet6(format!("from {source}, to the router"), &from(topology::inet6(LEFT, ROUTER.into())));
    }
    let own = topology::inet6(LEFT, ROUTER.into());
    cases.inet6("from own address", &Inet6::udp(own, RIGHT_HOST));
    cases.inet6("from own address, hop limit 1", &Inet6::udp(own, RIGHT_HOST).hop_limit(1));
    for destination in [
        "::",
        "::1",
        "::ffff:198.19.0.1",
        "ff02::1",
        "ff02::2",
        "ff02::5",
        "ff01::1",
        "ff05::1",
        "ff0e::1",
        "fe80::2",
    ] {
        let packet = cases.udp6(destination);
        cases.inet6(format!("to {destination}"), &packet);
        let packet = cases.udp6(destination).hop_limit(1);
        cases.inet6(format!("to {destination}, hop limit 1"), &packet);
    }
    let packet = Inet6::udp("fe80::2".inet6(), "fe80::2".inet6());
    cases.inet6("from link-local to link-local", &packet);
}
