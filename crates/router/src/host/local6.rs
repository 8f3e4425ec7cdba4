//! IPv6 packets to the router itself: extension headers, neighbour discovery, echo requests.

use std::net::Ipv6Addr;
use std::time::Duration;

use super::error::{IcmpErrors, Problem};
use super::error6;
use super::group_reports;
use super::interfaces::Interfaces;
use super::local::LocalDelivery;
use super::next_hop::NextHopResolver;
use super::reassembly::{Fragment, FragmentFault, FragmentId};
use super::received::RxFrame;
use super::sender::PacketSender;
use fullview_plane::wire::checksum::pseudo_ipv6;
use fullview_plane::wire::extension::{ChainedHeader, OptionAction, headers, kind, unknown_option};
use fullview_plane::wire::icmp_message::IcmpKind;
use fullview_plane::wire::icmpv6::{Icmpv6Kind, Icmpv6Message};
use fullview_plane::wire::ipv4::protocol;
use fullview_plane::wire::ipv6::{self, Ipv6Packet};
use fullview_plane::wire::{ndp, udp};

/// What to do after one of the packet's headers.
enum HeaderAction {
    Next,
    Stop,
    /// Stop until the packet's other fragments have arrived.
    Reassemble,
    /// Stop, and report an error whose pointer is this offset.
    Report(Icmpv6Kind, usize),
    /// Stop, and handle the ICMPv6 message.
    Icmp,
}

impl LocalDelivery {
    /// Receives a packet from an interface that does not forward, if it is for the router or a group.
    pub fn receive6_if_own<R: NextHopResolver>(
        &mut self,
        errors: &mut IcmpErrors,
        sender: &mut PacketSender<'_, R>,
        frame: RxFrame<'_>,
    ) {
        let to = frame.inet6().map(|packet| Ipv6Addr::from(packet.destination()));
        let interfaces = &sender.ip.interfaces;
        if to.is_some_and(|to| to.is_multicast() || interfaces.is_own(frame.interface, to.into())) {
            self.receive6(errors, sender, frame);
        }
    }

    /// Receives a packet to one of the router's addresses, or to a group of the link.
    pub fn receive6<R: NextHopResolver>(
        &mut self,
        errors: &mut IcmpErrors,
        sender: &mut PacketSender<'_, R>,
        frame: RxFrame<'_>,
    ) {
        let Some(packet) = frame.inet6() else { return };
        let to = Ipv6Addr::from(packet.destination());
        if to.is_multicast() && !is_member(&sender.ip.interfaces, frame.interface, to) {
            return;
        }
        for header in headers(&packet) {
            match action(&packet, header) {
                HeaderAction::Next => {}
                HeaderAction::Stop => return,
                HeaderAction::Reassemble if frame.reassembled => return,
                HeaderAction::Reassemble => {
                    let whole = self.reassemble6(sender.now, frame.interface, &packet, header);
                    let Some(payload) = whole else { return };
                    let frame = RxFrame { reassembled: true, payload: &payload, ..frame };
                    return self.receive6(errors, sender, frame);
                }
                HeaderAction::Report(kind, at) => {
                    return errors.report6(sender, frame, Problem { kind, rest: at as u32 });
                }
                HeaderAction::Icmp => return self.receive_icmpv6(sender, frame, &packet, header.bytes),
            }
        }
    }

    /// Returns the whole packet if this was its last missing fragment.
    fn reassemble6(
        &mut self,
        now: Duration,
        interface: u16,
        packet: &Ipv6Packet<&[u8]>,
        header: ChainedHeader<'_>,
    ) -> Option<Vec<u8>> {
        let [next_header, _, _, _, ref identification @ ..] = *header.bytes else { return None };
        let id = FragmentId {
            interface,
            source: Ipv6Addr::from(packet.source()).into(),
            destination: Ipv6Addr::from(packet.destination()).into(),
            protocol: 0,
            identification: u32::from_be_bytes(identification.try_into().ok()?),
        };
        let part = part(packet, header);
        let mut before = part.headers.to_vec();
        *before.get_mut(header.next_header_at)? = next_header;
        let fragment = Fragment { headers: &before, ..part };
        let (headers, payload) = self.reassembler.add(now, id, fragment)?;
        let mut whole = [headers, payload].concat();
        let len = u16::try_from(whole.len() - ipv6::HEADER).ok()?;
        Ipv6Packet::new_unchecked(&mut whole).set_payload_len(len);
        Some(whole)
    }

    fn receive_icmpv6<R: NextHopResolver>(
        &mut self,
        sender: &mut PacketSender<'_, R>,
        frame: RxFrame<'_>,
        packet: &Ipv6Packet<&[u8]>,
        bytes: &[u8],
    ) {
        let len = bytes.len() as u32;
        let pseudo = pseudo_ipv6(packet.source(), packet.destination(), protocol::ICMPV6, len);
        let Ok(message) = Icmpv6Message::new_checked(bytes) else { return };
        if !message.verify_checksum(pseudo) {
            return;
        }
        let (kind, code) = message.kind().type_and_code();
        if kind == Icmpv6Kind::EchoRequest.type_and_code().0 {
            self.answer_echo6(sender, frame, packet, bytes);
        } else if kind == group_reports::QUERY {
            self.receive_query(sender, frame, packet, bytes);
        } else if packet.hop_limit() == ndp::HOP_LIMIT && code == 0 && !frame.reassembled {
            // Fragmented messages of neighbour discovery are ignored (RFC 6980).
            if message.kind() == Icmpv6Kind::RouterSolicitation {
                return self.advertisers.receive_solicitation(sender.now, frame.interface, bytes);
            }
            self.responder.receive_ndp(sender, frame, packet, bytes);
        }
    }

    /// Receives a query about groups, which routers of the link alone send (RFC 3810, section 6.2).
    fn receive_query<R: NextHopResolver>(
        &mut self,
        sender: &mut PacketSender<'_, R>,
        frame: RxFrame<'_>,
        packet: &Ipv6Packet<&[u8]>,
        message: &[u8],
    ) {
        let is_of_link = Ipv6Addr::from(packet.source()).is_unicast_link_local()
            && packet.hop_limit() == group_reports::HOP_LIMIT
            && packet.next_header() == kind::HOP_BY_HOP;
        let interface = sender.ip.interfaces.get(frame.interface).filter(|_| is_of_link);
        let Some(interface) = interface.filter(|_| !frame.reassembled) else { return };
        self.group_reports.receive_query(sender.now, (frame.interface, interface), message);
    }

    fn answer_echo6<R: NextHopResolver>(
        &mut self,
        sender: &mut PacketSender<'_, R>,
        frame: RxFrame<'_>,
        packet: &Ipv6Packet<&[u8]>,
        request: &[u8],
    ) {
        let (to, asked): (Ipv6Addr, Ipv6Addr) = (packet.source().into(), packet.destination().into());
        if to.is_unspecified() || to.is_multicast() {
            return;
        }
        let Some((neighbor, from)) = error6::return_path6(sender.ip, to, asked, frame.interface) else {
            return;
        };
        self.echoes += 1;
        sender.originate_icmpv6((from, to), packet.traffic_class(), echo_reply(request), neighbor);
    }
}

/// The reply to an echo request, with the code of the request and without its checksum.
fn echo_reply(request: &[u8]) -> Vec<u8> {
    let mut bytes = request.to_vec();
    let mut reply = Icmpv6Message::new_unchecked(&mut bytes[..]);
    let (_, code) = reply.kind().type_and_code();
    let (kind, _) = Icmpv6Kind::EchoReply.type_and_code();
    reply.set_kind(Icmpv6Kind::from_type_and_code(kind, code));
    bytes
}

/// Whether the router is a member of a group.
fn is_member(interfaces: &Interfaces, interface: u16, group: Ipv6Addr) -> bool {
    let group = group.to_bits();
    let mut groups = interfaces.get(interface).into_iter().flat_map(group_reports::groups);
    group == ndp::ALL_NODES || groups.any(|of| of == group)
}

fn action(packet: &Ipv6Packet<&[u8]>, header: ChainedHeader<'_>) -> HeaderAction {
    let to_group = Ipv6Addr::from(packet.destination()).is_multicast();
    match header.kind {
        // This is the only header that has a fixed place.
        kind::HOP_BY_HOP if header.at != ipv6::HEADER => {
            HeaderAction::Report(Icmpv6Kind::UnknownNextHeader, header.next_header_at)
        }
        kind::HOP_BY_HOP | kind::DESTINATION => options(header, to_group),
        kind::ROUTING => routing(header),
        kind::FRAGMENT => fragment(packet, header),
        kind::NONE => HeaderAction::Stop,
        protocol::ICMPV6 => HeaderAction::Icmp,
        protocol::UDP if !is_intact(packet, header.bytes) => HeaderAction::Stop,
        protocol::UDP => HeaderAction::Report(Icmpv6Kind::PortUnreachable, 0),
        _ => HeaderAction::Report(Icmpv6Kind::UnknownNextHeader, header.next_header_at),
    }
}

fn options(header: ChainedHeader<'_>, to_group: bool) -> HeaderAction {
    match unknown_option(header.bytes) {
        None => HeaderAction::Next,
        Some((OptionAction::Report, at)) => HeaderAction::Report(Icmpv6Kind::UnknownOption, header.at + at),
        Some((OptionAction::ReportUnlessGroup, at)) if !to_group => {
            HeaderAction::Report(Icmpv6Kind::UnknownOption, header.at + at)
        }
        Some(_) => HeaderAction::Stop,
    }
}

/// Source routes are not followed (RFC 5095).
fn routing(header: ChainedHeader<'_>) -> HeaderAction {
    const TYPE_AT: usize = 2;
    const SEGMENTS_LEFT_AT: usize = 3;
    if header.bytes[SEGMENTS_LEFT_AT] == 0 {
        return HeaderAction::Next;
    }
    HeaderAction::Report(Icmpv6Kind::ParameterProblem, header.at + TYPE_AT)
}

/// A packet that is whole in spite of its fragment header is handled at once (RFC 6946).
fn fragment(packet: &Ipv6Packet<&[u8]>, header: ChainedHeader<'_>) -> HeaderAction {
    let part = part(packet, header);
    if part.offset == 0 && !part.more {
        return HeaderAction::Next;
    }
    // The field that is wrong (RFC 8200, section 4.5).
    let wrong_at = match part.fault() {
        None => return HeaderAction::Reassemble,
        Some(FragmentFault::Empty) => return HeaderAction::Stop,
        Some(FragmentFault::UnevenLength) => ipv6::PAYLOAD_LENGTH_AT,
        Some(FragmentFault::BeyondLongest) => header.at + OFFSET_AT,
    };
    HeaderAction::Report(Icmpv6Kind::ParameterProblem, wrong_at)
}

/// Where a fragment header has the offset.
const OFFSET_AT: usize = 2;

/// The share of the packet behind a fragment header, with the headers before it.
fn part<'a>(packet: &'a Ipv6Packet<&[u8]>, header: ChainedHeader<'_>) -> Fragment<'a> {
    let field = u16::from_be_bytes([header.bytes[OFFSET_AT], header.bytes[OFFSET_AT + 1]]);
    let (headers, rest) = packet.bytes().split_at(header.at);
    let bytes = &rest[header.bytes.len()..];
    Fragment { headers, offset: usize::from(field & !7), more: field & 1 != 0, bytes }
}

/// A UDP datagram over IPv6 needs a checksum (RFC 8200, section 8.1).
fn is_intact(packet: &Ipv6Packet<&[u8]>, datagram: &[u8]) -> bool {
    let Ok(datagram) = udp::Datagram::new_checked(datagram) else { return false };
    let len = u32::from(datagram.length());
    let pseudo = pseudo_ipv6(packet.source(), packet.destination(), protocol::UDP, len);
    datagram.checksum() != 0 && datagram.verify_checksum(pseudo)
}
