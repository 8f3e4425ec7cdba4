//! Answers to packets that a rule of the filter rejects: TCP resets, and ICMP errors. Both are within the limits of ICMP errors,
//! and neither answers what an ICMP error may not be about. The filter does not judge them.

use std::net::IpAddr;

use super::error::{self, IcmpErrors};
use super::error6;
use super::next_hop::NextHopResolver;
use super::received::RxFrame;
use super::sender::PacketSender;
use fullview_filter::packet::protocol::tcp::{ACK, FIN, RST, SYN};
use fullview_filter::packet::{Fragment, Packet, TcpSegment, network_header};
use fullview_plane::verdict::RejectAnswer;
use fullview_plane::wire::checksum::{Sum, pseudo_ipv4, pseudo_ipv6};
use fullview_plane::wire::icmp::Icmpv4Kind;
use fullview_plane::wire::icmp_message::IcmpKind;
use fullview_plane::wire::icmpv6::Icmpv6Kind;
use fullview_plane::wire::ipv4::protocol;
use fullview_plane::wire::tcp::{self, BareSegment};

/// Answers a packet as its rule says.
pub(super) fn answer<R: NextHopResolver>(
    errors: &mut IcmpErrors,
    sender: &mut PacketSender<'_, R>,
    frame: RxFrame<'_>,
    answer: RejectAnswer,
) {
    match (answer.code(), frame.inet()) {
        (None, _) => drop(reset(errors, sender, frame)),
        (Some(code), Some(_)) => {
            let (kind, _) = Icmpv4Kind::NetUnreachable.type_and_code();
            errors.report(sender, frame, Icmpv4Kind::from_type_and_code(kind, code).into());
        }
        (Some(code), None) => {
            let (kind, _) = Icmpv6Kind::NoRoute.type_and_code();
            errors.report6(sender, frame, Icmpv6Kind::from_type_and_code(kind, code).into());
        }
    }
}

/// Sends a reset in the name of the packet's destination. `None`: the packet may not be answered, or is damaged.
fn reset<R: NextHopResolver>(
    errors: &mut IcmpErrors,
    sender: &mut PacketSender<'_, R>,
    frame: RxFrame<'_>,
) -> Option<()> {
    let received = Packet::parse(frame.payload, Packet::NOTHING.pass).ok()?;
    let ends = (IpAddr::from(received.destination), IpAddr::from(received.source));
    let may_answer = received.fragment == Fragment::Whole && !frame.to_group;
    if !may_answer || !is_answerable(sender, frame) || !is_intact(frame.payload, ends) {
        return None;
    }
    let neighbor = sender.ip.next_neighbor(ends.1, frame.interface)?;
    let pseudo = pseudo(ends.0, ends.1, tcp::HEADER);
    let segment = answer_to(&received, received.tcp()?).bytes(pseudo);
    if errors.may_send(sender.now, frame.interface) {
        sender.originate_segment(ends, &segment, neighbor);
    }
    Some(())
}

/// The reset that the other end of a closed connection sends (RFC 9293, section 3.10.7.1).
fn answer_to(packet: &Packet, segment: &TcpSegment) -> BareSegment {
    let (source_port, destination_port) = (packet.destination_port, packet.source_port);
    let answer = BareSegment { source_port, destination_port, seq: 0, ack: 0, flags: RST };
    if segment.flags & ACK != 0 {
        return BareSegment { seq: segment.ack, ..answer };
    }
    let control = (segment.flags & (SYN | FIN)).count_ones();
    let length = u32::from(segment.payload) + control;
    BareSegment { ack: segment.seq.wrapping_add(length), flags: RST | ACK, ..answer }
}

/// Whether an error may be sent about the packet: then a reset may be, too.
fn is_answerable<R: NextHopResolver>(sender: &PacketSender<'_, R>, frame: RxFrame<'_>) -> bool {
    match (frame.inet(), frame.inet6()) {
        (Some(packet), _) => error::is_reportable(sender.ip, frame.interface, &packet),
        (_, Some(packet)) => error6::is_reportable(&packet, Icmpv6Kind::Prohibited),
        _ => false,
    }
}

/// Whether the checksum of the segment is correct. A damaged segment may not be of this connection.
fn is_intact(packet: &[u8], (destination, source): (IpAddr, IpAddr)) -> bool {
    let Ok(header) = network_header(packet) else { return false };
    let segment = packet.get(header.payload..usize::from(header.length)).unwrap_or_default();
    pseudo(source, destination, segment.len()).bytes(segment).verifies()
}

fn pseudo(source: IpAddr, destination: IpAddr, length: usize) -> Sum {
    match (source, destination) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            pseudo_ipv4(from.to_bits(), to.to_bits(), protocol::TCP, length as u16)
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            pseudo_ipv6(from.to_bits(), to.to_bits(), protocol::TCP, length as u32)
        }
        _ => Sum::ZERO,
    }
}
