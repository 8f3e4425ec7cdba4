//! ICMP and ICMPv6 errors: when none may be sent (RFC 1812, section 4.3.2.7; RFC 4443, section 2.4 e), what they quote,
//! who sends them, and how many.

use fullview_plane::wire::icmp::Icmpv4Kind;
use fullview_plane::wire::icmp::Icmpv4Message;
use fullview_plane::wire::icmp_message::IcmpKind;
use fullview_plane::wire::icmpv6::Icmpv6Kind;
use fullview_plane::wire::icmpv6::Icmpv6Message;
use fullview_plane::wire::{icmp, icmpv6};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use super::next_hop::Hop;
use super::next_hop::NextHopResolver;
use super::output::Output;
use super::sender::{self, NeighborId};
use super::{HostStack, RxFrame};
use fullview_plane::wire::extension::headers;
use fullview_plane::wire::ipv4::protocol;
use fullview_plane::wire::ipv4::{self, Ipv4Packet};
use fullview_plane::wire::ipv6::{self, Ipv6Packet};

/// The longest error, with its IP header (RFC 1812, section 4.3.2.3; RFC 4443, section 2.4 c).
const LONGEST: usize = 576;
pub(super) const LONGEST6: usize = 1280;

impl<W: NextHopResolver> HostStack<W> {
    /// Tells the sender of an IPv4 packet what has become of it, if it may be told. `rest` is what stands behind the
    /// checksum: an MTU, a pointer in its first byte, or 0.
    pub(super) fn error(
        &mut self,
        now: Duration,
        arrival: RxFrame<'_>,
        kind: Icmpv4Kind,
        rest: u32,
        out: &mut Output,
    ) {
        if !arrival.to_group {
            self.error_about(now, arrival.payload, arrival.interface, kind, rest, out);
        }
    }

    /// As [`HostStack::error`], about a packet that came in some time ago.
    pub(super) fn error_about(
        &mut self,
        now: Duration,
        packet: &[u8],
        interface: u16,
        kind: Icmpv4Kind,
        rest: u32,
        out: &mut Output,
    ) {
        let Some(packet) = sender::inet(packet).filter(|packet| self.may_answer(interface, packet)) else {
            return;
        };
        let (to, about): (Ipv4Addr, Ipv4Addr) = (packet.source().into(), packet.destination().into());
        let Some((way, from)) = self.way_back(to, about, interface) else { return };
        if !self.may_err(now, interface) {
            return;
        }
        let message = message(&packet, kind, rest);
        self.originate_icmp(now, (from, to), precedence(&packet), &message, way, out);
    }

    /// Whether anything may be said about a packet.
    pub(super) fn may_answer(&self, interface: u16, packet: &Ipv4Packet<&[u8]>) -> bool {
        let destination = Ipv4Addr::from(packet.destination());
        let to_several = destination.is_multicast()
            || destination.is_broadcast()
            || self.leads(interface, destination.into()) == Some(Hop::Broadcast);
        packet.fragment_offset() == 0 && !to_several && is_host(packet.source().into()) && !is_error(packet)
    }

    /// The way to a sender, and with which address: the one the packet was for, if it is one of ours.
    fn way_back(&self, to: Ipv4Addr, about: Ipv4Addr, interface: u16) -> Option<(NeighborId, Ipv4Addr)> {
        let way = self.way(to.into(), interface)?;
        let IpAddr::V4(station) = way.station else { return None };
        let from = if self.is_own(interface, about.into()) {
            Some(about)
        } else {
            self.source_inet(way.interface, station)
        };
        from.map(|from| (way, from))
    }

    /// Tells the sender of an IPv6 packet what has become of it, if it may be told. `rest` is what stands behind the
    /// checksum: an MTU, a pointer, or 0.
    pub(super) fn error6(
        &mut self,
        now: Duration,
        arrival: RxFrame<'_>,
        kind: Icmpv6Kind,
        rest: u32,
        out: &mut Output,
    ) {
        if !arrival.to_group || tells_groups(kind) {
            self.error6_about(now, arrival.payload, arrival.interface, kind, rest, out);
        }
    }

    /// As [`HostStack::error6`], about a packet that came in some time ago.
    pub(super) fn error6_about(
        &mut self,
        now: Duration,
        packet: &[u8],
        interface: u16,
        kind: Icmpv6Kind,
        rest: u32,
        out: &mut Output,
    ) {
        let Some(packet) = sender::inet6(packet).filter(|packet| may_answer6(packet, kind)) else { return };
        let (to, about): (Ipv6Addr, Ipv6Addr) = (packet.source().into(), packet.destination().into());
        let Some((way, from)) = self.way_back6(to, about, interface) else { return };
        if !self.may_err(now, interface) {
            return;
        }
        let message = message6(packet.bytes(), kind, rest);
        self.originate6(now, (from, to), 0, message, way, out);
    }

    /// As [`HostStack::way_back`]; but of the router's other addresses one of the link the packet came in by says more than
    /// one of the link the error leaves by (RFC 4443, section 2.2).
    pub(super) fn way_back6(
        &self,
        to: Ipv6Addr,
        about: Ipv6Addr,
        interface: u16,
    ) -> Option<(NeighborId, Ipv6Addr)> {
        let way = self.way(to.into(), interface)?;
        let from =
            if self.is_own(interface, about.into()) { Some(about) } else { self.source_inet6(interface, to) };
        from.map(|from| (way, from))
    }

    /// Whether one more error may be sent about packets of this interface; if so, it counts.
    pub(super) fn may_err(&mut self, now: Duration, interface: u16) -> bool {
        let may = self.limiter.take(now, interface);
        let counter = if may { &mut self.counters.errors } else { &mut self.counters.errors_limited };
        *counter += 1;
        may
    }
}

/// Bits of the type of service that an error takes over, and the precedence it has (RFC 1812, section 4.3.2.5).
const TYPE_OF_SERVICE_BITS: u8 = 0x1e;
const INTERNETWORK_CONTROL: u8 = 0xc0;

/// The type of service of an error about a packet.
pub(super) fn precedence(packet: &Ipv4Packet<&[u8]>) -> u8 {
    packet.type_of_service() & TYPE_OF_SERVICE_BITS | INTERNETWORK_CONTROL
}

/// An error with as much of the packet as it may hold.
pub(super) fn message(packet: &Ipv4Packet<&[u8]>, kind: Icmpv4Kind, rest: u32) -> Vec<u8> {
    let quoted = packet.bytes();
    let quoted = &quoted[..quoted.len().min(LONGEST - ipv4::HEADER - icmp::HEADER)];
    let mut bytes = [&[0; icmp::HEADER], quoted].concat();
    let mut message = Icmpv4Message::new_unchecked(&mut bytes);
    message.set_kind(kind);
    message.set_rest(rest);
    message.fill_checksum();
    bytes
}

/// As [`message`]; the checksum is still to be filled in.
fn message6(quoted: &[u8], kind: Icmpv6Kind, rest: u32) -> Vec<u8> {
    let quoted = &quoted[..quoted.len().min(LONGEST6 - ipv6::HEADER - icmpv6::HEADER)];
    let mut bytes = [&[0; icmpv6::HEADER], quoted].concat();
    let mut message = Icmpv6Message::new_unchecked(&mut bytes);
    message.set_kind(kind);
    message.set_rest(rest);
    bytes
}

/// Whether an address can be that of one host.
fn is_host(ip: Ipv4Addr) -> bool {
    !matches!(ip.octets()[0], 0 | 127 | 224..=255)
}

/// Whether a packet is, or may be, an ICMP error itself.
fn is_error(packet: &Ipv4Packet<&[u8]>) -> bool {
    let type_and_code = |payload: &[u8]| payload.first().map(|kind| Icmpv4Kind::from_type_and_code(*kind, 0));
    packet.protocol() == protocol::ICMP && type_and_code(packet.payload()).is_none_or(Icmpv4Kind::is_error)
}

fn may_answer6(packet: &Ipv6Packet<&[u8]>, kind: Icmpv6Kind) -> bool {
    let (source, destination) = (Ipv6Addr::from(packet.source()), Ipv6Addr::from(packet.destination()));
    let is_host = !(source.is_unspecified() || source.is_multicast() || source.is_loopback());
    is_host && (!destination.is_multicast() || tells_groups(kind)) && !is_error6(packet)
}

/// The two errors that answer a packet to a group too: a sender cannot do without.
fn tells_groups(kind: Icmpv6Kind) -> bool {
    matches!(kind, Icmpv6Kind::PacketTooBig | Icmpv6Kind::UnknownOption)
}

/// Whether a packet is, or may be, an ICMPv6 error itself, behind whatever extension headers.
fn is_error6(packet: &Ipv6Packet<&[u8]>) -> bool {
    let upper = headers(packet).find(|part| part.kind == protocol::ICMPV6);
    let kind = upper.map(|part| part.bytes.first().map(|kind| Icmpv6Kind::from_type_and_code(*kind, 0)));
    kind.is_some_and(|kind| kind.is_none_or(Icmpv6Kind::is_error))
}
