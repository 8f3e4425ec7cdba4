//! IPv4 to the router itself.

use fullview_plane::wire::icmp::Icmpv4Kind;

use super::Cases;
use crate::frames::{Inet, MORE_FRAGMENTS};
use crate::topology::{self, LEFT, NARROW, RIGHT, ROUTER};

pub fn add(cases: &mut Cases) {
    echo(cases);
    closed(cases);
}

fn request(cases: &mut Cases, side: usize) -> Inet {
    let (source, router) = (cases.source(), topology::inet(side, ROUTER));
    Inet::icmp(source, router, Icmpv4Kind::EchoRequest, 0x0102_0003, b"to be sent back")
}

fn echo(cases: &mut Cases) {
    for (name, packet) in [
        ("", request(cases, LEFT)),
        (" of another link", request(cases, RIGHT)),
        (" of the narrow link", request(cases, NARROW)),
        (", TTL 1", request(cases, LEFT).ttl(1)),
        (", TTL 0", request(cases, LEFT).ttl(0)),
        (", type of service", request(cases, LEFT).tos(0xbb)),
        (", may be fragmented", request(cases, LEFT).fragment(0)),
        (", no operation", request(cases, LEFT).options(&[1, 1, 1, 0])),
        (", first fragment", request(cases, LEFT).fragment(MORE_FRAGMENTS)),
        (", last fragment", request(cases, LEFT).fragment(9)),
    ] {
        cases.inet(format!("echo{name}"), &packet);
    }
    let router = topology::inet(LEFT, ROUTER);
    let packet = Inet::icmp(cases.source(), router, Icmpv4Kind::EchoRequest, 7, &[0x5a; 1472]);
    cases.inet("echo, full frame", &packet);
    let packet = Inet::icmp(cases.source(), router, Icmpv4Kind::EchoRequest, 7, &[]);
    cases.inet("echo without data", &packet);
    let packet = Inet::icmp(cases.source(), router, Icmpv4Kind::Other(8, 3), 7, b"code");
    cases.inet("echo with a code", &packet);
    let packet = Inet::icmp([192, 0, 2, 9].into(), router, Icmpv4Kind::EchoRequest, 7, b"lost");
    cases.inet("echo without a route back", &packet);
    let mut packet = request(cases, LEFT);
    packet.payload[2] ^= 1;
    cases.inet("echo, checksum", &packet);
    let mut packet = request(cases, LEFT);
    packet.payload.truncate(7);
    cases.inet("echo, cut", &packet);
    let to = |destination: [u8; 4], cases: &mut Cases| {
        Inet::icmp(cases.source(), destination.into(), Icmpv4Kind::EchoRequest, 7, b"to all")
    };
    for destination in [[10, 0, 1, 255], [255, 255, 255, 255], [224, 0, 0, 1]] {
        let packet = to(destination, cases);
        cases.inet(format!("echo to {destination:?}"), &packet);
    }
}

fn closed(cases: &mut Cases) {
    let router = topology::inet(LEFT, ROUTER);
    let mut damaged = cases.udp(router);
    damaged.payload[6] ^= 1;
    let mut unsummed = cases.udp(router);
    unsummed.payload[6..8].fill(0);
    let mut short = cases.udp(router);
    short.payload.truncate(5);
    let mut long = cases.udp(router);
    long.payload[5] += 1;
    for (name, packet) in [
        ("closed port", cases.udp(router)),
        ("closed port of another link", cases.udp(topology::inet(RIGHT, ROUTER))),
        ("closed port, TTL 1", cases.udp(router).ttl(1)),
        ("closed port, long", cases.udp(router).payload(vec![1; 1472])),
        ("closed port, option", cases.udp(router).options(&[1, 1, 1, 0])),
        ("closed port, damaged datagram", damaged),
        ("closed port, no checksum", unsummed),
        ("closed port, datagram cut", short),
        ("closed port, datagram length beyond the packet", long),
        ("closed port, last fragment", cases.udp(router).fragment(9)),
        ("closed port, first fragment", cases.udp(router).fragment(MORE_FRAGMENTS)),
        ("unknown protocol to the router", cases.udp(router).protocol(253)),
        ("OSPF to the router", cases.udp(router).protocol(89)),
        ("TCP to the router", Inet::syn(cases.source(), router)),
        (
            "unknown message to the router",
            Inet::icmp(cases.source(), router, Icmpv4Kind::Other(42, 0), 0, &[0; 4]),
        ),
        ("timestamp request", Inet::icmp(cases.source(), router, Icmpv4Kind::Other(13, 0), 0, &[0; 12])),
        ("address mask request", Inet::icmp(cases.source(), router, Icmpv4Kind::Other(17, 0), 0, &[0; 4])),
        (
            "echo reply to the router",
            Inet::icmp(cases.source(), router, Icmpv4Kind::EchoReply, 0, b"unasked"),
        ),
        ("datagram to a broadcast", cases.udp("10.0.1.255")),
        ("datagram to all hosts", cases.udp("224.0.0.1")),
        ("unknown protocol to a broadcast", cases.udp("10.0.1.255").protocol(253)),
    ] {
        cases.inet(name, &packet);
    }
}
