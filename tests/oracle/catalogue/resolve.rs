//! Neighbours that the router has to resolve: packets wait for the answer, or their senders receive an error.

use std::net::{Ipv4Addr, Ipv6Addr};

use fullview_plane::wire::arp::{ArpOperation, ArpPacket};
use fullview_plane::wire::ethernet::{EtherType, Mac};
use fullview_plane::wire::icmpv6::Icmpv6Kind;
use fullview_plane::wire::ndp::{self, Builder, LinkAddress};

use super::{Cases, Step};
use crate::frames::{Inet, Inet6, ethernet};
use crate::topology::{self, LEFT, NARROW, RIGHT, ROUTER, SIDES, router_mac};

const NEIGHBOUR: Mac = Mac([2, 0, 0, 0, 3, 3]);

pub fn add(cases: &mut Cases) {
    answered(cases);
    unanswered(cases);
    changed(cases);
    learned_from_requests(cases);
}

fn reply(sender: Ipv4Addr, mac: Mac) -> Vec<u8> {
    let (own, own_mac) = (topology::inet(RIGHT, ROUTER), router_mac(RIGHT));
    let message = ArpPacket {
        operation: ArpOperation::Reply,
        sender_mac: mac,
        sender: sender.to_bits(),
        target_mac: own_mac,
        target: own.to_bits(),
    };
    ethernet(own_mac, mac, EtherType::ARP, &message.bytes())
}

fn advertisement(target: Ipv6Addr, flags: u32, mac: Mac) -> Vec<u8> {
    let message = Builder::neighbor(Icmpv6Kind::NeighborAdvertisement, flags, target.to_bits());
    let message = message.link_address(LinkAddress::Target, mac).build();
    let packet = Inet6::summed(target, topology::inet6(RIGHT, ROUTER.into()), message).hop_limit(255);
    ethernet(router_mac(RIGHT), mac, EtherType::IPV6, &packet.bytes())
}

fn left(packet: &Inet) -> Step {
    Step::Send(LEFT, packet.frame_from(LEFT))
}

fn left6(packet: &Inet6) -> Step {
    Step::Send(LEFT, packet.frame_from(LEFT))
}

fn answered(cases: &mut Cases) {
    let (host, host6) = (topology::inet(RIGHT, 50), topology::inet6(RIGHT, 0x50));
    let packets = [cases.udp(host), cases.udp(host).ttl(9), cases.udp(host)];
    cases.steps("resolve: three packets wait, then go", {
        let mut steps: Vec<_> = packets.iter().map(left).collect();
        steps.extend([Step::Send(RIGHT, reply(host, NEIGHBOUR)), left(&packets[1])]);
        steps
    });
    let packets = [cases.udp6(host6), cases.udp6(host6).hop_limit(9)];
    let flags = ndp::SOLICITED | ndp::OVERRIDE;
    cases.steps("resolve: two packets wait, then go, inet6", {
        let mut steps: Vec<_> = packets.iter().map(left6).collect();
        steps.extend([Step::Send(RIGHT, advertisement(host6, flags, NEIGHBOUR)), left6(&packets[1])]);
        steps
    });
    let host = topology::inet(RIGHT, 51);
    let expired = Inet::udp(host, topology::inet(RIGHT, 52)).ttl(1);
    cases.steps(
        "resolve: an error waits for its addressee",
        vec![
            Step::Send(RIGHT, Inet { source: host, ..expired }.frame_from(RIGHT)),
            Step::Send(RIGHT, reply(host, NEIGHBOUR)),
        ],
    );
}

/// These cases use the link on which the kernel repeats its request within seconds, not after a minute.
fn unanswered(cases: &mut Cases) {
    let mut awaited = [0; SIDES.len()];
    (awaited[LEFT], awaited[NARROW]) = (1, 2);
    let packet = cases.udp(topology::inet(NARROW, 60));
    cases.steps("resolve: no answer", vec![left(&packet), Step::Wait(awaited)]);
    let packet = cases.udp6(topology::inet6(NARROW, 0x60));
    cases.steps("resolve: no answer, inet6", vec![left6(&packet), Step::Wait(awaited)]);
}

fn changed(cases: &mut Cases) {
    let (host, host6) = (topology::inet(RIGHT, 50), topology::inet6(RIGHT, 0x50));
    let other = Mac([2, 0, 0, 0, 3, 4]);
    let packet = cases.udp6(host6);
    let next = |flags, mac| vec![Step::Send(RIGHT, advertisement(host6, flags, mac)), left6(&packet)];
    cases.steps("resolve: another address is not believed without override", next(ndp::SOLICITED, other));
    cases.steps("resolve: with override it is", next(ndp::SOLICITED | ndp::OVERRIDE, other));
    let packet = cases.udp(host);
    cases.steps(
        "resolve: a gratuitous reply too early",
        vec![Step::Send(RIGHT, reply(host, other)), left(&packet)],
    );
}

fn learned_from_requests(cases: &mut Cases) {
    let (host, own) = (topology::inet(RIGHT, 70), topology::inet(RIGHT, ROUTER));
    let request = ArpPacket {
        operation: ArpOperation::Request,
        sender_mac: NEIGHBOUR,
        sender: host.to_bits(),
        target_mac: Mac::default(),
        target: own.to_bits(),
    };
    let request = ethernet(Mac::BROADCAST, NEIGHBOUR, EtherType::ARP, &request.bytes());
    let packet = cases.udp(host);
    cases.steps("resolve: who asked is known", vec![Step::Send(RIGHT, request), left(&packet)]);

    let (host, own) = (topology::inet6(RIGHT, 0x70), topology::inet6(RIGHT, ROUTER.into()));
    let message = Builder::neighbor(Icmpv6Kind::NeighborSolicitation, 0, own.to_bits());
    let message = message.link_address(LinkAddress::Source, NEIGHBOUR).build();
    let asked = Inet6::summed(host, own, message).hop_limit(255);
    let asked = ethernet(router_mac(RIGHT), NEIGHBOUR, EtherType::IPV6, &asked.bytes());
    let packet = cases.udp6(host);
    cases.steps("resolve: who asked is known, inet6", vec![Step::Send(RIGHT, asked), left6(&packet)]);
}
