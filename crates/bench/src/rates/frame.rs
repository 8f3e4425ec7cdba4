//! The frames that are sent: UDP, in many flows, of one size or of several in turn.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fullview_plane::burst::Slot;
use fullview_plane::wire::checksum::{Sum, pseudo_ipv6};
use fullview_plane::wire::ethernet::{self, EtherType, Frame, MIN_FRAME, Mac};
use fullview_plane::wire::ipv4::{self, Ipv4Packet, protocol};
use fullview_plane::wire::ipv6::{self, Ipv6Packet};
use fullview_plane::wire::udp;
use fullview_table::Family;
use serde::{Deserialize, Serialize};

use super::bed_addresses::{BedLink, HOST, inet, inet6};
use crate::traffic::frame::{FrameSize, udp_checksum};

/// Ethernet addresses of the generator, of the router's interfaces, and of the right host's interface.
pub const GENERATOR: Mac = Mac([2, 0, 0, 0, 0, 1]);
pub const DEVICE: Mac = Mac([2, 0, 0, 0, 0, 2]);
pub const SINK: Mac = Mac([2, 0, 0, 0, 0, 3]);
/// The station to which the router sends.
pub const STATION: Mac = Mac([2, 0, 0, 0, 0, 4]);

/// Flows, which differ in the source port.
pub const FLOWS: u16 = 4096;
const FIRST_PORT: u16 = 1024;
/// To the port 9, discard.
const DISCARD: u16 = 9;
/// Bytes of the longest frame that an interface with the usual MTU takes, without the FCS.
const LONGEST: usize = 1514;
/// Even the smallest frame has room for a stamp: with the FCS 78 bytes, the smallest of IPv6 in other labs too.
const SMALLEST_INET6: usize = 74;

/// Where packets come from and go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrafficAddresses {
    pub from: Mac,
    /// The device's interface.
    pub to: Mac,
    pub hosts: HostAddresses,
}

/// The addresses of two hosts: of the sender, and of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostAddresses {
    Inet([Ipv4Addr; 2]),
    Inet6([Ipv6Addr; 2]),
}

impl TrafficAddresses {
    /// Those of the test bed in namespaces. The network of IPv6 is the one for benchmarks (RFC 5180).
    pub fn of_bed(family: Family) -> TrafficAddresses {
        let ends = [BedLink::Left, BedLink::Right];
        let hosts = match family {
            Family::Inet => HostAddresses::Inet(ends.map(|link| inet(link, HOST))),
            Family::Inet6 => HostAddresses::Inet6(ends.map(|link| inet6(link, HOST))),
        };
        TrafficAddresses { from: GENERATOR, to: DEVICE, hosts }
    }
}

impl HostAddresses {
    /// Nothing if they are of two families.
    pub fn new(source: IpAddr, destination: IpAddr) -> Option<HostAddresses> {
        match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => Some(HostAddresses::Inet([source, destination])),
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                Some(HostAddresses::Inet6([source, destination]))
            }
            _ => None,
        }
    }

    pub fn family(&self) -> Family {
        match self {
            HostAddresses::Inet(_) => Family::Inet,
            HostAddresses::Inet6(_) => Family::Inet6,
        }
    }
}

/// The sizes that can be sent, as a range of bytes without the FCS.
pub fn sizes(family: Family) -> std::ops::RangeInclusive<usize> {
    let smallest = match family {
        Family::Inet => MIN_FRAME,
        Family::Inet6 => SMALLEST_INET6,
    };
    smallest..=LONGEST
}

/// Bytes of consecutive frames, which repeat from the start.
pub fn lengths(size: FrameSize, family: Family) -> Vec<usize> {
    size.lengths(*sizes(family).start())
}

/// Where the payload begins.
pub const fn payload_at(family: Family) -> usize {
    match family {
        Family::Inet => ethernet::HEADER + ipv4::HEADER + udp::HEADER,
        Family::Inet6 => ethernet::HEADER + ipv6::HEADER + udp::HEADER,
    }
}

/// The frames of a trial.
pub struct TrafficFrames {
    family: Family,
    /// One for each turn of the sizes.
    frames: Vec<TemplateFrame>,
    /// To which packets go in turn; none if all go to the same.
    destinations: Vec<IpAddr>,
}

/// A frame without the port of its flow.
struct TemplateFrame {
    bytes: Vec<u8>,
    /// What goes into the checksum of UDP without the destination; nothing over IPv4, which does without one.
    sum: Option<Sum>,
    destination: IpAddr,
}

impl TrafficFrames {
    /// Packets go to the destination among the addresses, or to `destinations` in turn if there are some.
    pub fn new(addresses: &TrafficAddresses, size: FrameSize, destinations: &[IpAddr]) -> TrafficFrames {
        let family = addresses.hosts.family();
        let frames = lengths(size, family).into_iter().map(|length| TemplateFrame::new(addresses, length));
        TrafficFrames { family, frames: frames.collect(), destinations: destinations.to_vec() }
    }

    /// Clears what a slot holds, once. All payloads are zeros, so that packets of any size overwrite the headers only.
    pub fn prepare(&self, slot: &mut Slot) {
        slot.set_frame(&[0; LONGEST]);
    }

    /// Writes the packet of this number into a prepared slot.
    pub fn write(&self, slot: &mut Slot, packet: u64) {
        let frame = &self.frames[(packet % self.frames.len() as u64) as usize];
        let headers = payload_at(self.family);
        slot.set_frame_len(frame.bytes.len());
        slot.head_mut()[..headers].copy_from_slice(&frame.bytes[..headers]);
        let destination = match self.destinations.len() as u64 {
            0 => frame.destination,
            count => self.destinations[(packet % count) as usize],
        };
        if !self.destinations.is_empty() {
            set_destination(&mut slot.frame_mut()[ethernet::HEADER..], destination);
        }
        frame.set_flow(&mut slot.frame_mut()[headers - udp::HEADER..headers], packet, destination);
    }
}

impl TemplateFrame {
    fn new(addresses: &TrafficAddresses, length: usize) -> TemplateFrame {
        let mut bytes = vec![0; length];
        let mut ethernet = Frame::new_unchecked(&mut bytes);
        ethernet.set_source(addresses.from);
        ethernet.set_destination(addresses.to);
        let udp = payload_at(addresses.hosts.family()) - udp::HEADER;
        let udp_len = (length - udp) as u16;
        let (sum, destination) = match addresses.hosts {
            HostAddresses::Inet(hosts) => {
                ethernet.set_outer_ethertype(EtherType::IPV4);
                fill_ipv4(&mut bytes[ethernet::HEADER..], hosts);
                (None, hosts[1].into())
            }
            HostAddresses::Inet6(hosts) => {
                ethernet.set_outer_ethertype(EtherType::IPV6);
                fill_ipv6(&mut bytes[ethernet::HEADER..], hosts);
                let pseudo = pseudo_ipv6(hosts[0].to_bits(), 0, protocol::UDP, udp_len.into());
                (Some(pseudo.word(DISCARD).word(udp_len)), IpAddr::from(hosts[1]))
            }
        };
        bytes[udp + 2..udp + 4].copy_from_slice(&DISCARD.to_be_bytes());
        bytes[udp + 4..udp + 6].copy_from_slice(&udp_len.to_be_bytes());
        TemplateFrame { bytes, sum, destination }
    }

    /// Makes it a packet of another flow, in the header of UDP.
    fn set_flow(&self, header: &mut [u8], packet: u64, destination: IpAddr) {
        let port = FIRST_PORT + (packet % u64::from(FLOWS)) as u16;
        header[..2].copy_from_slice(&port.to_be_bytes());
        if let (Some(sum), IpAddr::V6(destination)) = (self.sum, destination) {
            let sum = sum.bytes(&destination.octets());
            header[6..8].copy_from_slice(&udp_checksum(sum.word(port)).to_be_bytes());
        }
    }
}

/// In a header of the address's family.
fn set_destination(header: &mut [u8], destination: IpAddr) {
    match destination {
        IpAddr::V4(destination) => {
            let mut ip = Ipv4Packet::new_unchecked(header);
            ip.set_destination(destination.to_bits());
            ip.fill_checksum();
        }
        IpAddr::V6(destination) => Ipv6Packet::new_unchecked(header).set_destination(destination.to_bits()),
    }
}

fn fill_ipv4(bytes: &mut [u8], [source, destination]: [Ipv4Addr; 2]) {
    let length = bytes.len() as u16;
    let mut ip = Ipv4Packet::new_unchecked(bytes);
    ip.set_header_len(ipv4::HEADER);
    ip.set_total_len(length);
    ip.set_ttl(64);
    ip.set_protocol(protocol::UDP);
    ip.set_source(source.to_bits());
    ip.set_destination(destination.to_bits());
    ip.fill_checksum();
}

fn fill_ipv6(bytes: &mut [u8], [source, destination]: [Ipv6Addr; 2]) {
    let length = (bytes.len() - ipv6::HEADER) as u16;
    let mut ip = Ipv6Packet::new_unchecked(bytes);
    ip.set_class_and_flow(0, 0);
    ip.set_payload_len(length);
    ip.set_next_header(protocol::UDP);
    ip.set_hop_limit(64);
    ip.set_source(source.to_bits());
    ip.set_destination(destination.to_bits());
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use fullview_plane::burst::Arena;

    use super::*;

    fn written(frames: &TrafficFrames, arena: &mut Arena, packet: u64) -> Vec<u8> {
        let slot = arena.packets().next().unwrap();
        frames.write(slot, packet);
        slot.frame().to_vec()
    }

    #[test]
    fn flows_differ_in_the_port_and_the_frame_stays_right() {
        let frames = TrafficFrames::new(&TrafficAddresses::of_bed(Family::Inet), FrameSize::Smallest, &[]);
        let bytes = written(&frames, &mut Arena::new(1), 4097);
        assert_eq!(bytes.len(), 60);
        assert_eq!(bytes[34..36], 1025u16.to_be_bytes());
        assert!(Ipv4Packet::new_checked(&bytes[14..]).unwrap().verify_checksum());
    }

    #[test]
    fn destinations_take_turns() {
        let destinations = [IpAddr::from([198, 51, 100, 1]), IpAddr::from([203, 0, 113, 2])];
        let frames =
            TrafficFrames::new(&TrafficAddresses::of_bed(Family::Inet), FrameSize::Smallest, &destinations);
        for packet in 0..4 {
            let bytes = written(&frames, &mut Arena::new(1), packet);
            let ip = Ipv4Packet::new_checked(&bytes[14..]).unwrap();
            assert!(ip.verify_checksum());
            assert_eq!(IpAddr::from(ip.destination().to_be_bytes()), destinations[packet as usize % 2]);
        }
    }

    #[test]
    fn datagrams_over_ipv6_have_checksums() {
        let destinations = ["2001:db8:1::1", "2001:db8:2::2"].map(|text| text.parse().unwrap());
        for destinations in [&[][..], &destinations] {
            check_datagrams(destinations);
        }
    }

    fn check_datagrams(destinations: &[IpAddr]) {
        let addresses = TrafficAddresses::of_bed(Family::Inet6);
        let frames = TrafficFrames::new(&addresses, FrameSize::Imix, destinations);
        let mut arena = Arena::new(1);
        arena.packets().for_each(|slot| frames.prepare(slot));
        let mut lengths = BTreeSet::new();
        for packet in 0..5000 {
            let bytes = written(&frames, &mut arena, packet);
            let ip = Ipv6Packet::new_checked(&bytes[14..]).unwrap();
            let pseudo = pseudo_ipv6(ip.source(), ip.destination(), 17, ip.payload_len().into());
            assert!(pseudo.bytes(ip.payload()).verifies() && ip.total_len() + 14 == bytes.len(), "{packet}");
            let to = IpAddr::from(ip.destination().to_be_bytes());
            let expected = destinations.get(packet as usize % destinations.len().max(1));
            assert_eq!(to, *expected.unwrap_or(&"2001:2:0:2::2".parse().unwrap()));
            assert_eq!(bytes[54..56], (1024 + packet as u16 % 4096).to_be_bytes());
            lengths.insert(bytes.len());
        }
        assert_eq!(lengths, BTreeSet::from([74, 590, 1514]));
    }

    #[test]
    fn sizes_of_a_mix_take_turns_in_the_same_slot() {
        let frames = TrafficFrames::new(&TrafficAddresses::of_bed(Family::Inet), FrameSize::Imix, &[]);
        let mut arena = Arena::new(1);
        arena.packets().for_each(|slot| frames.prepare(slot));
        let cycle: Vec<Vec<u8>> = (0..12).map(|packet| written(&frames, &mut arena, packet)).collect();
        let count = |length| cycle.iter().filter(|frame| frame.len() == length).count();
        assert_eq!([60, 590, 1514].map(count), [7, 4, 1]);
        for bytes in cycle {
            let ip = Ipv4Packet::new_checked(&bytes[14..]).unwrap();
            assert!(ip.verify_checksum());
            assert_eq!(usize::from(ip.total_len()) + 14, bytes.len());
            assert_eq!(usize::from(u16::from_be_bytes([bytes[38], bytes[39]])) + 34, bytes.len());
            assert!(bytes[42..].iter().all(|byte| *byte == 0));
        }
    }
}
