//! Packets that go back by the link they came in by: whose senders are told of the shorter way, and how.
//!
//! Routers limit redirects by the sender, and of IPv6 by the destination too, so each case has both of its own.

use std::net::{Ipv4Addr, Ipv6Addr};

use fullview_plane::wire::arp::{Message, Operation};
use fullview_plane::wire::ethernet::{EtherType, Mac};
use fullview_plane::wire::icmp;
use fullview_plane::wire::icmpv6;
use fullview_plane::wire::ndp::{self, Builder, LinkAddress};

use super::{Cases, IntoInet, IntoInet6, Step};
use crate::frames::{DONT_FRAGMENT, Inet, Inet6, MORE_FRAGMENTS, ethernet};
use crate::topology::{self, LEFT, RIGHT, ROUTER, STATION, STATION_LOCAL, router_mac};

/// All senders on the link, whatever their addresses.
const SENDER: Mac = Mac([2, 0, 0, 0, 3, 5]);
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;

pub fn add(cases: &mut Cases) {
    inet(cases);
    inet_options(cases);
    inet_fragments_and_errors(cases);
    inet_senders(cases);
    inet_destinations(cases);
    inet6(cases);
    inet6_extensions_and_errors(cases);
    inet6_senders(cases);
    inet6_destinations(cases);
}

/// A sender on the link that nobody else uses.
fn sender(cases: &mut Cases) -> Ipv4Addr {
    cases.sources += 1;
    topology::inet(LEFT, 10 + u8::try_from(cases.sources).expect("fewer senders than addresses"))
}

/// As [`sender`], for IPv6.
fn sender6(cases: &mut Cases) -> Ipv6Addr {
    cases.sources += 1;
    topology::inet6(LEFT, 0x100 + cases.sources)
}

/// Behind the station on the left.
fn behind(cases: &mut Cases) -> Ipv4Addr {
    cases.sources += 1;
    Ipv4Addr::from([198, 18, 200, cases.sources as u8])
}

/// Behind the station on the left, which the route knows by its link-local address.
fn behind6(cases: &mut Cases) -> Ipv6Addr {
    cases.sources += 1;
    Ipv6Addr::new(0x2001, 2, 0, 0xe, 0, 0, 0, cases.sources)
}

/// A datagram that takes the detour.
fn udp(cases: &mut Cases) -> Inet {
    Inet::udp(sender(cases), behind(cases))
}

/// As [`udp`], for IPv6.
fn udp6(cases: &mut Cases) -> Inet6 {
    Inet6::udp(sender6(cases), behind6(cases))
}

fn frame(packet: &Inet) -> Step {
    Step::Send(LEFT, ethernet(router_mac(LEFT), SENDER, EtherType::IPV4, &packet.bytes()))
}

fn frame6(packet: &Inet6) -> Step {
    Step::Send(LEFT, ethernet(router_mac(LEFT), SENDER, EtherType::IPV6, &packet.bytes()))
}

/// The sender makes itself known: it asks for the router.
fn asks(sender: Ipv4Addr) -> Step {
    let (own, target_mac) = (topology::inet(LEFT, ROUTER).to_bits(), Mac::default());
    let (operation, sender) = (Operation::Request, sender.to_bits());
    let message = Message { operation, sender_mac: SENDER, sender, target_mac, target: own };
    Step::Send(LEFT, ethernet(Mac::BROADCAST, SENDER, EtherType::ARP, &message.bytes()))
}

/// As [`asks`], for IPv6.
fn asks6(sender: Ipv6Addr) -> Step {
    let own = topology::inet6(LEFT, ROUTER.into());
    let message = Builder::neighbor(icmpv6::Kind::NeighborSolicitation, 0, own.to_bits());
    let message = message.link_address(LinkAddress::Source, SENDER).build();
    frame6(&Inet6::summed(sender, own, message).hop_limit(255))
}

/// The answer to the router's question.
fn answers(sender: Ipv4Addr) -> Step {
    let (target, target_mac) = (topology::inet(LEFT, ROUTER).to_bits(), router_mac(LEFT));
    let (operation, sender) = (Operation::Reply, sender.to_bits());
    let message = Message { operation, sender_mac: SENDER, sender, target_mac, target };
    Step::Send(LEFT, ethernet(target_mac, SENDER, EtherType::ARP, &message.bytes()))
}

/// As [`answers`], for IPv6.
fn answers6(sender: Ipv6Addr, router: Ipv6Addr) -> Step {
    let flags = ndp::SOLICITED | ndp::OVERRIDE;
    let message = Builder::neighbor(icmpv6::Kind::NeighborAdvertisement, flags, sender.to_bits());
    let message = message.link_address(LinkAddress::Target, SENDER).build();
    frame6(&Inet6::summed(sender, router, message).hop_limit(255))
}

/// A packet of a sender that the router knows.
fn known(cases: &mut Cases, name: &str, packet: &Inet) {
    cases.steps(format!("redirect: {name}"), vec![asks(packet.source), frame(packet)]);
}

/// As [`known`], for IPv6.
fn known6(cases: &mut Cases, name: &str, packet: &Inet6) {
    cases.steps(format!("redirect6: {name}"), vec![asks6(packet.source), frame6(packet)]);
}

fn inet(cases: &mut Cases) {
    for (name, packet) in [
        ("gateway", udp(cases)),
        ("type of service", udp(cases).tos(0xbf)),
        ("may be fragmented", udp(cases).fragment(0)),
        ("as long as the quote", udp(cases).payload(vec![3; 520])),
        ("a byte longer than the quote", udp(cases).payload(vec![3; 521])),
        ("full frame", udp(cases).payload(vec![3; 1472])),
        ("TTL 2", udp(cases).ttl(2)),
        ("TTL 1", udp(cases).ttl(1)),
        ("no payload", Inet::new(sender(cases), behind(cases), 253, vec![])),
    ] {
        known(cases, name, &packet);
    }
    let packet = udp(cases);
    let padded = [ethernet(router_mac(LEFT), SENDER, EtherType::IPV4, &packet.bytes()), vec![0; 9]].concat();
    cases.steps("redirect: padding", vec![asks(packet.source), Step::Send(LEFT, padded)]);
    let packet = udp(cases);
    let broadcast = ethernet(Mac::BROADCAST, SENDER, EtherType::IPV4, &packet.bytes());
    cases.steps("redirect: in a broadcast", vec![asks(packet.source), Step::Send(LEFT, broadcast)]);
    let packet = Inet::udp(sender(cases), [198, 19, 0, 1].into());
    known(cases, "out by another link", &packet);
}

fn inet_options(cases: &mut Cases) {
    let rows: [(&str, &[u8]); 7] = [
        ("no operation", &[1, 1, 1, 0]),
        ("router alert", &[148, 4, 0, 0]),
        ("record route", &[7, 7, 4, 0, 0, 0, 0, 0]),
        ("loose source route", &[131, 7, 4, 10, 0, 1, 2, 0]),
        ("strict source route", &[137, 7, 4, 10, 0, 1, 2, 0]),
        ("unknown", &[0x9e, 4, 1, 2]),
        ("length beyond the header", &[0x9e, 5, 1, 2]),
    ];
    for (name, options) in rows {
        let packet = udp(cases).options(options);
        known(cases, &format!("option {name}"), &packet);
    }
    let packet = udp(cases).options(&[1; 40]).payload(vec![3; 600]);
    known(cases, "the longest header", &packet);
}

fn inet_fragments_and_errors(cases: &mut Cases) {
    for (name, fragment) in [
        ("first fragment", MORE_FRAGMENTS),
        ("middle fragment", MORE_FRAGMENTS | 3),
        ("last fragment, not to be fragmented", DONT_FRAGMENT | 9),
    ] {
        let packet = udp(cases).fragment(fragment);
        known(cases, name, &packet);
    }
    for (name, kind) in [
        ("echo request", icmp::Kind::EchoRequest),
        ("net unreachable", icmp::Kind::NetUnreachable),
        ("redirect", icmp::Kind::Redirect),
        ("unassigned message", icmp::Kind::Other(200, 0)),
    ] {
        let quoted = Inet::udp(behind(cases), sender(cases)).bytes();
        let packet = Inet::icmp(sender(cases), behind(cases), kind, 0, &quoted[..28]);
        known(cases, name, &packet);
    }
}

fn inet_senders(cases: &mut Cases) {
    let packet = udp(cases);
    let steps = vec![frame(&packet), answers(packet.source)];
    cases.steps("redirect: a sender that has to be asked for", steps);
    let packet = Inet::udp(topology::inet(LEFT, 0), behind(cases));
    known(cases, "from 10.0.1.0", &packet);
    for source in [
        "10.0.1.2",
        "198.18.7.7",
        "10.0.2.9",
        "192.0.2.9",
        "10.0.1.255",
        "10.0.1.1",
        "255.255.255.255",
        "224.0.0.1",
        "0.0.0.0",
        "127.0.0.1",
    ] {
        let packet = Inet::udp(source.inet(), behind(cases));
        cases.steps(format!("redirect: from {source}"), vec![frame(&packet)]);
    }
}

fn inet_destinations(cases: &mut Cases) {
    let packet = Inet::udp(sender(cases), topology::inet(LEFT, STATION));
    known(cases, "neighbour", &packet);
    let packet = Inet::udp(sender(cases), sender(cases));
    cases.steps(
        "redirect: neighbour that has to be asked for",
        vec![asks(packet.source), frame(&packet), answers(packet.destination)],
    );
    let source = sender(cases);
    known(cases, "to the sender itself", &Inet::udp(source, source));
    for destination in ["10.0.1.255", "224.0.0.9", "239.1.1.1", "255.255.255.255", "10.0.1.1"] {
        let packet = Inet::udp(sender(cases), destination.inet());
        known(cases, &format!("to {destination}"), &packet);
    }
}

fn inet6(cases: &mut Cases) {
    for (name, packet) in [
        ("gateway", udp6(cases)),
        ("class and flow", udp6(cases).class_and_flow(0xb8, 0x12345)),
        ("no whole units", udp6(cases).payload(vec![3; 21])),
        ("as long as the quote", udp6(cases).payload(vec![3; 1136])),
        ("longer than the quote", udp6(cases).payload(vec![3; 1144])),
        ("full frame", udp6(cases).payload(vec![3; 1452])),
        ("hop limit 2", udp6(cases).hop_limit(2)),
        ("hop limit 1", udp6(cases).hop_limit(1)),
        ("no payload", Inet6::new(sender6(cases), behind6(cases), 59, vec![])),
    ] {
        known6(cases, name, &packet);
    }
    let packet = Inet6::udp(sender6(cases), "2001:2:0:9::1".inet6());
    known6(cases, "out by another link", &packet);
    let packet = Inet6::udp(sender6(cases), "2001:2:0:8::1".inet6());
    known6(cases, "gateway without a link-local address", &packet);
}

fn inet6_extensions_and_errors(cases: &mut Cases) {
    let rows: [(&str, u8, &[u8]); 4] = [
        ("router alert", HOP_BY_HOP, &[0, 0, 5, 2, 0, 0, 1, 0]),
        ("routing header", ROUTING, &[0, 0, 0, 1, 0, 0, 0, 0]),
        ("first fragment", FRAGMENT, &[0, 0, 0, 1, 0, 0, 0, 9]),
        ("last fragment", FRAGMENT, &[0, 0, 0, 8, 0, 0, 0, 9]),
    ];
    for (name, kind, header) in rows {
        let packet = udp6(cases).extension(kind, header);
        known6(cases, name, &packet);
    }
    for (name, kind) in [
        ("echo request", icmpv6::Kind::EchoRequest),
        ("no route", icmpv6::Kind::NoRoute),
        ("redirect", icmpv6::Kind::Redirect),
    ] {
        let quoted = Inet6::udp(behind6(cases), sender6(cases)).bytes();
        let packet = Inet6::icmp(sender6(cases), behind6(cases), kind, 0, &quoted);
        known6(cases, name, &packet);
    }
}

fn inet6_senders(cases: &mut Cases) {
    let packet = udp6(cases);
    let own = topology::inet6(LEFT, ROUTER.into());
    let steps = vec![frame6(&packet), answers6(packet.source, own)];
    cases.steps("redirect6: a sender that has to be asked for", steps);
    for source in ["2001:db8:1::2", "2001:2:0:8::7", "2001:db8:2::2", "2001:2:0:ff::9", "2001:db8:1::1"] {
        let packet = Inet6::udp(source.inet6(), behind6(cases));
        cases.steps(format!("redirect6: from {source}"), vec![frame6(&packet)]);
    }
    for source in ["ff02::1", "::", "::1"] {
        let packet = Inet6::udp(source.inet6(), behind6(cases));
        cases.steps(format!("redirect6: from {source}"), vec![frame6(&packet)]);
    }
    let packet = Inet6::udp(STATION_LOCAL, behind6(cases));
    cases.steps("redirect6: from a link-local address", vec![frame6(&packet)]);
    let packet = Inet6::udp(STATION_LOCAL, topology::inet6(RIGHT, STATION.into()));
    cases.steps("redirect6: from a link-local address, out by another link", vec![frame6(&packet)]);
}

fn inet6_destinations(cases: &mut Cases) {
    let packet = Inet6::udp(sender6(cases), topology::inet6(LEFT, STATION.into()));
    known6(cases, "neighbour", &packet);
    let packet = Inet6::udp(sender6(cases), sender6(cases));
    let own = topology::inet6(LEFT, ROUTER.into());
    cases.steps(
        "redirect6: neighbour that has to be asked for",
        vec![asks6(packet.source), frame6(&packet), answers6(packet.destination, own)],
    );
    let source = sender6(cases);
    known6(cases, "to the sender itself", &Inet6::udp(source, source));
    for destination in ["ff02::9", "ff0e::1", "2001:db8:1::1"] {
        let packet = Inet6::udp(sender6(cases), destination.inet6());
        known6(cases, &format!("to {destination}"), &packet);
    }
}
