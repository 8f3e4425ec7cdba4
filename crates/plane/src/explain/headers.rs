//! Reads and checks the headers of a packet.

use std::net::IpAddr;

use fullview_table::{Address, Family};

use super::addresses;
use crate::burst::FRAME_CAPACITY;
use crate::flow_hash::FlowFields;
use crate::interface::Interface;
use crate::verdict::{Punt, Reason, Verdict};
use crate::view::Policy;
use crate::wire::Malformed;
use crate::wire::ethernet::{EtherType, Frame, Mac};
use crate::wire::ipv4::Ipv4Packet;
use crate::wire::ipv6::{self, Ipv6Packet};

/// The headers of a correct packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headers {
    /// The destination MAC address.
    pub mac: Mac,
    /// The source address.
    pub source: IpAddr,
    /// The destination address.
    pub destination: IpAddr,
    /// TTL or hop limit.
    pub hops: u8,
    /// The length of the IP packet.
    pub total_len: usize,
    /// Whether routers may fragment it.
    pub may_be_fragmented: bool,
    /// What the flow hash covers besides the addresses: a protocol, and ports or a label.
    pub(super) flow: (u8, (u16, u16)),
    /// The protocol, and whether this is a fragment; `None` if the protocol comes after other headers of IPv6.
    pub(super) protocol: Option<(u8, bool)>,
    /// The ports of TCP or UDP, if this is no fragment.
    pub(super) ports: Option<(u16, u16)>,
    /// Whether it has options that every router on the path examines.
    pub(super) has_router_options: bool,
}

impl Headers {
    /// The family of the packet.
    pub fn family(&self) -> Family {
        if self.destination.is_ipv4() { Family::Inet } else { Family::Inet6 }
    }
}

/// The frame, if it holds its Ethernet header.
pub(super) fn ethernet(frame: &[u8]) -> Option<Frame<&[u8]>> {
    Frame::new_checked(frame).ok()
}

/// Reads the headers of a frame; the error is the verdict on an incorrect packet.
pub(super) fn read(frame: &[u8], interface: &Interface, policy: Policy) -> Result<Headers, Verdict> {
    let frame = Frame::new_unchecked(frame);
    match frame.ethertype() {
        EtherType::IPV4 if !interface.forwards_inet => Err(Verdict::Punt(Punt::NotForwarding)),
        EtherType::IPV6 if !interface.forwards_inet6 => Err(Verdict::Punt(Punt::NotForwarding)),
        EtherType::IPV4 => inet(&frame, policy),
        EtherType::IPV6 => inet6(&frame, policy),
        EtherType::ARP => Err(Verdict::Punt(Punt::Arp)),
        _ => Err(Verdict::Punt(Punt::NotIp)),
    }
}

fn inet(frame: &Frame<&[u8]>, policy: Policy) -> Result<Headers, Verdict> {
    let ip = Ipv4Packet::new_checked(frame.payload()).map_err(malformed)?;
    if !ip.verify_checksum() {
        return Err(Verdict::Drop(Reason::Checksum));
    }
    addresses_pass(ip.source().to_ip().into(), ip.destination().to_ip().into(), policy)?;
    let has_router_options = options(ip.options())?;
    let whole = !ip.more_fragments() && ip.fragment_offset() == 0;
    let ports = whole.then(|| ports(frame.payload(), ip.header_len(), ip.protocol())).flatten();
    Ok(Headers {
        mac: frame.destination(),
        source: ip.source().to_ip().into(),
        destination: ip.destination().to_ip().into(),
        hops: ip.ttl(),
        total_len: ip.total_len().into(),
        may_be_fragmented: !ip.dont_fragment(),
        flow: match policy.flow_hash.inet {
            FlowFields::Layer3 => (0, (0, 0)),
            _ => with_ports(ip.protocol(), ports),
        },
        protocol: Some((ip.protocol(), !whole)),
        ports: ports.filter(|_| matches!(ip.protocol(), 6 | 17)),
        has_router_options,
    })
}

fn inet6(frame: &Frame<&[u8]>, policy: Policy) -> Result<Headers, Verdict> {
    let ip = Ipv6Packet::new_checked(frame.payload()).map_err(malformed)?;
    addresses_pass(ip.source().to_ip().into(), ip.destination().to_ip().into(), policy)?;
    let label = ip.flow_label();
    let ports = ports(frame.payload(), ipv6::HEADER, ip.next_header());
    let labelled = |protocol| (protocol, ((label >> 16) as u16, label as u16));
    Ok(Headers {
        mac: frame.destination(),
        source: ip.source().to_ip().into(),
        destination: ip.destination().to_ip().into(),
        hops: ip.hop_limit(),
        total_len: ip.total_len(),
        may_be_fragmented: false,
        flow: match policy.flow_hash.inet6 {
            FlowFields::Layer3 => labelled(ip.next_header()),
            FlowFields::LabelOrLayer4 if label != 0 => labelled(0),
            _ => with_ports(ip.next_header(), ports),
        },
        protocol: Some((ip.next_header(), false)).filter(|(next, _)| !matches!(next, 0 | 43 | 44 | 60)),
        ports: ports.filter(|_| matches!(ip.next_header(), 6 | 17)),
        has_router_options: false,
    })
}

fn addresses_pass(source: IpAddr, destination: IpAddr, policy: Policy) -> Result<(), Verdict> {
    addresses::judge(source, destination, policy.drops_martians).map_or(Ok(()), Err)
}

fn with_ports(protocol: u8, ports: Option<(u16, u16)>) -> (u8, (u16, u16)) {
    ports.map_or((0, (0, 0)), |ports| (protocol, ports))
}

fn malformed(error: Malformed) -> Verdict {
    Verdict::Drop(match error {
        Malformed::TooShort { .. } => Reason::TooShort,
        Malformed::Version { .. } => Reason::BadVersion,
        Malformed::HeaderLength { .. } => Reason::HeaderLength,
        Malformed::TotalLength { .. } => Reason::TotalLength,
    })
}

/// Whether every router on the path examines the options: record route, timestamp and router alert (RFC 7126), and a damaged
/// list, which is reported. A packet with a source route is dropped, whatever the order of its options.
fn options(options: &[u8]) -> Result<bool, Verdict> {
    let (kinds, is_damaged) = kinds(options);
    if kinds.iter().any(|kind| matches!(kind, 131 | 137)) {
        return Err(Verdict::Drop(Reason::SourceRoute));
    }
    Ok(is_damaged || kinds.iter().any(|kind| matches!(kind, 7 | 68 | 148)))
}

/// The kinds of the options up to the end of the list or the first damaged option, which is included, and whether there is one.
fn kinds(mut options: &[u8]) -> (Vec<u8>, bool) {
    let mut kinds = Vec::new();
    while let Some(kind) = options.first().copied().filter(|kind| *kind != 0) {
        kinds.push(kind);
        let len = match (kind, options.get(1)) {
            (1, _) => 1,
            (_, Some(len)) if *len >= 2 => usize::from(*len),
            _ => return (kinds, true),
        };
        let Some(rest) = options.get(len..) else { return (kinds, true) };
        options = rest;
    }
    (kinds, false)
}

/// Source and destination port of TCP, UDP, DCCP, SCTP and UDP-Lite.
fn ports(packet: &[u8], header: usize, protocol: u8) -> Option<(u16, u16)> {
    if !matches!(protocol, 6 | 17 | 33 | 132 | 136) {
        return None;
    }
    let bytes = packet.get(header..header + 4)?;
    Some((u16::from_be_bytes([bytes[0], bytes[1]]), u16::from_be_bytes([bytes[2], bytes[3]])))
}

/// The address in the form that the flow hash uses.
pub(super) fn widened(addr: IpAddr) -> u128 {
    match addr {
        IpAddr::V4(ip) => ip.to_bits().into(),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

/// The frame on the next link: new MAC addresses, one hop less, and the tag of the next link instead of the old one.
pub(super) fn rewritten(frame: &[u8], headers: &Headers, from: Mac, to: Mac, vlan: Option<u16>) -> Vec<u8> {
    let came = Frame::new_unchecked(frame);
    let mut payload = came.payload().to_vec();
    match headers.destination {
        IpAddr::V4(_) => {
            let mut ip = Ipv4Packet::new_unchecked(&mut payload);
            ip.set_ttl(headers.hops - 1);
            ip.fill_checksum();
        }
        IpAddr::V6(_) => payload[7] = headers.hops - 1,
    }
    let mut sent = [to.0, from.0].concat();
    if let Some(vlan) = vlan {
        sent.extend(EtherType::VLAN.0.to_be_bytes());
        sent.extend(vlan.to_be_bytes());
    }
    sent.extend(came.ethertype().0.to_be_bytes());
    sent.extend(payload);
    sent.truncate(FRAME_CAPACITY);
    sent
}
