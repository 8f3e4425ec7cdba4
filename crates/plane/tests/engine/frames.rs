//! Frames for tests, and the forwarded frames, computed independently of the program.

use std::net::IpAddr;

use fullview_plane::wire::ipv4::Ipv4Packet;
use fullview_plane::wire::ipv6::Ipv6Packet;
use fullview_table::Address;

/// The address of the device under test.
pub const OWN: [u8; 6] = [2, 0, 0, 0, 0, 1];
const SENDER: [u8; 6] = [2, 0, 0, 0, 0, 9];

/// A frame whose payload is two ports.
pub fn frame<A: Address>(source: A, destination: A) -> Vec<u8> {
    match (to_ip(source), to_ip(destination)) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => inet(source.into(), destination.into()),
        (IpAddr::V6(source), IpAddr::V6(destination)) => inet6(source.into(), destination.into()),
        _ => panic!("one family"),
    }
}

fn to_ip<A: Address>(addr: A) -> IpAddr {
    addr.to_ip().into()
}

fn inet(source: u32, destination: u32) -> Vec<u8> {
    let mut frame = ethernet(0x0800);
    frame.extend([0; 20 + 8]);
    let mut ip = Ipv4Packet::new_unchecked(&mut frame[14..]);
    ip.set_header_len(20);
    ip.set_total_len(28);
    ip.set_ttl(64);
    ip.set_protocol(17);
    ip.set_source(source);
    ip.set_destination(destination);
    ip.fill_checksum();
    frame[34..38].copy_from_slice(&[0x07, 0xd0, 0x00, 0x35]);
    frame.resize(60, 0);
    frame
}

fn inet6(source: u128, destination: u128) -> Vec<u8> {
    let mut frame = ethernet(0x86dd);
    frame.extend([0x60, 0, 0, 0, 0, 8, 17, 64]);
    frame.extend([source.to_be_bytes(), destination.to_be_bytes()].concat());
    frame.extend([0x07, 0xd0, 0x00, 0x35, 0, 8, 0, 0]);
    assert_eq!(Ipv6Packet::new_checked(&frame[14..]).unwrap().total_len(), 48);
    frame
}

fn ethernet(kind: u16) -> Vec<u8> {
    [&OWN[..], &SENDER, &kind.to_be_bytes()].concat()
}

/// The frame with a VLAN tag of priority 5.
pub fn tagged(frame: &[u8], vlan: u16) -> Vec<u8> {
    let tag = (5 << 13 | vlan).to_be_bytes();
    [&frame[..12], &[0x81, 0x00], &tag, &frame[12..]].concat()
}

/// The untagged frame after forwarding: one hop less, and the IPv4 checksum recomputed.
pub fn forwarded(frame: &[u8], destination: [u8; 6], source: [u8; 6]) -> Vec<u8> {
    let mut out = [&destination[..], &source, &frame[12..]].concat();
    if out[12] == 0x08 {
        let mut ip = Ipv4Packet::new_unchecked(&mut out[14..]);
        ip.set_ttl(ip.ttl() - 1);
        ip.set_checksum(0);
        ip.fill_checksum();
    } else {
        out[14 + 7] -= 1;
    }
    out
}
