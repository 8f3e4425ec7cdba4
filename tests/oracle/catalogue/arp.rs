//! ARP: requests of every kind, and the replies to them.

use std::net::Ipv4Addr;

use fullview_plane::wire::arp::{ArpOperation, ArpPacket};
use fullview_plane::wire::ethernet::{EtherType, Mac};

use super::{Cases, IntoInet};
use crate::frames::ethernet;
use crate::topology::{self, LEFT, RIGHT, ROUTER, STATION, router_mac, station_mac};

fn message(operation: ArpOperation, sender: Ipv4Addr, target: Ipv4Addr) -> ArpPacket {
    let (sender_mac, target_mac) = (station_mac(LEFT), Mac::default());
    ArpPacket { operation, sender_mac, sender: sender.to_bits(), target_mac, target: target.to_bits() }
}

/// Returns the frame that broadcasts the message on the link.
fn broadcast(message: &ArpPacket) -> Vec<u8> {
    ethernet(Mac::BROADCAST, message.sender_mac, EtherType::ARP, &message.bytes())
}

pub fn add(cases: &mut Cases) {
    requests(cases);
    replies(cases);
    damage(cases);
}

fn requests(cases: &mut Cases) {
    let (own, station) = (topology::inet(LEFT, ROUTER), topology::inet(LEFT, STATION));
    for (name, sender, target) in [
        ("own address", station, own),
        ("foreign address", station, topology::inet(LEFT, 77)),
        ("routed address", station, "198.19.0.1".inet()),
        ("address of another link", station, topology::inet(RIGHT, ROUTER)),
        ("broadcast address", station, "10.0.1.255".inet()),
        ("group", station, "224.0.0.1".inet()),
        ("loopback", station, "127.0.0.1".inet()),
        ("probe of own address", Ipv4Addr::UNSPECIFIED, own),
        ("probe of a foreign address", Ipv4Addr::UNSPECIFIED, topology::inet(LEFT, 78)),
        ("from off the link", "192.0.2.77".inet(), own),
        ("from a routed network", "198.18.0.77".inet(), own),
        ("from own address", own, own),
        ("from own address for a foreign one", own, topology::inet(LEFT, 79)),
        ("from a broadcast address", "10.0.1.255".inet(), own),
        ("from a group", "224.0.0.9".inet(), own),
        ("from loopback", "127.0.0.9".inet(), own),
    ] {
        cases.frame(format!("arp: {name}"), broadcast(&message(ArpOperation::Request, sender, target)));
    }
    let asked = message(ArpOperation::Request, station, own);
    let to = |mac| ethernet(mac, asked.sender_mac, EtherType::ARP, &asked.bytes());
    cases.frame("arp: in a frame to the router", to(router_mac(LEFT)));
    cases.frame("arp: in a frame to another station", to(Mac([2, 0, 0, 0, 9, 9])));
    cases.frame("arp: padding", [to(Mac::BROADCAST), vec![0; 18]].concat());
    let other_mac = ArpPacket { sender_mac: Mac([2, 0, 0, 0, 9, 9]), ..asked };
    cases.frame("arp: from another MAC address than the frame's", {
        ethernet(Mac::BROADCAST, station_mac(LEFT), EtherType::ARP, &other_mac.bytes())
    });
}

fn replies(cases: &mut Cases) {
    let own = topology::inet(LEFT, ROUTER);
    let unasked = message(ArpOperation::Reply, topology::inet(LEFT, 80), own);
    cases.frame(
        "arp: unasked reply",
        ethernet(router_mac(LEFT), station_mac(LEFT), EtherType::ARP, &unasked.bytes()),
    );
    let gratuitous = message(ArpOperation::Reply, topology::inet(LEFT, 81), topology::inet(LEFT, 81));
    cases.frame("arp: gratuitous reply", broadcast(&gratuitous));
    let announced = message(ArpOperation::Request, topology::inet(LEFT, 82), topology::inet(LEFT, 82));
    cases.frame("arp: announcement", broadcast(&announced));
    let claimed = message(ArpOperation::Reply, own, own);
    cases.frame("arp: another station claims own address", broadcast(&claimed));
}

fn damage(cases: &mut Cases) {
    let good =
        message(ArpOperation::Request, topology::inet(LEFT, STATION), topology::inet(LEFT, ROUTER)).bytes();
    for (name, at, value) in [
        ("hardware type", 1, 6),
        ("protocol type", 2, 0x86),
        ("hardware length", 4, 8),
        ("protocol length", 5, 16),
        ("operation 3", 7, 3),
        ("operation 0", 7, 0),
    ] {
        let mut bytes = good;
        bytes[at] = value;
        cases.frame(
            format!("arp: {name}"),
            ethernet(Mac::BROADCAST, station_mac(LEFT), EtherType::ARP, &bytes),
        );
    }
    for len in [0, 8, 27] {
        let frame = ethernet(Mac::BROADCAST, station_mac(LEFT), EtherType::ARP, &good[..len]);
        cases.frame(format!("arp: cut to {len} bytes"), frame);
    }
}
