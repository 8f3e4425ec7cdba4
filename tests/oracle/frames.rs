//! Frames to send. They are valid by default, and each field can be set to a wrong value.

use std::net::{Ipv4Addr, Ipv6Addr};

use fullview_plane::wire::checksum::{Sum, pseudo_ipv4, pseudo_ipv6};
use fullview_plane::wire::ethernet::{EtherType, Frame, HEADER, Mac};
use fullview_plane::wire::icmp::{self, Icmpv4Kind, Icmpv4Message};
use fullview_plane::wire::icmpv6::{self, Icmpv6Kind, Icmpv6Message};
use fullview_plane::wire::ipv4::{self, Ipv4Packet};
use fullview_plane::wire::ipv6::{self, Ipv6Packet};
use fullview_plane::wire::udp;

use crate::topology::{router_mac, station_mac};

/// Makes an Ethernet frame without padding.
pub fn ethernet(destination: Mac, source: Mac, ethertype: EtherType, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; HEADER];
    let mut frame = Frame::new_unchecked(&mut bytes);
    frame.set_destination(destination);
    frame.set_source(source);
    frame.set_outer_ethertype(ethertype);
    bytes.extend(payload);
    bytes
}

/// From a side's station to the router.
pub fn from_station(side: usize, ethertype: EtherType, payload: &[u8]) -> Vec<u8> {
    ethernet(router_mac(side), station_mac(side), ethertype, payload)
}

/// Inserts an 802.1Q tag into a frame.
pub fn tagged(mut frame: Vec<u8>, control: u16) -> Vec<u8> {
    frame.splice(12..12, [0x81, 0x00].into_iter().chain(control.to_be_bytes()));
    frame
}

/// An IPv4 packet.
#[derive(Clone)]
pub struct Inet {
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
    pub ttl: u8,
    pub tos: u8,
    /// The whole field: flags and fragment offset.
    pub fragment: u16,
    pub protocol: u8,
    pub options: Vec<u8>,
    pub payload: Vec<u8>,
}

pub const DONT_FRAGMENT: u16 = 0x4000;
pub const MORE_FRAGMENTS: u16 = 0x2000;

impl Inet {
    pub fn new(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, payload: Vec<u8>) -> Inet {
        let options = Vec::new();
        Inet { source, destination, ttl: 64, tos: 0, fragment: DONT_FRAGMENT, protocol, options, payload }
    }

    /// Makes a small datagram.
    pub fn udp(source: Ipv4Addr, destination: Ipv4Addr) -> Inet {
        Inet::new(source, destination, ipv4::protocol::UDP, Vec::new()).payload(b"a small datagram".to_vec())
    }

    /// Makes a datagram with this content.
    pub fn payload(mut self, content: Vec<u8>) -> Inet {
        let length = (udp::HEADER + content.len()) as u16;
        let (source, destination) = (self.source.to_bits(), self.destination.to_bits());
        let pseudo = pseudo_ipv4(source, destination, ipv4::protocol::UDP, length);
        self.payload = datagram(content, |datagram| datagram.fill_checksum(pseudo));
        self
    }

    /// Makes a message of any type and code, with its checksum.
    pub fn icmp(source: Ipv4Addr, destination: Ipv4Addr, kind: Icmpv4Kind, rest: u32, body: &[u8]) -> Inet {
        let mut message = [&[0; icmp::HEADER], body].concat();
        let mut view = Icmpv4Message::new_unchecked(&mut message);
        view.set_kind(kind);
        view.set_rest(rest);
        view.fill_checksum();
        Inet::new(source, destination, ipv4::protocol::ICMP, message)
    }

    /// Makes the first segment of a connection.
    pub fn syn(source: Ipv4Addr, destination: Ipv4Addr) -> Inet {
        let tcp = ipv4::protocol::TCP;
        let pseudo = pseudo_ipv4(source.to_bits(), destination.to_bits(), tcp, SYN.len() as u16);
        Inet::new(source, destination, tcp, segment(pseudo))
    }

    pub fn ttl(self, ttl: u8) -> Inet {
        Inet { ttl, ..self }
    }

    pub fn tos(self, tos: u8) -> Inet {
        Inet { tos, ..self }
    }

    pub fn fragment(self, fragment: u16) -> Inet {
        Inet { fragment, ..self }
    }

    pub fn protocol(self, protocol: u8) -> Inet {
        Inet { protocol, ..self }
    }

    /// Sets the options, whose length is a multiple of four bytes.
    pub fn options(self, options: &[u8]) -> Inet {
        Inet { options: options.to_vec(), ..self }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let header = ipv4::HEADER + self.options.len();
        let mut bytes = vec![0; header];
        bytes[ipv4::HEADER..].copy_from_slice(&self.options);
        bytes[6..8].copy_from_slice(&self.fragment.to_be_bytes());
        let mut packet = Ipv4Packet::new_unchecked(&mut bytes);
        packet.set_header_len(header);
        packet.set_total_len((header + self.payload.len()) as u16);
        packet.set_type_of_service(self.tos);
        packet.set_identification(0x1234);
        packet.set_ttl(self.ttl);
        packet.set_protocol(self.protocol);
        packet.set_source(self.source.to_bits());
        packet.set_destination(self.destination.to_bits());
        packet.fill_checksum();
        bytes.extend(&self.payload);
        bytes
    }

    /// Returns the frame that carries this packet from a side's station to the router.
    pub fn frame_from(&self, side: usize) -> Vec<u8> {
        from_station(side, EtherType::IPV4, &self.bytes())
    }
}

/// An IPv6 packet.
#[derive(Clone)]
pub struct Inet6 {
    pub source: Ipv6Addr,
    pub destination: Ipv6Addr,
    pub hop_limit: u8,
    pub traffic_class: u8,
    pub flow_label: u32,
    pub next_header: u8,
    pub payload: Vec<u8>,
}

impl Inet6 {
    pub fn new(source: Ipv6Addr, destination: Ipv6Addr, next_header: u8, payload: Vec<u8>) -> Inet6 {
        Inet6 { source, destination, hop_limit: 64, traffic_class: 0, flow_label: 0, next_header, payload }
    }

    /// Makes a small datagram.
    pub fn udp(source: Ipv6Addr, destination: Ipv6Addr) -> Inet6 {
        let udp = ipv4::protocol::UDP;
        Inet6::new(source, destination, udp, Vec::new()).payload(b"a small datagram".to_vec())
    }

    /// Makes a datagram with this content.
    pub fn payload(mut self, content: Vec<u8>) -> Inet6 {
        let length = (udp::HEADER + content.len()) as u32;
        let (source, destination) = (self.source.to_bits(), self.destination.to_bits());
        let pseudo = pseudo_ipv6(source, destination, ipv4::protocol::UDP, length);
        self.payload = datagram(content, |datagram| datagram.fill_checksum(pseudo));
        self
    }

    /// Makes a message of any type and code, with its checksum.
    pub fn icmp(source: Ipv6Addr, destination: Ipv6Addr, kind: Icmpv6Kind, rest: u32, body: &[u8]) -> Inet6 {
        let mut message = [&[0; icmpv6::HEADER], body].concat();
        let mut view = Icmpv6Message::new_unchecked(&mut message);
        view.set_kind(kind);
        view.set_rest(rest);
        Inet6::summed(source, destination, message)
    }

    /// Makes a message, and fills in its checksum.
    pub fn summed(source: Ipv6Addr, destination: Ipv6Addr, mut message: Vec<u8>) -> Inet6 {
        let icmpv6 = ipv4::protocol::ICMPV6;
        let pseudo = pseudo_ipv6(source.to_bits(), destination.to_bits(), icmpv6, message.len() as u32);
        Icmpv6Message::new_unchecked(&mut message).fill_checksum(pseudo);
        Inet6::new(source, destination, icmpv6, message)
    }

    /// Makes the first segment of a connection.
    pub fn syn(source: Ipv6Addr, destination: Ipv6Addr) -> Inet6 {
        let tcp = ipv4::protocol::TCP;
        let pseudo = pseudo_ipv6(source.to_bits(), destination.to_bits(), tcp, SYN.len() as u32);
        Inet6::new(source, destination, tcp, segment(pseudo))
    }

    pub fn hop_limit(self, hop_limit: u8) -> Inet6 {
        Inet6 { hop_limit, ..self }
    }

    pub fn class_and_flow(self, traffic_class: u8, flow_label: u32) -> Inet6 {
        Inet6 { traffic_class, flow_label, ..self }
    }

    /// Inserts an extension header before the payload, and fills in its first byte.
    pub fn extension(mut self, kind: u8, header: &[u8]) -> Inet6 {
        let mut payload = header.to_vec();
        payload[0] = self.next_header;
        payload.append(&mut self.payload);
        Inet6 { next_header: kind, payload, ..self }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; ipv6::HEADER];
        let mut packet = Ipv6Packet::new_unchecked(&mut bytes);
        packet.set_class_and_flow(self.traffic_class, self.flow_label);
        packet.set_payload_len(self.payload.len() as u16);
        packet.set_next_header(self.next_header);
        packet.set_hop_limit(self.hop_limit);
        packet.set_source(self.source.to_bits());
        packet.set_destination(self.destination.to_bits());
        bytes.extend(&self.payload);
        bytes
    }

    /// Returns the frame that carries this packet from a side's station to the router.
    pub fn frame_from(&self, side: usize) -> Vec<u8> {
        from_station(side, EtherType::IPV6, &self.bytes())
    }
}

/// Makes a TCP header from port 40000 to port 80, without a checksum.
const SYN: [u8; 20] = [0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0];

fn segment(pseudo: Sum) -> Vec<u8> {
    let mut segment = SYN.to_vec();
    segment[16..18].copy_from_slice(&pseudo.bytes(&SYN).checksum().to_be_bytes());
    segment
}

fn datagram(content: Vec<u8>, sum: impl FnOnce(&mut udp::Datagram<&mut [u8]>)) -> Vec<u8> {
    let mut bytes = [vec![0; udp::HEADER], content].concat();
    let len = bytes.len() as u16;
    let mut datagram = udp::Datagram::new_unchecked(&mut bytes[..]);
    datagram.set_source_port(40_000);
    datagram.set_destination_port(40_001);
    datagram.set_length(len);
    sum(&mut datagram);
    bytes
}
