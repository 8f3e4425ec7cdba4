//! IP packets of a neighbour.

use std::net::{Ipv4Addr, Ipv6Addr};

use fullview_plane::wire::checksum::Sum;

/// The destination MAC address of frames.
pub const ROUTER: [u8; 6] = [2, 0, 0, 0, 0, 0xaa];
/// The source MAC address of frames.
pub const SENDER: [u8; 6] = [2, 0, 0, 0, 0, 1];

fn ethernet(ethertype: u16, packet: &[u8]) -> Vec<u8> {
    [&ROUTER[..], &SENDER, &ethertype.to_be_bytes(), packet].concat()
}

/// A UDP datagram to the discard port with this number of bytes.
pub fn udp(destination: &str, ttl: u8, bytes: usize) -> Vec<u8> {
    let destination: Ipv4Addr = destination.parse().unwrap();
    let len = (20 + 8 + bytes) as u16;
    let mut packet = vec![0x45, 0, 0, 0, 0, 7, 0, 0, ttl, 17, 0, 0, 198, 18, 0, 1];
    packet.extend(destination.octets());
    packet[2..4].copy_from_slice(&len.to_be_bytes());
    let checksum = Sum::ZERO.bytes(&packet).checksum();
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet.extend([0x30, 0x39, 0, 9]);
    packet.extend((8 + bytes as u16).to_be_bytes());
    packet.extend([0, 0]);
    packet.resize(len.into(), 7);
    ethernet(0x0800, &packet)
}

/// The same over IPv6.
pub fn udp6(destination: &str, hop_limit: u8, next_header: u8, bytes: usize) -> Vec<u8> {
    let source: Ipv6Addr = "2001:db8:1::1".parse().unwrap();
    let destination: Ipv6Addr = destination.parse().unwrap();
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((8 + bytes as u16).to_be_bytes());
    packet.extend([next_header, hop_limit]);
    packet.extend(source.octets());
    packet.extend(destination.octets());
    let mut datagram = vec![0x30, 0x39, 0, 9];
    datagram.extend((8 + bytes as u16).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.resize(8 + bytes, 7);
    let pseudo = Sum::ZERO.bytes(&packet[8..]).word(17).word(datagram.len() as u16);
    let checksum = pseudo.bytes(&datagram).checksum();
    datagram[6..8].copy_from_slice(&checksum.to_be_bytes());
    packet.extend(datagram);
    ethernet(0x86dd, &packet)
}

/// A TCP segment with these flags, whose own checksum no router looks at.
pub fn tcp(destination: &str, flags: u8, bytes: usize) -> Vec<u8> {
    let mut frame = udp(destination, 64, 12 + bytes);
    frame[23] = 6;
    frame[24..26].copy_from_slice(&[0, 0]);
    let checksum = Sum::ZERO.bytes(&frame[14..34]).checksum();
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    frame[38..54].copy_from_slice(&header_end(flags));
    frame
}

/// The same over IPv6.
pub fn tcp6(destination: &str, flags: u8, bytes: usize) -> Vec<u8> {
    let mut frame = udp6(destination, 64, 6, 12 + bytes);
    frame[58..74].copy_from_slice(&header_end(flags));
    frame
}

/// All of a TCP header but its ports.
fn header_end(flags: u8) -> [u8; 16] {
    [0, 0, 0, 5, 0, 0, 0, 6, 0x50, flags, 1, 0, 0, 0, 0, 0]
}

/// An ICMP echo request.
pub fn echo(destination: &str) -> Vec<u8> {
    let mut frame = udp(destination, 64, 0);
    frame[23] = 1;
    frame[24..26].copy_from_slice(&[0, 0]);
    let checksum = Sum::ZERO.bytes(&frame[14..34]).checksum();
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    frame[34..42].copy_from_slice(&[8, 0, 0, 0, 0, 1, 0, 1]);
    let checksum = Sum::ZERO.bytes(&frame[34..]).checksum();
    frame[36..38].copy_from_slice(&checksum.to_be_bytes());
    frame
}

/// The frame as a router forwards it: from the router to `next`, with one hop less.
pub fn forwarded(frame: &[u8], next: [u8; 6]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame.copy_within(0..6, 6);
    frame[..6].copy_from_slice(&next);
    match frame[12..14] {
        [0x08, 0x00] => {
            frame[22] -= 1;
            frame[24..26].copy_from_slice(&[0, 0]);
            let checksum = Sum::ZERO.bytes(&frame[14..34]).checksum();
            frame[24..26].copy_from_slice(&checksum.to_be_bytes());
        }
        _ => frame[21] -= 1,
    }
    frame
}
