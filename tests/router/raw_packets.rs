//! Whole packets, byte by byte.

use fullview_filter::packet::Packet;
use fullview_filter::packet::protocol::{ICMP, TCP, UDP};
use fullview_plane::wire::checksum::{Sum, pseudo_ipv4, pseudo_ipv6};
use fullview_plane::wire::ethernet::{EtherType, Frame};
use fullview_plane::wire::ipv4::{self, Ipv4Packet};
use fullview_plane::wire::ipv6::{self, Ipv6Packet};

/// What a filter would see of the packet in a frame.
pub fn parsed(frame: &[u8]) -> Option<Packet> {
    Packet::parse(Frame::new_unchecked(frame).payload(), Packet::NOTHING.pass).ok()
}

pub fn udp(from: u16, to: u16) -> Vec<u8> {
    [&from.to_be_bytes()[..], &to.to_be_bytes(), &[0, 13, 0, 0], b"hello"].concat()
}

pub fn segment(from: u16, to: u16, flags: u8, payload: &[u8]) -> Vec<u8> {
    segment_at([from, to], flags, [0x0102_0304, 0x0908_0706], payload)
}

/// A segment with these sequence and acknowledgement numbers.
pub fn segment_at([from, to]: [u16; 2], flags: u8, [seq, ack]: [u32; 2], payload: &[u8]) -> Vec<u8> {
    let numbers = [seq.to_be_bytes(), ack.to_be_bytes()].concat();
    let rest = [0x50, flags, 0x20, 0, 0, 0, 0, 0];
    [&from.to_be_bytes()[..], &to.to_be_bytes(), &numbers, &rest, payload].concat()
}

/// Where the checksum is.
fn checksum_at(protocol: u8) -> usize {
    match protocol {
        TCP => 16,
        UDP => 6,
        _ => 2,
    }
}

fn summed(mut payload: Vec<u8>, protocol: u8, pseudo: Sum) -> Vec<u8> {
    let (at, sum) = (checksum_at(protocol), pseudo.bytes(&payload).checksum());
    payload[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    payload
}

pub fn inet([from, to]: [u32; 2], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let pseudo = pseudo_ipv4(from, to, protocol, payload.len() as u16);
    let payload = summed(payload.to_vec(), protocol, if protocol == ICMP { Sum::ZERO } else { pseudo });
    let mut bytes = [&[0; ipv4::HEADER], &payload[..]].concat();
    let total = bytes.len() as u16;
    let mut packet = Ipv4Packet::new_unchecked(&mut bytes);
    packet.set_header_len(ipv4::HEADER);
    packet.set_total_len(total);
    packet.set_ttl(40);
    packet.set_protocol(protocol);
    packet.set_source(from);
    packet.set_destination(to);
    packet.fill_checksum();
    bytes
}

pub fn inet6([from, to]: [u128; 2], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let payload = summed(payload.to_vec(), protocol, pseudo_ipv6(from, to, protocol, payload.len() as u32));
    let mut bytes = [&[0; ipv6::HEADER], &payload[..]].concat();
    let mut packet = Ipv6Packet::new_unchecked(&mut bytes);
    packet.set_class_and_flow(0, 0);
    packet.set_payload_len(payload.len() as u16);
    packet.set_next_header(protocol);
    packet.set_hop_limit(40);
    packet.set_source(from);
    packet.set_destination(to);
    bytes
}

/// The bytes of an address as `ip` prints it.
pub fn mac(text: &str) -> Vec<u8> {
    text.split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

/// The frame with this packet from one interface to another.
pub fn frame(from: &[u8], to: &[u8], packet: &[u8]) -> Vec<u8> {
    let ethertype = if packet[0] >> 4 == 4 { EtherType::IPV4 } else { EtherType::IPV6 };
    [to, from, &ethertype.0.to_be_bytes(), packet].concat()
}
