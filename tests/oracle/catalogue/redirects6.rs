//! IPv6 packets that leave by the link on which they arrived: which senders receive a redirect, and of which form.
//!
//! Routers limit redirects by the sender and by the destination, so cases share neither.

use std::net::Ipv6Addr;

use fullview_plane::wire::ethernet::EtherType;
use fullview_plane::wire::icmpv6::Icmpv6Kind;
use fullview_plane::wire::ndp::{self, Builder, LinkAddress};

use super::redirects::SENDER;
use super::{Cases, IntoInet6, Step};
use crate::frames::{Inet6, ethernet};
use crate::topology::{self, LEFT, RIGHT, ROUTER, STATION, STATION_LOCAL, router_mac};

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;

pub fn add(cases: &mut Cases) {
    transit(cases);
    extensions_and_errors(cases);
    senders(cases);
    destinations(cases);
}

/// Returns a sender on the link that no other case uses.
fn sender(cases: &mut Cases) -> Ipv6Addr {
    cases.sources += 1;
    topology::inet6(LEFT, 0x100 + cases.sources)
}

/// Returns a destination behind the station on the left, whose route has its link-local address as the gateway.
fn behind(cases: &mut Cases) -> Ipv6Addr {
    cases.sources += 1;
    Ipv6Addr::new(0x2001, 2, 0, 0xe, 0, 0, 0, cases.sources)
}

/// Makes a datagram that takes the detour by the router.
fn udp(cases: &mut Cases) -> Inet6 {
    Inet6::udp(sender(cases), behind(cases))
}

fn frame(packet: &Inet6) -> Step {
    Step::Send(LEFT, ethernet(router_mac(LEFT), SENDER, EtherType::IPV6, &packet.bytes()))
}

/// The router learns the sender from its request for the router's address.
fn asks(sender: Ipv6Addr) -> Step {
    let own = topology::inet6(LEFT, ROUTER.into());
    let message = Builder::neighbor(Icmpv6Kind::NeighborSolicitation, 0, own.to_bits());
    let message = message.link_address(LinkAddress::Source, SENDER).build();
    frame(&Inet6::summed(sender, own, message).hop_limit(255))
}

/// The sender answers the router's request.
fn answers(sender: Ipv6Addr, router: Ipv6Addr) -> Step {
    let flags = ndp::SOLICITED | ndp::OVERRIDE;
    let message = Builder::neighbor(Icmpv6Kind::NeighborAdvertisement, flags, sender.to_bits());
    let message = message.link_address(LinkAddress::Target, SENDER).build();
    frame(&Inet6::summed(sender, router, message).hop_limit(255))
}

/// Adds a case of a packet from a sender that the router knows.
fn known(cases: &mut Cases, name: &str, packet: &Inet6) {
    cases.steps(format!("redirect6: {name}"), vec![asks(packet.source), frame(packet)]);
}

fn transit(cases: &mut Cases) {
    for (name, packet) in [
        ("gateway", udp(cases)),
        ("class and flow", udp(cases).class_and_flow(0xb8, 0x12345)),
        ("no whole units", udp(cases).payload(vec![3; 21])),
        ("as long as the quote", udp(cases).payload(vec![3; 1136])),
        ("longer than the quote", udp(cases).payload(vec![3; 1144])),
        ("full frame", udp(cases).payload(vec![3; 1452])),
        ("hop limit 2", udp(cases).hop_limit(2)),
        ("hop limit 1", udp(cases).hop_limit(1)),
        ("no payload", Inet6::new(sender(cases), behind(cases), 59, vec![])),
    ] {
        known(cases, name, &packet);
    }
    let packet = Inet6::udp(sender(cases), "2001:2:0:9::1".inet6());
    known(cases, "out by another link", &packet);
    let packet = Inet6::udp(sender(cases), "2001:2:0:8::1".inet6());
    known(cases, "gateway without a link-local address", &packet);
}

fn extensions_and_errors(cases: &mut Cases) {
    let rows: [(&str, u8, &[u8]); 4] = [
        ("router alert", HOP_BY_HOP, &[0, 0, 5, 2, 0, 0, 1, 0]),
        ("routing header", ROUTING, &[0, 0, 0, 1, 0, 0, 0, 0]),
        ("first fragment", FRAGMENT, &[0, 0, 0, 1, 0, 0, 0, 9]),
        ("last fragment", FRAGMENT, &[0, 0, 0, 8, 0, 0, 0, 9]),
    ];
    for (name, kind, header) in rows {
        let packet = udp(cases).extension(kind, header);
        known(cases, name, &packet);
    }
    for (name, kind) in [
        ("echo request", Icmpv6Kind::EchoRequest),
        ("no route", Icmpv6Kind::NoRoute),
        ("redirect", Icmpv6Kind::Redirect),
    ] {
        let quoted = Inet6::udp(behind(cases), sender(cases)).bytes();
        let packet = Inet6::icmp(sender(cases), behind(cases), kind, 0, &quoted);
        known(cases, name, &packet);
    }
}

fn senders(cases: &mut Cases) {
    let packet = udp(cases);
    let own = topology::inet6(LEFT, ROUTER.into());
    let steps = vec![frame(&packet), answers(packet.source, own)];
    cases.steps("redirect6: a sender that has to be asked for", steps);
    for source in ["2001:db8:1::2", "2001:2:0:8::7", "2001:db8:2::2", "2001:2:0:ff::9", "2001:db8:1::1"] {
        let packet = Inet6::udp(source.inet6(), behind(cases));
        cases.steps(format!("redirect6: from {source}"), vec![frame(&packet)]);
    }
    for source in ["ff02::1", "::", "::1"] {
        let packet = Inet6::udp(source.inet6(), behind(cases));
        cases.steps(format!("redirect6: from {source}"), vec![frame(&packet)]);
    }
    let packet = Inet6::udp(STATION_LOCAL, behind(cases));
    cases.steps("redirect6: from a link-local address", vec![frame(&packet)]);
    let packet = Inet6::udp(STATION_LOCAL, topology::inet6(RIGHT, STATION.into()));
    cases.steps("redirect6: from a link-local address, out by another link", vec![frame(&packet)]);
}

fn destinations(cases: &mut Cases) {
    let packet = Inet6::udp(sender(cases), topology::inet6(LEFT, STATION.into()));
    known(cases, "neighbour", &packet);
    let packet = Inet6::udp(sender(cases), sender(cases));
    let own = topology::inet6(LEFT, ROUTER.into());
    cases.steps(
        "redirect6: neighbour that has to be asked for",
        vec![asks(packet.source), frame(&packet), answers(packet.destination, own)],
    );
    let source = sender(cases);
    known(cases, "to the sender itself", &Inet6::udp(source, source));
    for destination in ["ff02::9", "ff0e::1", "2001:db8:1::1"] {
        let packet = Inet6::udp(sender(cases), destination.inet6());
        known(cases, &format!("to {destination}"), &packet);
    }
}
