//! Builds the IP packets that the router itself originates.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fullview_plane::wire::checksum::pseudo_ipv6;
use fullview_plane::wire::icmpv6::Icmpv6Message;
use fullview_plane::wire::ipv4::{self, Ipv4Packet};
use fullview_plane::wire::ipv6::{self, Ipv6Packet};

/// The TTL and hop limit of packets that the router originates.
const HOPS: u8 = 64;

/// An IPv4 packet that may be fragmented.
pub(super) fn inet(
    (source, destination): (Ipv4Addr, Ipv4Addr),
    protocol: u8,
    type_of_service: u8,
    identification: u16,
    payload: &[u8],
) -> Vec<u8> {
    let mut bytes = [&[0; ipv4::HEADER], payload].concat();
    let total = bytes.len() as u16;
    let mut packet = Ipv4Packet::new_unchecked(&mut bytes);
    packet.set_header_len(ipv4::HEADER);
    packet.set_total_len(total);
    packet.set_type_of_service(type_of_service);
    packet.set_identification(identification);
    packet.set_ttl(HOPS);
    packet.set_protocol(protocol);
    packet.set_source(source.to_bits());
    packet.set_destination(destination.to_bits());
    packet.fill_checksum();
    bytes
}

/// An IPv4 packet that may not be fragmented, and so needs no identification (RFC 6864).
pub(super) fn whole_inet(addresses: (Ipv4Addr, Ipv4Addr), protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = inet(addresses, protocol, 0, 0, payload);
    let mut packet = Ipv4Packet::new_unchecked(&mut bytes);
    packet.set_unfragmented(true);
    packet.fill_checksum();
    bytes
}

/// Fills in an ICMPv6 message's checksum, and puts the message into a packet.
pub(super) fn icmpv6(addresses: (Ipv6Addr, Ipv6Addr), traffic_class: u8, message: Vec<u8>) -> Vec<u8> {
    inet6(addresses, ipv4::protocol::ICMPV6, traffic_class, &with_checksum6(addresses, message))
}

/// Fills in an ICMPv6 message's checksum.
pub(super) fn with_checksum6(addresses: (Ipv6Addr, Ipv6Addr), mut message: Vec<u8>) -> Vec<u8> {
    let (source, destination) = (addresses.0.to_bits(), addresses.1.to_bits());
    let pseudo = pseudo_ipv6(source, destination, ipv4::protocol::ICMPV6, message.len() as u32);
    Icmpv6Message::new_unchecked(&mut message[..]).fill_checksum(pseudo);
    message
}

/// An IPv6 packet.
pub(super) fn inet6(
    (source, destination): (Ipv6Addr, Ipv6Addr),
    next_header: u8,
    traffic_class: u8,
    payload: &[u8],
) -> Vec<u8> {
    let mut bytes = [&[0; ipv6::HEADER], payload].concat();
    let mut packet = Ipv6Packet::new_unchecked(&mut bytes);
    packet.set_class_and_flow(traffic_class, 0);
    packet.set_payload_len(payload.len() as u16);
    packet.set_next_header(next_header);
    packet.set_hop_limit(HOPS);
    packet.set_source(source.to_bits());
    packet.set_destination(destination.to_bits());
    bytes
}

/// Sets the hop limit of an IPv6 packet. For IPv4 the header checksum would have to follow.
pub(super) fn with_hop_limit(mut packet: Vec<u8>, hops: u8) -> Vec<u8> {
    Ipv6Packet::new_unchecked(&mut packet[..]).set_hop_limit(hops);
    packet
}

/// The source address of a packet of either family, which must hold a whole header.
pub(super) fn source(packet: &[u8]) -> IpAddr {
    let inet = Ipv4Packet::new_unchecked(packet);
    if inet.version() == 4 {
        return IpAddr::V4(inet.source().into());
    }
    IpAddr::V6(Ipv6Packet::new_unchecked(packet).source().into())
}
