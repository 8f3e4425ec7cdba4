//! ICMPv6 errors (RFC 4443, section 2.4).

use std::net::Ipv6Addr;

use super::error::{IcmpErrors, Problem};
use super::ip_layer::IpLayer;
use super::neighbor::NeighborId;
use super::next_hop::NextHopResolver;
use super::received::{self, RxFrame};
use super::sender::PacketSender;
use fullview_plane::wire::extension::headers;
use fullview_plane::wire::icmp_message::IcmpKind;
use fullview_plane::wire::icmpv6::{self, Icmpv6Kind, Icmpv6Message};
use fullview_plane::wire::ipv4::protocol;
use fullview_plane::wire::ipv6::{self, Ipv6Packet};

/// The longest error, with its IP header (RFC 4443, section 2.4 c).
pub(super) const LONGEST: usize = 1280;

impl IcmpErrors {
    /// Reports a problem to the sender of an IPv6 packet, if it may be reported.
    pub fn report6<R: NextHopResolver>(
        &mut self,
        sender: &mut PacketSender<'_, R>,
        frame: RxFrame<'_>,
        problem: Problem<Icmpv6Kind>,
    ) {
        if !frame.to_group || answers_multicast(problem.kind) {
            self.report_packet6(sender, frame.payload, frame.interface, problem);
        }
    }

    /// As [`IcmpErrors::report6`], for a packet that was received earlier.
    pub fn report_packet6<R: NextHopResolver>(
        &mut self,
        sender: &mut PacketSender<'_, R>,
        packet: &[u8],
        interface: u16,
        problem: Problem<Icmpv6Kind>,
    ) {
        let packet = received::inet6(packet).filter(|packet| is_reportable(packet, problem.kind));
        let Some(packet) = packet else { return };
        let (to, about): (Ipv6Addr, Ipv6Addr) = (packet.source().into(), packet.destination().into());
        let Some((neighbor, from)) = return_path6(sender.ip, to, about, interface) else { return };
        if !self.may_send(sender.now, interface) {
            return;
        }
        sender.originate_icmpv6((from, to), 0, message(packet.bytes(), problem), neighbor);
    }
}

/// The neighbour through which a sender is reached, and the source address: the one that the packet was sent to, if it
/// is the router's own. Else an address of the link that received the packet identifies the router better than one of
/// the link on which the error leaves (RFC 4443, section 2.2).
pub(super) fn return_path6<R: NextHopResolver>(
    ip: &IpLayer<R>,
    to: Ipv6Addr,
    about: Ipv6Addr,
    interface: u16,
) -> Option<(NeighborId, Ipv6Addr)> {
    let neighbor = ip.next_neighbor(to.into(), interface)?;
    let is_own = ip.interfaces.is_own(interface, about.into());
    let from = if is_own { Some(about) } else { ip.interfaces.source_inet6(interface, to) };
    from.map(|from| (neighbor, from))
}

/// An error that quotes as much of the packet as it may hold, without its checksum.
fn message(quoted: &[u8], problem: Problem<Icmpv6Kind>) -> Vec<u8> {
    let quoted = &quoted[..quoted.len().min(LONGEST - ipv6::HEADER - icmpv6::HEADER)];
    let mut bytes = [&[0; icmpv6::HEADER], quoted].concat();
    let mut message = Icmpv6Message::new_unchecked(&mut bytes);
    message.set_kind(problem.kind);
    message.set_rest(problem.rest);
    bytes
}

/// Whether an error of this kind may be sent about a packet.
pub(super) fn is_reportable(packet: &Ipv6Packet<&[u8]>, kind: Icmpv6Kind) -> bool {
    let (source, destination) = (Ipv6Addr::from(packet.source()), Ipv6Addr::from(packet.destination()));
    let is_host = !(source.is_unspecified() || source.is_multicast() || source.is_loopback());
    is_host && (!destination.is_multicast() || answers_multicast(kind)) && !is_error(packet)
}

/// The two errors that also answer a multicast packet, because path MTU discovery and option handling need them.
fn answers_multicast(kind: Icmpv6Kind) -> bool {
    matches!(kind, Icmpv6Kind::PacketTooBig | Icmpv6Kind::UnknownOption)
}

/// Whether a packet is an ICMPv6 error behind any extension headers, or too short to exclude that.
fn is_error(packet: &Ipv6Packet<&[u8]>) -> bool {
    let upper = headers(packet).find(|part| part.kind == protocol::ICMPV6);
    let kind = upper.map(|part| part.bytes.first().map(|kind| Icmpv6Kind::from_type_and_code(*kind, 0)));
    kind.is_some_and(|kind| kind.is_none_or(Icmpv6Kind::is_error))
}
