//! IPv4 packets that leave by the link on which they arrived: which senders receive a redirect, and of which form.
//!
//! Routers limit redirects by the sender, so cases do not share senders.

use std::net::Ipv4Addr;

use fullview_plane::wire::arp::{ArpOperation, ArpPacket};
use fullview_plane::wire::ethernet::{EtherType, Mac};
use fullview_plane::wire::icmp::Icmpv4Kind;

use super::{Cases, IntoInet, Step};
use crate::frames::{DONT_FRAGMENT, Inet, MORE_FRAGMENTS, ethernet};
use crate::topology::{self, LEFT, ROUTER, STATION, router_mac};

/// The MAC address of all senders on the link.
pub const SENDER: Mac = Mac([2, 0, 0, 0, 3, 5]);

pub fn add(cases: &mut Cases) {
    transit(cases);
    options(cases);
    fragments_and_errors(cases);
    senders(cases);
    destinations(cases);
}

/// Returns a sender on the link that no other case uses.
fn sender(cases: &mut Cases) -> Ipv4Addr {
    cases.sources += 1;
    topology::inet(LEFT, 10 + u8::try_from(cases.sources).expect("fewer senders than addresses"))
}

/// Returns a destination behind the station on the left.
fn behind(cases: &mut Cases) -> Ipv4Addr {
    cases.sources += 1;
    Ipv4Addr::from([198, 18, 200, cases.sources as u8])
}

/// Makes a datagram that takes the detour by the router.
fn udp(cases: &mut Cases) -> Inet {
    Inet::udp(sender(cases), behind(cases))
}

fn frame(packet: &Inet) -> Step {
    Step::Send(LEFT, ethernet(router_mac(LEFT), SENDER, EtherType::IPV4, &packet.bytes()))
}

/// The router learns the sender from its request for the router's address.
fn asks(sender: Ipv4Addr) -> Step {
    let (own, target_mac) = (topology::inet(LEFT, ROUTER).to_bits(), Mac::default());
    let (operation, sender) = (ArpOperation::Request, sender.to_bits());
    let message = ArpPacket { operation, sender_mac: SENDER, sender, target_mac, target: own };
    Step::Send(LEFT, ethernet(Mac::BROADCAST, SENDER, EtherType::ARP, &message.bytes()))
}

/// The sender answers the router's request.
fn answers(sender: Ipv4Addr) -> Step {
    let (target, target_mac) = (topology::inet(LEFT, ROUTER).to_bits(), router_mac(LEFT));
    let (operation, sender) = (ArpOperation::Reply, sender.to_bits());
    let message = ArpPacket { operation, sender_mac: SENDER, sender, target_mac, target };
    Step::Send(LEFT, ethernet(target_mac, SENDER, EtherType::ARP, &message.bytes()))
}

/// Adds a case of a packet from a sender that the router knows.
fn known(cases: &mut Cases, name: &str, packet: &Inet) {
    cases.steps(format!("redirect: {name}"), vec![asks(packet.source), frame(packet)]);
}

fn transit(cases: &mut Cases) {
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

fn options(cases: &mut Cases) {
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

fn fragments_and_errors(cases: &mut Cases) {
    for (name, fragment) in [
        ("first fragment", MORE_FRAGMENTS),
        ("middle fragment", MORE_FRAGMENTS | 3),
        ("last fragment, not to be fragmented", DONT_FRAGMENT | 9),
    ] {
        let packet = udp(cases).fragment(fragment);
        known(cases, name, &packet);
    }
    for (name, kind) in [
        ("echo request", Icmpv4Kind::EchoRequest),
        ("net unreachable", Icmpv4Kind::NetUnreachable),
        ("redirect", Icmpv4Kind::Redirect),
        ("unassigned message", Icmpv4Kind::Other(200, 0)),
    ] {
        let quoted = Inet::udp(behind(cases), sender(cases)).bytes();
        let packet = Inet::icmp(sender(cases), behind(cases), kind, 0, &quoted[..28]);
        known(cases, name, &packet);
    }
}

fn senders(cases: &mut Cases) {
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

fn destinations(cases: &mut Cases) {
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
