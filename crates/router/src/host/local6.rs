//! IPv6 packets for the router itself: extension headers, neighbour discovery, echo; nobody here takes anything else.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use super::next_hop::NextHopResolver;
use super::output::Output;
use super::{HostStack, RxFrame, sender};
use fullview_plane::wire::checksum::pseudo_ipv6;
use fullview_plane::wire::extension::{ChainedHeader, OptionAction, headers, kind, unknown_option};
use fullview_plane::wire::icmp_message::IcmpKind;
use fullview_plane::wire::icmpv6::{Icmpv6Kind, Icmpv6Message};
use fullview_plane::wire::ipv4::protocol;
use fullview_plane::wire::ipv6::{self, Ipv6Packet};
use fullview_plane::wire::{ndp, udp};

/// What becomes of a packet at one of its headers.
enum Step {
    /// The next header is looked at.
    On,
    /// It ends here.
    Done,
    /// The sender is told.
    Tell(Icmpv6Kind, usize),
}

impl<W: NextHopResolver> HostStack<W> {
    /// A packet that came in by an interface that forwards nothing: it may be for the router all the same.
    pub(super) fn local6_if_own(&mut self, now: Duration, arrival: RxFrame<'_>, out: &mut Output) {
        let to = sender::inet6(arrival.payload).map(|packet| Ipv6Addr::from(packet.destination()));
        if to.is_some_and(|to| to.is_multicast() || self.is_own(arrival.interface, to.into())) {
            self.local6(now, arrival, out);
        }
    }

    /// A packet to one of the router's addresses, or to a group of the link.
    pub(super) fn local6(&mut self, now: Duration, arrival: RxFrame<'_>, out: &mut Output) {
        let Some(packet) = sender::inet6(arrival.payload) else { return };
        let to = Ipv6Addr::from(packet.destination());
        if to.is_multicast() && !self.listens(arrival.interface, to) {
            return;
        }
        for part in headers(&packet) {
            match self.step(now, arrival, &packet, part, out) {
                Step::On => {}
                Step::Done => return,
                Step::Tell(kind, at) => return self.error6(now, arrival, kind, at as u32, out),
            }
        }
    }

    /// All nodes, all routers, and the groups that its addresses, and those of any router of its networks, are asked
    /// for by.
    fn listens(&self, interface: u16, group: Ipv6Addr) -> bool {
        let group = group.to_bits();
        let asks_for =
            |ip: IpAddr| matches!(ip, IpAddr::V6(ip) if ndp::solicited_node(ip.to_bits()) == group);
        let mut own = self.interface(interface).into_iter().flat_map(|interface| &interface.addresses);
        [ndp::ALL_NODES, ndp::ALL_ROUTERS].contains(&group)
            || own.any(|own| asks_for(own.ip) || asks_for(network(own.ip, own.len)))
    }

    fn step(
        &mut self,
        now: Duration,
        arrival: RxFrame<'_>,
        packet: &Ipv6Packet<&[u8]>,
        part: ChainedHeader<'_>,
        out: &mut Output,
    ) -> Step {
        let to_group = Ipv6Addr::from(packet.destination()).is_multicast();
        match part.kind {
            // Of all headers only this one stands in a fixed place.
            kind::HOP_BY_HOP if part.at != ipv6::HEADER => {
                Step::Tell(Icmpv6Kind::UnknownNextHeader, part.next_header_at)
            }
            kind::HOP_BY_HOP | kind::DESTINATION => options(part, to_group),
            kind::ROUTING => routing(part),
            kind::FRAGMENT => fragment(part),
            kind::NONE => Step::Done,
            protocol::ICMPV6 => {
                self.icmp6(now, arrival, packet, part.bytes, out);
                Step::Done
            }
            protocol::UDP if !is_intact(packet, part.bytes) => Step::Done,
            protocol::UDP => Step::Tell(Icmpv6Kind::PortUnreachable, 0),
            _ => Step::Tell(Icmpv6Kind::UnknownNextHeader, part.next_header_at),
        }
    }

    fn icmp6(
        &mut self,
        now: Duration,
        arrival: RxFrame<'_>,
        packet: &Ipv6Packet<&[u8]>,
        message: &[u8],
        out: &mut Output,
    ) {
        let len = message.len() as u32;
        let pseudo = pseudo_ipv6(packet.source(), packet.destination(), protocol::ICMPV6, len);
        let Ok(view) = Icmpv6Message::new_checked(message) else { return };
        if !view.verify_checksum(pseudo) {
            return;
        }
        let (kind, code) = view.kind().type_and_code();
        if kind == Icmpv6Kind::EchoRequest.type_and_code().0 {
            self.echo6(now, arrival, packet, code, message, out);
        } else if packet.hop_limit() == ndp::HOP_LIMIT && code == 0 {
            self.ndp(now, arrival, packet, message, out);
        }
    }

    fn echo6(
        &mut self,
        now: Duration,
        arrival: RxFrame<'_>,
        packet: &Ipv6Packet<&[u8]>,
        code: u8,
        message: &[u8],
        out: &mut Output,
    ) {
        let (to, asked): (Ipv6Addr, Ipv6Addr) = (packet.source().into(), packet.destination().into());
        if to.is_unspecified() || to.is_multicast() {
            return;
        }
        let Some((way, from)) = self.way_back6(to, asked, arrival.interface) else { return };
        let mut bytes = message.to_vec();
        let kind = Icmpv6Kind::EchoReply.type_and_code().0;
        Icmpv6Message::new_unchecked(&mut bytes[..]).set_kind(Icmpv6Kind::from_type_and_code(kind, code));
        self.counters.echoes += 1;
        self.originate6(now, (from, to), packet.traffic_class(), bytes, way, out);
    }
}

/// The first address of a network: that of any of its routers.
pub(super) fn network(ip: IpAddr, len: u8) -> IpAddr {
    let IpAddr::V6(ip) = ip else { return ip };
    let mask = u128::MAX.checked_shl(128 - u32::from(len.min(128))).unwrap_or(0);
    Ipv6Addr::from(ip.to_bits() & mask).into()
}

fn options(part: ChainedHeader<'_>, to_group: bool) -> Step {
    match unknown_option(part.bytes) {
        None => Step::On,
        Some((OptionAction::Report, at)) => Step::Tell(Icmpv6Kind::UnknownOption, part.at + at),
        Some((OptionAction::ReportUnlessGroup, at)) if !to_group => {
            Step::Tell(Icmpv6Kind::UnknownOption, part.at + at)
        }
        Some(_) => Step::Done,
    }
}

/// Nobody is visited on the way for whoever wrote the packet (RFC 5095).
fn routing(part: ChainedHeader<'_>) -> Step {
    const TYPE_AT: usize = 2;
    const SEGMENTS_LEFT_AT: usize = 3;
    if part.bytes[SEGMENTS_LEFT_AT] == 0 {
        return Step::On;
    }
    Step::Tell(Icmpv6Kind::ParameterProblem, part.at + TYPE_AT)
}

/// Only a packet that is whole in spite of its fragment header is looked at (RFC 6946).
fn fragment(part: ChainedHeader<'_>) -> Step {
    const OFFSET_AND_MORE: u16 = 0xfff9;
    let field = u16::from_be_bytes([part.bytes[2], part.bytes[3]]);
    if field & OFFSET_AND_MORE == 0 { Step::On } else { Step::Done }
}

/// A datagram without a checksum is not (RFC 8200, section 8.1).
fn is_intact(packet: &Ipv6Packet<&[u8]>, datagram: &[u8]) -> bool {
    let Ok(datagram) = udp::Datagram::new_checked(datagram) else { return false };
    let len = u32::from(datagram.length());
    let pseudo = pseudo_ipv6(packet.source(), packet.destination(), protocol::UDP, len);
    datagram.checksum() != 0 && datagram.verify_checksum(pseudo)
}
