//! A router of two links and a VLAN, and frames for it.

use fullview_plane::wire::arp::ArpOperation;
use fullview_plane::wire::arp::ArpPacket;
use fullview_plane::wire::icmp::Icmpv4Kind;
use fullview_plane::wire::icmp::Icmpv4Message;
use fullview_plane::wire::icmpv6::Icmpv6Kind;
use fullview_plane::wire::icmpv6::Icmpv6Message;
use fullview_plane::wire::ipv4::Ipv4Packet;
use fullview_plane::wire::ipv6::Ipv6Packet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use fullview_plane::burst::{Arena, Burst};
use fullview_plane::interface::{Interface, InterfaceAddress};
use fullview_plane::wire::checksum::pseudo_ipv6;
use fullview_plane::wire::ethernet::{EtherType, Frame, HEADER, Mac};
use fullview_plane::wire::{icmp, ipv4, ipv6, ndp};
use fullview_router::host::config::{HostConfig, StaticNextHop, StaticRoute};
use fullview_router::host::router::StandaloneRouter;
use fullview_router::route::RouteAction;

pub const ROUTER: Mac = Mac([2, 0, 0, 0, 0, 1]);
pub const STATION: Mac = Mac([2, 0, 0, 0, 0, 2]);
pub const VLAN: u16 = 100;

pub fn address(text: &str) -> InterfaceAddress {
    let (ip, len) = text.split_once('/').unwrap();
    InterfaceAddress { ip: ip.parse().unwrap(), len: len.parse().unwrap() }
}

/// Interface `n` has the addresses 10.0.n.1/24, 2001:db8:n::1/64 and fe80::1. Interfaces 0 and 1 are ports, interface 2
/// is a VLAN of port 0.
pub fn interface(number: u16) -> Interface {
    let addresses =
        [format!("10.0.{number}.1/24"), format!("2001:db8:{number}::1/64"), "fe80::1/64".to_owned()];
    let addresses = addresses.iter().map(|text| address(text)).collect();
    let (port, vlan) = if number == 2 { (0, Some(VLAN)) } else { (number, None) };
    Interface { name: format!("link{number}"), vlan, addresses, ..Interface::new(port, ROUTER) }
}

pub fn config() -> HostConfig {
    let route = |network: &str, gateway: &str| StaticRoute {
        network: address(network),
        action: RouteAction::Forward(StaticNextHop::Gateway {
            ip: gateway.parse().unwrap(),
            interface: None,
        }),
    };
    let routes = vec![route("198.18.0.0/15", "10.0.1.2"), route("2001:2::/48", "2001:db8:1::2")];
    HostConfig { interfaces: (0..3).map(interface).collect(), routes, ..HostConfig::default() }
}

/// A router and its clock.
pub struct TestRouter {
    pub stack: StandaloneRouter,
    pub now: Duration,
}

impl TestRouter {
    pub fn new(config: &HostConfig) -> TestRouter {
        let now = Duration::from_secs(1);
        TestRouter { stack: StandaloneRouter::new(now, config).unwrap(), now }
    }

    /// Passes frames to a port of the router in one burst. Returns the frames it transmits, with their ports.
    pub fn send(&mut self, port: u16, frames: &[Vec<u8>]) -> Vec<(u16, Vec<u8>)> {
        const SPARE: usize = 64;
        let mut arena = Arena::new(frames.len() + SPARE);
        let (mut burst, mut free, mut out) = (Burst::new(), Burst::new(), Burst::new());
        for (slot, frame) in arena.packets().zip(frames.iter().map(Some).chain(std::iter::repeat(None))) {
            let Some(frame) = frame else {
                free.fill([slot].into_iter());
                continue;
            };
            slot.set_frame(frame);
            slot.port = port;
            burst.fill([slot].into_iter());
        }
        self.stack.process(self.now, &mut burst, &mut out, &mut free);
        out.iter().map(|packet| (packet.port, packet.frame().to_vec())).collect()
    }

    /// Advances the clock. Returns the frames that the router transmits.
    pub fn pass(&mut self, time: Duration) -> Vec<(u16, Vec<u8>)> {
        self.now += time;
        self.send(0, &[])
    }
}

pub fn ethernet(destination: Mac, ethertype: EtherType, payload: &[u8]) -> Vec<u8> {
    let mut bytes = [&[0; HEADER], payload].concat();
    let mut frame = Frame::new_unchecked(&mut bytes);
    frame.set_destination(destination);
    frame.set_source(STATION);
    frame.set_outer_ethertype(ethertype);
    bytes
}

pub fn tagged(mut frame: Vec<u8>) -> Vec<u8> {
    frame.splice(12..12, [0x81, 0x00].into_iter().chain(VLAN.to_be_bytes()));
    frame
}

pub fn v4(text: &str) -> Ipv4Addr {
    text.parse().unwrap()
}

pub fn v6(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

/// An IPv4 packet with eight bytes of an unknown protocol.
pub fn inet(source: &str, destination: &str, ttl: u8) -> Vec<u8> {
    inet_with(source, destination, ttl, 253, &[7; 8])
}

pub fn inet_with(source: &str, destination: &str, ttl: u8, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = [&[0; ipv4::HEADER], payload].concat();
    let total = bytes.len() as u16;
    let mut packet = Ipv4Packet::new_unchecked(&mut bytes);
    packet.set_header_len(ipv4::HEADER);
    packet.set_total_len(total);
    packet.set_ttl(ttl);
    packet.set_protocol(protocol);
    packet.set_source(v4(source).to_bits());
    packet.set_destination(v4(destination).to_bits());
    packet.fill_checksum();
    ethernet(ROUTER, EtherType::IPV4, &bytes)
}

pub fn echo(source: &str, destination: &str) -> Vec<u8> {
    let mut message = [0; icmp::HEADER + 4];
    let mut view = Icmpv4Message::new_unchecked(&mut message);
    view.set_kind(Icmpv4Kind::EchoRequest);
    view.set_echo(7, 1);
    view.fill_checksum();
    inet_with(source, destination, 9, ipv4::protocol::ICMP, &message)
}

/// An IPv6 packet with eight bytes of an unknown protocol.
pub fn inet6(source: &str, destination: &str, hops: u8) -> Vec<u8> {
    inet6_with(source, destination, hops, 253, &[7; 8])
}

pub fn inet6_with(source: &str, destination: &str, hops: u8, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = [&[0; ipv6::HEADER], payload].concat();
    let mut packet = Ipv6Packet::new_unchecked(&mut bytes);
    packet.set_class_and_flow(0, 0);
    packet.set_payload_len(payload.len() as u16);
    packet.set_next_header(protocol);
    packet.set_hop_limit(hops);
    packet.set_source(v6(source).to_bits());
    packet.set_destination(v6(destination).to_bits());
    let to = v6(destination);
    let mac = if to.is_multicast() { ndp::group_mac(to.to_bits()) } else { ROUTER };
    ethernet(mac, EtherType::IPV6, &bytes)
}

/// A message of neighbour discovery, with its checksum.
pub fn discovery(source: &str, destination: &str, mut message: Vec<u8>) -> Vec<u8> {
    let (from, to) = (v6(source).to_bits(), v6(destination).to_bits());
    let pseudo = pseudo_ipv6(from, to, ipv4::protocol::ICMPV6, message.len() as u32);
    Icmpv6Message::new_unchecked(&mut message).fill_checksum(pseudo);
    inet6_with(source, destination, ndp::HOP_LIMIT, ipv4::protocol::ICMPV6, &message)
}

pub fn arp(operation: ArpOperation, sender: &str, target: &str) -> Vec<u8> {
    let message = ArpPacket {
        operation,
        sender_mac: STATION,
        sender: v4(sender).to_bits(),
        target_mac: Mac::default(),
        target: v4(target).to_bits(),
    };
    let to = if operation == ArpOperation::Request { Mac::BROADCAST } else { ROUTER };
    ethernet(to, EtherType::ARP, &message.bytes())
}

/// The ARP message of a frame.
pub fn arp_of(frame: &[u8]) -> ArpPacket {
    let frame = Frame::new_checked(frame).unwrap();
    assert_eq!(frame.ethertype(), EtherType::ARP);
    ArpPacket::parse(frame.payload()).unwrap().unwrap()
}

/// Source, destination and kind of the ICMP message of a frame.
pub fn icmp_of(frame: &[u8]) -> (IpAddr, IpAddr, Icmpv4Kind) {
    let frame = Frame::new_checked(frame).unwrap();
    let packet = Ipv4Packet::new_checked(frame.payload()).unwrap();
    let message = Icmpv4Message::new_checked(packet.payload()).unwrap();
    assert!(packet.verify_checksum() && message.verify_checksum());
    let ip = |bits: u32| IpAddr::V4(bits.into());
    (ip(packet.source()), ip(packet.destination()), message.kind())
}

/// The ICMPv6 message of a frame: source, destination, kind and the whole message.
pub fn icmp6_of(frame: &[u8]) -> (Ipv6Addr, Ipv6Addr, Icmpv6Kind, Vec<u8>) {
    let frame = Frame::new_checked(frame).unwrap();
    let packet = Ipv6Packet::new_checked(frame.payload()).unwrap();
    let message = Icmpv6Message::new_checked(packet.payload()).unwrap();
    let len = packet.payload().len() as u32;
    assert!(message.verify_checksum(pseudo_ipv6(
        packet.source(),
        packet.destination(),
        packet.next_header(),
        len
    )));
    (packet.source().into(), packet.destination().into(), message.kind(), packet.payload().to_vec())
}
