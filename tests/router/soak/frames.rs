//! Frames that make work for a router: it has to send errors, neighbours do not answer, headers are wrong.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fullview_plane::wire::checksum::{pseudo_ipv4, pseudo_ipv6};
use fullview_plane::wire::ethernet::{EtherType, Frame, HEADER, Mac};
use fullview_plane::wire::ipv4::{self, Ipv4Packet};
use fullview_plane::wire::ipv6::{self, Ipv6Packet};
use fullview_plane::wire::udp;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The number of neighbours of each family that do not answer. More would be no harder for the router, but all namespaces
/// of a host share the limit of the kernel's neighbour table, and other tests need it.
const SILENT: u32 = 60;

/// A port without a service.
const PORT: u16 = 7;

/// Makes the frames, one after the other.
pub struct Trouble {
    random: ChaCha8Rng,
    number: usize,
    /// Source and destination: the station on the left and the router.
    macs: (Mac, Mac),
}

impl Trouble {
    pub fn new(station: Mac, router: Mac) -> Trouble {
        Trouble { random: ChaCha8Rng::seed_from_u64(0x50a4), number: 0, macs: (station, router) }
    }

    /// Returns the next frame.
    pub fn next(&mut self) -> Vec<u8> {
        self.number += 1;
        let payload = self.payload();
        match self.number % 14 {
            0 => self.packet([20, 0, 0, 1].into(), 1, &payload),
            1 => self.packet(IpAddr::V6(stable6(0)), 1, &payload),
            // Longer than the MTU of the link to the host beside.
            2 => self.packet([10, 0, 3, 2].into(), 64, &[0; 1440]),
            3 => self.packet(IpAddr::V6("2001:db8:3::2".parse().unwrap()), 64, &[0; 1440]),
            4 => self.a_changing_prefix(&payload),
            5 => self.packet([198, 51, 100, 1].into(), 64, &payload),
            6 => {
                let host = 100 + self.random.random_range(0..SILENT) as u8;
                self.packet([10, 0, 2, host].into(), 64, &payload)
            }
            7 => {
                let host = 0x1000 + u128::from(self.random.random_range(0..SILENT));
                let link: Ipv6Addr = "2001:db8:2::".parse().unwrap();
                self.packet(IpAddr::V6((link.to_bits() + host).into()), 64, &payload)
            }
            8 => self.packet([10, 0, 1, 1].into(), 64, &payload),
            9 => self.packet(IpAddr::V6("2001:db8:1::1".parse().unwrap()), 64, &payload),
            10 => self.damaged([20, 0, 0, 1].into(), &payload),
            11 => self.damaged(IpAddr::V6(stable6(0)), &payload),
            12 => self.with_options(&payload),
            _ => self.noise(),
        }
    }

    fn payload(&mut self) -> Vec<u8> {
        let mut payload = vec![0; self.random.random_range(0..200)];
        self.random.fill_bytes(&mut payload);
        payload
    }

    /// Returns a packet to a prefix whose route changes or drops packets.
    fn a_changing_prefix(&mut self, payload: &[u8]) -> Vec<u8> {
        let low: u32 = self.random.random_range(0..1 << 19);
        if low.is_multiple_of(2) {
            self.packet(Ipv4Addr::from(CHANGING + low).into(), 64, payload)
        } else {
            let address = CHANGING6.to_bits() + (u128::from(low & 0x7ff) << 80) + 1;
            self.packet(IpAddr::V6(address.into()), 64, payload)
        }
    }

    fn packet(&self, to: IpAddr, hops: u8, payload: &[u8]) -> Vec<u8> {
        match to {
            IpAddr::V4(to) => self.frame(EtherType::IPV4, &inet(to, hops, payload)),
            IpAddr::V6(to) => self.frame(EtherType::IPV6, &inet6(to, hops, payload)),
        }
    }

    fn frame(&self, ethertype: EtherType, packet: &[u8]) -> Vec<u8> {
        let mut bytes = [&[0; HEADER], packet].concat();
        let mut frame = Frame::new_unchecked(&mut bytes);
        frame.set_source(self.macs.0);
        frame.set_destination(self.macs.1);
        frame.set_outer_ethertype(ethertype);
        bytes
    }

    /// Returns a packet with random bytes in its headers, sometimes without its end.
    fn damaged(&mut self, to: IpAddr, payload: &[u8]) -> Vec<u8> {
        let mut frame = self.packet(to, 64, payload);
        for _ in 0..self.random.random_range(1..6) {
            let at = self.random.random_range(HEADER..HEADER + ipv4::HEADER);
            frame[at] = self.random.random();
        }
        if self.random.random_bool(0.3) {
            frame.truncate(self.random.random_range(HEADER..frame.len()));
        }
        frame
    }

    /// Returns a packet with four bytes of IPv4 options that have no effect.
    fn with_options(&self, payload: &[u8]) -> Vec<u8> {
        let mut packet = inet([20, 0, 0, 1].into(), 64, payload);
        packet.splice(ipv4::HEADER..ipv4::HEADER, [1, 1, 1, 0]);
        let total = packet.len() as u16;
        let mut header = Ipv4Packet::new_unchecked(&mut packet);
        header.set_header_len(ipv4::HEADER + 4);
        header.set_total_len(total);
        header.fill_checksum();
        self.frame(EtherType::IPV4, &packet)
    }

    /// Returns random bytes in a frame to the router, to all stations, or to another station.
    fn noise(&mut self) -> Vec<u8> {
        let mut frame = vec![0; self.random.random_range(HEADER..400)];
        self.random.fill_bytes(&mut frame);
        let destinations = [self.macs.1, Mac([0xff; 6]), Mac([2, 0, 0, 0, 9, 9])];
        let mut header = Frame::new_unchecked(&mut frame);
        header.set_destination(destinations[self.random.random_range(0..3)]);
        header.set_source(self.macs.0);
        let types = [0x88b5, 0x8100, 0x0800, 0x86dd];
        header.set_outer_ethertype(EtherType(types[self.random.random_range(0..4)]));
        frame
    }
}

/// The first of the prefixes that change: /24s in 30.0.0.0/13, and /48s in 2001:db8:3000::/37.
pub const CHANGING: u32 = 0x1e00_0000;
pub const CHANGING6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x3000, 0, 0, 0, 0, 0);

/// Returns an address in a network behind the host on the right, by the number of the network.
pub fn stable6(network: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0x2000 + network, 0, 0, 0, 0, 1)
}

fn inet(to: Ipv4Addr, ttl: u8, payload: &[u8]) -> Vec<u8> {
    let from = Ipv4Addr::new(10, 0, 1, 2);
    let len = (udp::HEADER + payload.len()) as u16;
    let datagram = datagram(payload, |datagram| {
        datagram.fill_checksum(pseudo_ipv4(from.to_bits(), to.to_bits(), ipv4::protocol::UDP, len));
    });
    let mut bytes = [&[0; ipv4::HEADER][..], &datagram].concat();
    let total = bytes.len() as u16;
    bytes[6] = 0x40; // not to be fragmented
    let mut packet = Ipv4Packet::new_unchecked(&mut bytes);
    packet.set_header_len(ipv4::HEADER);
    packet.set_total_len(total);
    packet.set_ttl(ttl);
    packet.set_protocol(ipv4::protocol::UDP);
    packet.set_source(from.to_bits());
    packet.set_destination(to.to_bits());
    packet.fill_checksum();
    bytes
}

fn inet6(to: Ipv6Addr, hops: u8, payload: &[u8]) -> Vec<u8> {
    let from: Ipv6Addr = "2001:db8:1::2".parse().unwrap();
    let len = (udp::HEADER + payload.len()) as u32;
    let datagram = datagram(payload, |datagram| {
        datagram.fill_checksum(pseudo_ipv6(from.to_bits(), to.to_bits(), ipv4::protocol::UDP, len));
    });
    let mut bytes = [&[0; ipv6::HEADER][..], &datagram].concat();
    let mut packet = Ipv6Packet::new_unchecked(&mut bytes);
    packet.set_class_and_flow(0, 0);
    packet.set_payload_len(len as u16);
    packet.set_next_header(ipv4::protocol::UDP);
    packet.set_hop_limit(hops);
    packet.set_source(from.to_bits());
    packet.set_destination(to.to_bits());
    bytes
}

fn datagram(payload: &[u8], sum: impl FnOnce(&mut udp::Datagram<&mut [u8]>)) -> Vec<u8> {
    let mut bytes = [&[0; udp::HEADER], payload].concat();
    let len = bytes.len() as u16;
    let mut datagram = udp::Datagram::new_unchecked(&mut bytes[..]);
    datagram.set_source_port(PORT);
    datagram.set_destination_port(PORT);
    datagram.set_length(len);
    sum(&mut datagram);
    bytes
}
