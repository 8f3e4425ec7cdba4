//! IPv4 in transit: right, damaged, expired, unroutable, too big, martian.

use std::net::Ipv4Addr;

use fullview_plane::wire::ethernet::EtherType;
use fullview_plane::wire::icmp::Icmpv4Kind;
use fullview_plane::wire::ipv4::{self, Ipv4Packet};

use super::Cases;
use crate::frames::{DONT_FRAGMENT, Inet, MORE_FRAGMENTS, from_station};
use crate::topology::{self, LEFT, RIGHT, ROUTER, STATION};

/// Destinations: behind the station on the right, behind the one on the narrow link, and without a route.
const RIGHT_HOST: Ipv4Addr = Ipv4Addr::new(198, 19, 0, 1);
const NARROW_HOST: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
const NOWHERE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

pub fn add(cases: &mut Cases) {
    transit(cases);
    options(cases);
    damage(cases);
    fragments(cases);
    unreachable(cases);
    errors_about_errors(cases);
    too_big(cases);
    martians(cases);
}

fn transit(cases: &mut Cases) {
    for (name, packet) in [
        ("gateway", cases.udp(RIGHT_HOST)),
        ("neighbour", cases.udp(topology::inet(RIGHT, STATION))),
        ("back out by the same link", cases.udp(topology::inet(LEFT, STATION))),
        ("TTL 2", cases.udp(RIGHT_HOST).ttl(2)),
        ("TTL 255", cases.udp(RIGHT_HOST).ttl(255)),
        ("type of service", cases.udp(RIGHT_HOST).tos(0xff)),
        ("may be fragmented", cases.udp(RIGHT_HOST).fragment(0)),
        ("reserved flag", cases.udp(RIGHT_HOST).fragment(0x8000)),
        ("no payload", Inet::new(cases.source(), RIGHT_HOST, 253, vec![])),
        ("unknown protocol", cases.udp(RIGHT_HOST).protocol(253)),
        ("full frame", cases.udp(RIGHT_HOST).payload(vec![7; 1472])),
        ("TTL 1", cases.udp(RIGHT_HOST).ttl(1)),
        ("TTL 0", cases.udp(RIGHT_HOST).ttl(0)),
        ("TTL 1, type of service", cases.udp(RIGHT_HOST).ttl(1).tos(0x2f)),
        ("TTL 1, long", cases.udp(RIGHT_HOST).ttl(1).payload(vec![3; 1400])),
        ("TTL 1, a byte short of the quote", cases.udp(RIGHT_HOST).ttl(1).payload(vec![3; 519])),
        ("TTL 1, a byte longer than the quote", cases.udp(RIGHT_HOST).ttl(1).payload(vec![3; 521])),
        ("TTL 1 and no route", cases.udp(NOWHERE).ttl(1)),
        ("TTL 1 and to be discarded", cases.udp("203.0.113.1").ttl(1)),
    ] {
        cases.inet(name, &packet);
    }
    let padded = [cases.udp(RIGHT_HOST).frame_from(LEFT), vec![0; 9]].concat();
    cases.frame("inet: padding", padded);
    let padded = [cases.udp(RIGHT_HOST).ttl(1).frame_from(LEFT), vec![0; 9]].concat();
    cases.frame("inet: TTL 1, padding", padded);
}

fn options(cases: &mut Cases) {
    let rows: [(&str, &[u8]); 12] = [
        ("no operation", &[1, 1, 1, 0]),
        ("end of options", &[0, 7, 7, 7]),
        ("router alert", &[148, 4, 0, 0]),
        ("record route", &[7, 7, 4, 0, 0, 0, 0, 0]),
        ("record route, full", &[7, 7, 8, 1, 1, 1, 1, 0]),
        ("timestamp", &[68, 8, 5, 0, 0, 0, 0, 0]),
        ("loose source route", &[131, 7, 4, 10, 0, 2, 2, 0]),
        ("strict source route", &[137, 7, 4, 10, 0, 2, 2, 0]),
        ("unknown", &[0x9e, 4, 1, 2]),
        ("length 0", &[0x9e, 0, 1, 2]),
        ("length beyond the header", &[0x9e, 5, 1, 2]),
        ("length cut", &[1, 1, 1, 0x9e]),
    ];
    for (name, options) in rows {
        let packet = cases.udp(RIGHT_HOST).options(options);
        cases.inet(format!("option {name}"), &packet);
    }
    for (name, options) in [("no operation", [1, 1, 1, 0]), ("unknown", [0x9e, 4, 1, 2])] {
        let packet = cases.udp(RIGHT_HOST).options(&options).ttl(1);
        cases.inet(format!("TTL 1, option {name}"), &packet);
    }
}

/// Returns `packet` with some bytes changed and a right checksum.
fn changed(packet: &Inet, at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut packet = packet.bytes();
    packet[at..at + bytes.len()].copy_from_slice(bytes);
    let header = usize::from(packet[0] & 0x0f) * 4;
    if (ipv4::HEADER..=packet.len()).contains(&header) {
        Ipv4Packet::new_unchecked(&mut packet).fill_checksum();
    }
    packet
}

fn damage(cases: &mut Cases) {
    let good = cases.udp(RIGHT_HOST);
    let len = good.bytes().len() as u16;
    for (name, at, bytes) in [
        ("version 5", 0, vec![0x55]),
        ("version 6", 0, vec![0x65]),
        ("version 0", 0, vec![0x05]),
        ("header length 4", 0, vec![0x44]),
        ("header length 0", 0, vec![0x40]),
        ("header length beyond the frame", 0, vec![0x4f]),
        ("total length below the header's", 2, vec![0, 19]),
        ("total length 0", 2, vec![0, 0]),
        ("total length of the header alone", 2, vec![0, 20]),
        ("total length one less", 2, (len - 1).to_be_bytes().to_vec()),
        ("total length one more", 2, (len + 1).to_be_bytes().to_vec()),
        ("total length 65535", 2, vec![0xff, 0xff]),
    ] {
        let frame = from_station(LEFT, EtherType::IPV4, &changed(&good, at, &bytes));
        cases.frame(format!("inet: {name}"), frame);
    }
    for (name, at) in [("checksum", 10), ("flipped address", 16)] {
        let mut bytes = good.bytes();
        bytes[at] ^= 0x40;
        cases.frame(format!("inet: {name}"), from_station(LEFT, EtherType::IPV4, &bytes));
    }
    let bytes = good.bytes();
    for cut in [0, 1, 10, 19, 20, 21, bytes.len() - 1] {
        let frame = from_station(LEFT, EtherType::IPV4, &bytes[..cut]);
        cases.frame(format!("inet: cut to {cut} bytes"), frame);
    }
}

fn fragments(cases: &mut Cases) {
    for (name, fragment) in [
        ("first", MORE_FRAGMENTS),
        ("middle", MORE_FRAGMENTS | 3),
        ("last", 9),
        ("first, not to be fragmented", MORE_FRAGMENTS | DONT_FRAGMENT),
    ] {
        let packet = cases.udp(RIGHT_HOST).fragment(fragment);
        cases.inet(format!("{name} fragment"), &packet);
        let packet = cases.udp(RIGHT_HOST).fragment(fragment).ttl(1);
        cases.inet(format!("{name} fragment, TTL 1"), &packet);
        let packet = cases.udp(NOWHERE).fragment(fragment);
        cases.inet(format!("{name} fragment, no route"), &packet);
    }
}

fn unreachable(cases: &mut Cases) {
    for (name, destination) in [
        ("no route", "192.0.2.1"),
        ("blackhole", "203.0.113.1"),
        ("unreachable", "203.0.113.65"),
        ("prohibit", "203.0.113.129"),
    ] {
        let packet = cases.udp(destination);
        cases.inet(name, &packet);
        let packet = cases.udp(destination).payload(vec![9; 1000]).tos(0x48);
        cases.inet(format!("{name}, long, type of service"), &packet);
    }
    let packet = Inet::udp(NOWHERE, RIGHT_HOST).ttl(1);
    cases.inet("TTL 1 and no route back", &packet);
    let packet = Inet::udp("203.0.113.1".parse().expect("an address"), RIGHT_HOST).ttl(1);
    cases.inet("TTL 1 and a black hole back", &packet);
    let packet = Inet::udp([198, 19, 0, 77].into(), RIGHT_HOST).ttl(1);
    cases.inet("TTL 1 and another link back", &packet);
    let packet = Inet::udp(topology::inet(LEFT, STATION), RIGHT_HOST).ttl(1);
    cases.inet("TTL 1 from a neighbour", &packet);
}

fn errors_about_errors(cases: &mut Cases) {
    let quoted = Inet::udp(RIGHT_HOST, NOWHERE).bytes();
    for (name, kind, body) in [
        ("echo request", Icmpv4Kind::EchoRequest, &b"ping"[..]),
        ("echo reply", Icmpv4Kind::EchoReply, &b"ping"[..]),
        ("net unreachable", Icmpv4Kind::NetUnreachable, &quoted[..28]),
        ("time exceeded", Icmpv4Kind::TimeExceeded, &quoted[..28]),
        ("source quench", Icmpv4Kind::Other(4, 0), &quoted[..28]),
        ("redirect", Icmpv4Kind::Redirect, &quoted[..28]),
        ("parameter problem", Icmpv4Kind::ParameterProblem, &quoted[..28]),
        ("timestamp request", Icmpv4Kind::Other(13, 0), &[0; 12]),
        ("address mask request", Icmpv4Kind::Other(17, 0), &[0; 4]),
        ("unknown message", Icmpv4Kind::Other(42, 0), &[0; 4]),
        ("unassigned message", Icmpv4Kind::Other(200, 0), &[0; 4]),
    ] {
        let packet = Inet::icmp(cases.source(), RIGHT_HOST, kind, 0, body).ttl(1);
        cases.inet(format!("TTL 1, {name}"), &packet);
        let packet = Inet::icmp(cases.source(), NOWHERE, kind, 0, body);
        cases.inet(format!("no route, {name}"), &packet);
    }
    let packet = Inet::new(cases.source(), NOWHERE, ipv4::protocol::ICMP, vec![]);
    cases.inet("no route, ICMP without a type", &packet);
    let packet = Inet::new(cases.source(), NOWHERE, ipv4::protocol::ICMP, vec![8]);
    cases.inet("no route, ICMP of one byte", &packet);
}

fn too_big(cases: &mut Cases) {
    let long = |cases: &mut Cases, payload: usize| {
        cases.udp(NARROW_HOST).payload((0..payload).map(|at| at as u8).collect())
    };
    const FITS: usize = 1280 - 28;
    for (name, packet) in [
        ("fits exactly", long(cases, FITS)),
        ("a byte too big", long(cases, FITS + 1)),
        ("much too big", long(cases, 1472)),
        ("too big, type of service", long(cases, 1400).tos(0xb9)),
        ("too big, TTL 1", long(cases, 1400).ttl(1)),
        ("a byte too big, may be fragmented", long(cases, FITS + 1).fragment(0)),
        ("much too big, may be fragmented", long(cases, 1472).fragment(0).tos(0x03)),
        ("too big, a first fragment", long(cases, 1400).fragment(MORE_FRAGMENTS)),
        ("too big, a middle fragment", long(cases, 1400).fragment(MORE_FRAGMENTS | 100)),
        ("too big, a last fragment", long(cases, 1401).fragment(100)),
        ("too big, a last fragment not to be fragmented", long(cases, 1401).fragment(100 | DONT_FRAGMENT)),
        ("too big, may be fragmented, no operation", long(cases, 1400).fragment(0).options(&[1, 1, 1, 0])),
        (
            "too big, may be fragmented, one option copied and one not",
            long(cases, 1400).fragment(0).options(&[0x9e, 4, 1, 2, 0x1e, 4, 3, 4, 0x9f, 3, 5, 0]),
        ),
        ("too big, not to be fragmented, option", long(cases, 1400).options(&[0x9e, 4, 1, 2])),
    ] {
        cases.inet(name, &packet);
    }
    let packet = Inet::icmp(cases.source(), NARROW_HOST, Icmpv4Kind::NetUnreachable, 0, &[5; 1400]);
    cases.inet("too big, an error", &packet);
}

fn martians(cases: &mut Cases) {
    for source in [
        "0.0.0.0",
        "0.1.2.3",
        "127.0.0.1",
        "224.0.0.1",
        "239.1.1.1",
        "240.0.0.1",
        "255.255.255.255",
        "169.254.1.1",
        "10.0.1.1",
        "10.0.2.1",
        "10.0.1.255",
    ] {
        let from = |destination| Inet::udp(source.parse().expect("an address"), destination);
        cases.inet(format!("from {source}"), &from(RIGHT_HOST));
        cases.inet(format!("from {source}, TTL 1"), &from(RIGHT_HOST).ttl(1));
        cases.inet(format!("from {source}, no route"), &from(NOWHERE));
        cases.inet(format!("from {source}, to the router"), &from(topology::inet(LEFT, ROUTER)));
    }
    for destination in [
        "0.0.0.0",
        "0.1.2.3",
        "127.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "169.254.1.1",
        "224.0.0.5",
        "224.0.1.1",
        "239.1.1.1",
        "10.0.2.255",
        "10.0.1.255",
    ] {
        let packet = cases.udp(destination);
        cases.inet(format!("to {destination}"), &packet);
        let packet = cases.udp(destination).ttl(1);
        cases.inet(format!("to {destination}, TTL 1"), &packet);
    }
}
