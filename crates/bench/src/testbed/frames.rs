//! Frames of the test bed, by family.

use fullview_table::{Address, NextHop};

use fullview_plane::wire::ethernet::{EtherType, Frame, Mac};
use fullview_plane::wire::ipv4::Ipv4Packet;
use fullview_plane::wire::ipv6::Ipv6Packet;

/// Ethernet addresses of the generator, and of the router's two ports.
pub const GENERATOR: Mac = Mac([2, 0, 0, 0, 0, 1]);
pub const INGRESS: Mac = Mac([2, 0, 0, 0, 0, 2]);
pub const EGRESS: Mac = Mac([2, 0, 0, 0, 0, 3]);

/// Stations behind the router.
pub const STATIONS: u16 = 64;

/// The number of the station that a next hop leads to.
pub fn station_of(hop: NextHop) -> u16 {
    hop.0.saturating_sub(1) % STATIONS + 1
}

/// Its address on the link.
pub fn station_mac(number: u16) -> Mac {
    let [high, low] = number.to_be_bytes();
    Mac([2, 0, 0, 1, high, low])
}

/// What differs between the families.
pub trait TestbedHeaders: Address {
    /// The address as words of the frame.
    fn words(self) -> Vec<u32>;
    /// A frame to no destination, and the sum of an IPv4 header without checksum and destination.
    fn frame() -> (Vec<u8>, u32);
    /// The address of a station.
    fn station(number: u16) -> Self;
    /// Whether it may be sent to: not to the router's own link, nor to what no router forwards.
    fn is_usable(self) -> bool;
}

fn ethernet(len: usize, kind: EtherType) -> Vec<u8> {
    let mut bytes = vec![0; len];
    let mut frame = Frame::new_unchecked(&mut bytes);
    frame.set_source(GENERATOR);
    frame.set_destination(INGRESS);
    frame.set_outer_ethertype(kind);
    bytes
}

/// The network of the link behind the router: 192.0.2.0/24.
const LINK: u32 = 0xc000_0200;

impl TestbedHeaders for u32 {
    fn words(self) -> Vec<u32> {
        vec![self.to_be()]
    }

    fn frame() -> (Vec<u8>, u32) {
        let mut frame = ethernet(60, EtherType::IPV4);
        let mut ip = Ipv4Packet::new_unchecked(&mut frame[14..]);
        ip.set_header_len(20);
        ip.set_total_len(46);
        ip.set_ttl(64);
        ip.set_protocol(17);
        ip.set_source(0xc633_6402); // 198.51.100.2
        let halves = frame[14..34].as_chunks::<2>().0.iter();
        let sum = halves.map(|half| u32::from(u16::from_ne_bytes(*half))).sum();
        frame[34..42].copy_from_slice(&[0x07, 0xd0, 0x07, 0xd0, 0, 26, 0, 0]);
        (frame, sum)
    }

    fn station(number: u16) -> u32 {
        LINK | u32::from(number)
    }

    fn is_usable(self) -> bool {
        let first = self >> 24;
        !matches!(first, 0 | 127 | 224..) && self >> 16 != 0xa9fe && self >> 8 != LINK >> 8
    }
}

/// The network of the link behind the router: 2001:db8:1::/64.
const LINK6: u128 = 0x2001_0db8_0001 << 80;

impl TestbedHeaders for u128 {
    fn words(self) -> Vec<u32> {
        self.to_be_bytes().as_chunks::<4>().0.iter().map(|bytes| u32::from_ne_bytes(*bytes)).collect()
    }

    fn frame() -> (Vec<u8>, u32) {
        let mut frame = ethernet(66, EtherType::IPV6);
        frame[14..22].copy_from_slice(&[0x60, 0, 0, 0, 0, 12, 17, 64]);
        let source: u128 = 0x2001_0db8_0002 << 80 | 2;
        frame[22..38].copy_from_slice(&source.to_be_bytes());
        frame[54..62].copy_from_slice(&[0x07, 0xd0, 0x07, 0xd0, 0, 12, 0, 0]);
        debug_assert!(Ipv6Packet::new_checked(&frame[14..]).is_ok());
        (frame, 0)
    }

    fn station(number: u16) -> u128 {
        LINK6 | u128::from(number)
    }

    fn is_usable(self) -> bool {
        let first = self >> 120;
        first != 0 && first < 0xfe && self >> 80 != LINK6 >> 80
    }
}
