//! Writes other addresses and ports into a packet. Checksums follow what changed (RFC 1624), so that one that was wrong
//! stays wrong, and a fragment or the beginning of a packet is enough. Only SCTP's checksum is computed again: it does not
//! cover addresses, and a fragment of SCTP with another port is lost at its receiver.

use fullview_filter::address::{Address, Family};
use fullview_filter::packet::protocol::{ICMP, ICMP6, SCTP, TCP, UDP, UDP_LITE};
use fullview_filter::packet::{Fragment, NetworkHeader, is_icmp_query, network_header};
use fullview_filter::rule::Side;
use fullview_filter::state::flow::{FlowTranslation, FlowWords};
use fullview_filter::verdict::Rewrite;

use super::wire_flow::WireFamily;
use crate::wire::checksum::Change;
use crate::wire::sctp;

/// One end of a packet: an address, and the port or the identifier of an ICMP query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PacketEnd {
    pub side: Side,
    pub address: Address,
    /// `None` leaves the port as it is.
    pub port: Option<u16>,
}

/// What is written into a packet, or what was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PacketEnds {
    pub outer: PacketEnd,
    /// That of the packet that an ICMP error quotes.
    pub quoted: Option<PacketEnd>,
}

impl PacketEnds {
    /// One end of a packet that quotes no other one.
    pub fn of(side: Side, address: Address, port: u16) -> PacketEnds {
        PacketEnds { outer: PacketEnd { side, address, port: Some(port) }, quoted: None }
    }
}

impl From<&Rewrite> for PacketEnds {
    fn from(rewrite: &Rewrite) -> PacketEnds {
        let Rewrite { side, address, port, quoted } = *rewrite;
        let opposite = match side {
            Side::Source => Side::Destination,
            Side::Destination => Side::Source,
        };
        let end = |side, port| PacketEnd { side, address, port };
        match quoted {
            true => PacketEnds { outer: end(side, None), quoted: Some(end(opposite, Some(port))) },
            false => PacketEnds::of(side, address, port),
        }
    }
}

/// Writes ends into a packet that starts with its IP header, and returns what was there. `None`: the packet is no longer what
/// the filter has read, and nothing is written.
pub(super) fn translate(packet: &mut [u8], ends: &PacketEnds) -> Option<PacketEnds> {
    let header = network_header(packet).ok()?;
    let packet = packet.get_mut(..usize::from(header.length))?;
    let Some(quoted) = &ends.quoted else {
        let (outer, _) = write_end(packet, &header, &ends.outer);
        if header.protocol == SCTP && header.fragment == Fragment::Whole && outer.port != ends.outer.port {
            sctp::fill_checksum(packet.get_mut(header.payload..)?);
        }
        return Some(PacketEnds { outer, quoted: None });
    };
    let quote = packet.get_mut(header.payload + QUOTE..)?;
    let (quoted, inside) = write_end(quote, &network_header(quote).ok()?, quoted);
    let (outer, address) = write_address(packet, &header, &ends.outer);
    let pseudo = if header.protocol == ICMP6 { address } else { Change::NONE };
    update(packet, header.payload + ICMP_CHECKSUM, inside.and(pseudo));
    Some(PacketEnds { outer, quoted: Some(quoted) })
}

/// Gives a plain packet of UDP or TCP, that starts with its IP header, other addresses and ports.
#[inline(always)]
pub(super) fn translate_flow<A: WireFamily>(packet: &mut [u8], translation: &FlowTranslation<A>) {
    let FlowWords { family, addresses, ports, protocol, .. } = translation.to.words();
    let [address_change, change] = [translation.address_change, translation.change].map(Change::of_sum);
    let mut bytes = [0; 32];
    for (bytes, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(addresses) {
        *bytes = word.to_le_bytes();
    }
    let (at, addresses) = match family {
        Family::Inet => (12, &bytes[..8]),
        Family::Inet6 => (8, &bytes[..]),
    };
    put(packet, at, addresses);
    put(packet, A::HEADER, &ports.to_le_bytes());
    if family == Family::Inet {
        update(packet, 10, address_change);
    }
    match protocol {
        TCP => update(packet, A::HEADER + TCP_CHECKSUM, change),
        _ => update_udp(packet, A::HEADER + UDP_CHECKSUM, change),
    };
}

/// Offsets in the headers of transport protocols.
const ICMP_CHECKSUM: usize = 2;
const IDENTIFIER: usize = 4;
const QUOTE: usize = 8;
const DESTINATION_PORT: usize = 2;
const UDP_CHECKSUM: usize = 6;
const TCP_CHECKSUM: usize = 16;

/// Writes an end into a packet, of which less than the transport header may be there. Returns what was there, and what
/// changed in the packet with all its checksums.
fn write_end(packet: &mut [u8], header: &NetworkHeader, end: &PacketEnd) -> (PacketEnd, Change) {
    let (old, address) = write_address(packet, header, end);
    let network = network_change(header, address);
    if matches!(header.fragment, Fragment::Later { .. }) {
        return (old, network);
    }
    let (before, of_port) = write_port(packet, header, end);
    let summed = match header.protocol {
        ICMP => of_port,
        _ => of_port.and(address),
    };
    let checksum = write_checksum(packet, header, summed);
    (PacketEnd { port: before, ..old }, network.and(of_port).and(checksum))
}

/// What changed in the network header. The change of IPv4's checksum makes up for that of the address.
fn network_change(header: &NetworkHeader, address: Change) -> Change {
    match header.family {
        Family::Inet => Change::NONE,
        Family::Inet6 => address,
    }
}

/// Writes an address, and with it the checksum of an IPv4 header. Returns the old end without its port, and the change of the
/// address alone.
fn write_address(packet: &mut [u8], header: &NetworkHeader, end: &PacketEnd) -> (PacketEnd, Change) {
    let address = match end.side {
        Side::Source => header.source,
        Side::Destination => header.destination,
    };
    let old = PacketEnd { side: end.side, address, port: None };
    let change = match (header.family, end.side) {
        (Family::Inet, Side::Source) => write(packet, 12, &(end.address.0 as u32).to_be_bytes()),
        (Family::Inet, Side::Destination) => write(packet, 16, &(end.address.0 as u32).to_be_bytes()),
        (Family::Inet6, Side::Source) => write(packet, 8, &end.address.0.to_be_bytes()),
        (Family::Inet6, Side::Destination) => write(packet, 24, &end.address.0.to_be_bytes()),
    };
    if header.family == Family::Inet {
        update(packet, 10, change);
    }
    (old, change)
}

/// Writes a port or an identifier, if there is one to write and a field for it. Returns the old one.
fn write_port(packet: &mut [u8], header: &NetworkHeader, end: &PacketEnd) -> (Option<u16>, Change) {
    let kind = packet.get(header.payload).copied().unwrap_or_default();
    let offset = match (header.protocol, end.side) {
        (ICMP | ICMP6, _) if is_icmp_query(header.family, kind) => IDENTIFIER,
        (TCP | UDP | UDP_LITE | SCTP, Side::Source) => 0,
        (TCP | UDP | UDP_LITE | SCTP, Side::Destination) => DESTINATION_PORT,
        _ => return (None, Change::NONE),
    };
    let (Some(port), Some(old)) = (end.port, word(packet, header.payload + offset)) else {
        return (None, Change::NONE);
    };
    (Some(old), write(packet, header.payload + offset, &port.to_be_bytes()))
}

/// Updates the checksum of the transport header, and returns how the checksum itself changed.
fn write_checksum(packet: &mut [u8], header: &NetworkHeader, change: Change) -> Change {
    let at = header.payload;
    match header.protocol {
        ICMP | ICMP6 => update(packet, at + ICMP_CHECKSUM, change),
        TCP => update(packet, at + TCP_CHECKSUM, change),
        UDP | UDP_LITE => update_udp(packet, at + UDP_CHECKSUM, change),
        _ => Change::NONE,
    }
}

/// Zero means that there is no checksum, and a sum of zero is sent as its complement (RFC 768).
fn update_udp(packet: &mut [u8], at: usize, change: Change) -> Change {
    match word(packet, at) {
        None | Some(0) => Change::NONE,
        Some(old) => {
            let new = change.apply(old);
            write(packet, at, &(if new == 0 { u16::MAX } else { new }).to_be_bytes())
        }
    }
}

/// Updates a checksum, if it is there, and returns how it changed.
fn update(packet: &mut [u8], at: usize, change: Change) -> Change {
    word(packet, at).map_or(Change::NONE, |old| write(packet, at, &change.apply(old).to_be_bytes()))
}

fn word(packet: &[u8], at: usize) -> Option<u16> {
    let bytes = packet.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_be_bytes(*bytes))
}

/// Replaces bytes at an even offset, and returns what changed.
fn write(packet: &mut [u8], at: usize, bytes: &[u8]) -> Change {
    let Some(place) = packet.get_mut(at..at + bytes.len()) else { return Change::NONE };
    let mut change = Change::NONE;
    for (old, new) in place.chunks_exact_mut(2).zip(bytes.chunks_exact(2)) {
        change = change.word(u16::from_be_bytes([old[0], old[1]]), u16::from_be_bytes([new[0], new[1]]));
        old.copy_from_slice(new);
    }
    change
}

fn put(packet: &mut [u8], at: usize, bytes: &[u8]) {
    packet.get_mut(at..at + bytes.len()).into_iter().for_each(|place| place.copy_from_slice(bytes));
}
