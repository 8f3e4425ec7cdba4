//! Sending packets: to an address, by the routes; and to a station, once its link address is known.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use fullview_table::Family;

use super::HostStack;
use super::fragment::{self, Fragments};
use super::neighbor::{Queued, QueuedPacket};
use super::next_hop::Hop;
use super::next_hop::NextHopResolver;
use super::output::Output;
use fullview_plane::wire::ethernet::EtherType;
use fullview_plane::wire::ipv4::{self, Ipv4Packet};
use fullview_plane::wire::ipv6::Ipv6Packet;
use fullview_plane::wire::{icmpv6, ndp};

/// The next station of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NeighborId {
    pub interface: u16,
    pub station: IpAddr,
}

impl<W: NextHopResolver> HostStack<W> {
    /// By which station an address is reached; `None` if by none. Link-local addresses are those of the link at hand.
    pub(super) fn way(&self, to: IpAddr, link: u16) -> Option<NeighborId> {
        if matches!(to, IpAddr::V6(ip) if ip.is_unicast_link_local()) {
            return Some(NeighborId { interface: link, station: to });
        }
        match self.leads(link, to)? {
            Hop::Station(interface, station) => Some(NeighborId { interface, station }),
            Hop::Link(interface) => Some(NeighborId { interface, station: to }),
            _ => None,
        }
    }

    /// Sends an IPv4 packet of the router's own, in fragments if its link needs them.
    pub(super) fn originate(&mut self, now: Duration, packet: Vec<u8>, way: NeighborId, out: &mut Output) {
        let Some(mtu) = self.interface(way.interface).map(|interface| interface.mtu as usize) else { return };
        match fragment::split(packet, mtu) {
            Fragments::Whole(packet) => self.deliver(now, packet, way, way.interface, out),
            Fragments::Several(parts) => {
                parts.into_iter().for_each(|part| self.deliver(now, part, way, way.interface, out));
            }
            Fragments::Impossible => {}
        }
    }

    /// Sends an ICMPv6 message that is no answer to neighbour discovery.
    pub(super) fn originate6(
        &mut self,
        now: Duration,
        (from, to): (Ipv6Addr, Ipv6Addr),
        class: u8,
        message: Vec<u8>,
        way: NeighborId,
        out: &mut Output,
    ) {
        let packet = super::packet::icmpv6((from, to), class, message);
        let mtu =
            self.interface(way.interface).map_or(0, |interface| interface.mtu_of(Family::Inet6) as usize);
        // An echo reply too long for its link would have to leave in fragments, which this router does not make.
        if packet.len() <= mtu {
            self.deliver(now, packet, way, way.interface, out);
        }
    }

    /// Sends a packet, which came in by `from`, to a station, at once or when its link address is known.
    pub(super) fn deliver(
        &mut self,
        now: Duration,
        packet: Vec<u8>,
        way: NeighborId,
        from: u16,
        out: &mut Output,
    ) {
        let key = (way.interface, way.station);
        if let Some(mac) = self.neighbors.mac(key) {
            let Some(interface) = self.interface(way.interface) else { return };
            return out.send(interface, mac, ethertype(way.station), &packet);
        }
        match self.neighbors.wait(now, key, QueuedPacket { packet, interface: from }) {
            Queued::Ask => self.ask(key, None, out),
            Queued::Waits => {}
            Queued::Refused => self.counters.queue_full += 1,
        }
    }

    /// Sends a message of neighbour discovery to a group or, its link address being known, to one station.
    pub(super) fn send_ndp(
        &self,
        interface: u16,
        (from, to): (Ipv6Addr, Ipv6Addr),
        mac: Option<fullview_plane::wire::ethernet::Mac>,
        message: Vec<u8>,
        out: &mut Output,
    ) {
        debug_assert!(message.len() >= icmpv6::HEADER);
        let Some(link) = self.interface(interface) else { return };
        let packet =
            super::packet::with_hop_limit(super::packet::icmpv6((from, to), 0, message), ndp::HOP_LIMIT);
        let mac = mac.unwrap_or_else(|| ndp::group_mac(to.to_bits()));
        out.send(link, mac, EtherType::IPV6, &packet);
    }

    /// A number for the next packet that may be fragmented.
    pub(super) fn next_identification(&mut self) -> u16 {
        self.identification = self.identification.wrapping_add(1);
        self.identification
    }

    /// Sends an ICMP message of the router's own.
    pub(super) fn originate_icmp(
        &mut self,
        now: Duration,
        addresses: (Ipv4Addr, Ipv4Addr),
        type_of_service: u8,
        message: &[u8],
        way: NeighborId,
        out: &mut Output,
    ) {
        let identification = self.next_identification();
        let protocol = ipv4::protocol::ICMP;
        let packet = super::packet::inet(addresses, protocol, type_of_service, identification, message);
        self.originate(now, packet, way, out);
    }
}

fn ethertype(station: IpAddr) -> EtherType {
    if station.is_ipv4() { EtherType::IPV4 } else { EtherType::IPV6 }
}

/// The bytes of an IPv4 packet in an arrival, without padding, if it is in order.
pub(super) fn inet(payload: &[u8]) -> Option<Ipv4Packet<&[u8]>> {
    let whole = Ipv4Packet::new_checked(payload).ok()?;
    Some(Ipv4Packet::new_unchecked(&payload[..usize::from(whole.total_len())]))
}

/// As [`inet`], for IPv6.
pub(super) fn inet6(payload: &[u8]) -> Option<Ipv6Packet<&[u8]>> {
    let whole = Ipv6Packet::new_checked(payload).ok()?;
    Some(Ipv6Packet::new_unchecked(&payload[..whole.total_len()]))
}
