//! ICMP errors: when none may be sent (RFC 1812, section 4.3.2.7; RFC 4443, section 2.4 e), what they quote, their source
//! address, and how many are sent. The ICMPv6 half is in `error6`.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use super::ip_layer::IpLayer;
use super::limit::InterfaceLimiter;
use super::neighbor::NeighborId;
use super::next_hop::NextHopResolver;
use super::received::{self, RxFrame};
use super::sender::PacketSender;
use crate::route::RouteAction;
use fullview_plane::wire::icmp::{self, Icmpv4Kind, Icmpv4Message};
use fullview_plane::wire::icmp_message::IcmpKind;
use fullview_plane::wire::ipv4::{self, Ipv4Packet, protocol};

/// The longest error, with its IP header (RFC 1812, section 4.3.2.3).
const LONGEST: usize = 576;

/// Sends ICMP and ICMPv6 errors within limits that both families share.
pub(super) struct IcmpErrors {
    limiter: InterfaceLimiter,
    /// Errors sent, redirects and TCP resets among them.
    pub sent: u64,
    /// Errors suppressed by a limit.
    pub limited: u64,
}

/// What an error reports: its kind, and the 32 bits behind the checksum (an MTU, a pointer, a gateway, or 0).
#[derive(Clone, Copy)]
pub(super) struct Problem<K> {
    pub kind: K,
    pub rest: u32,
}

impl<K> From<K> for Problem<K> {
    fn from(kind: K) -> Problem<K> {
        Problem { kind, rest: 0 }
    }
}

impl IcmpErrors {
    pub fn new(limiter: InterfaceLimiter) -> IcmpErrors {
        IcmpErrors { limiter, sent: 0, limited: 0 }
    }

    /// Makes room for at least this many interfaces.
    pub fn grow(&mut self, interfaces: usize) {
        self.limiter.grow(interfaces);
    }

    /// Whether one more error or reset may be sent about packets of this interface. Counts it as sent or as limited.
    pub fn may_send(&mut self, now: Duration, interface: u16) -> bool {
        let may = self.limiter.take(now, interface);
        let counter = if may { &mut self.sent } else { &mut self.limited };
        *counter += 1;
        may
    }

    /// Reports a problem to the sender of an IPv4 packet, if it may be reported.
    pub fn report<R: NextHopResolver>(
        &mut self,
        sender: &mut PacketSender<'_, R>,
        frame: RxFrame<'_>,
        problem: Problem<Icmpv4Kind>,
    ) {
        if !frame.to_group {
            self.report_packet(sender, frame.payload, frame.interface, problem);
        }
    }

    /// As [`IcmpErrors::report`], for a packet that was received earlier.
    pub fn report_packet<R: NextHopResolver>(
        &mut self,
        sender: &mut PacketSender<'_, R>,
        packet: &[u8],
        interface: u16,
        problem: Problem<Icmpv4Kind>,
    ) {
        let packet = received::inet(packet).filter(|packet| is_reportable(sender.ip, interface, packet));
        let Some(packet) = packet else { return };
        let (to, about): (Ipv4Addr, Ipv4Addr) = (packet.source().into(), packet.destination().into());
        let Some((neighbor, from)) = return_path(sender.ip, to, about, interface) else { return };
        if !self.may_send(sender.now, interface) {
            return;
        }
        sender.originate_icmp((from, to), precedence(&packet), &message(&packet, problem), neighbor);
    }
}

/// Whether an error may be sent about a packet.
pub(super) fn is_reportable<R: NextHopResolver>(
    ip: &IpLayer<R>,
    interface: u16,
    packet: &Ipv4Packet<&[u8]>,
) -> bool {
    let destination = Ipv4Addr::from(packet.destination());
    let to_several = destination.is_multicast()
        || destination.is_broadcast()
        || ip.lookup(interface, destination.into()) == Some(RouteAction::Broadcast);
    packet.fragment_offset() == 0 && !to_several && is_host(packet.source().into()) && !is_error(packet)
}

/// The neighbour through which a sender is reached, and the source address: the one that the packet was sent to, if it
/// is the router's own.
fn return_path<R: NextHopResolver>(
    ip: &IpLayer<R>,
    to: Ipv4Addr,
    about: Ipv4Addr,
    interface: u16,
) -> Option<(NeighborId, Ipv4Addr)> {
    let neighbor = ip.next_neighbor(to.into(), interface)?;
    let IpAddr::V4(next) = neighbor.ip else { return None };
    let from = if ip.interfaces.is_own(interface, about.into()) {
        Some(about)
    } else {
        ip.interfaces.source_inet(neighbor.interface, next)
    };
    from.map(|from| (neighbor, from))
}

/// The bits of the type of service that an error copies, and the precedence that it sets (RFC 1812, section 4.3.2.5).
const TYPE_OF_SERVICE_BITS: u8 = 0x1e;
const INTERNETWORK_CONTROL: u8 = 0xc0;

/// The type of service of an error about a packet.
pub(super) fn precedence(packet: &Ipv4Packet<&[u8]>) -> u8 {
    packet.type_of_service() & TYPE_OF_SERVICE_BITS | INTERNETWORK_CONTROL
}

/// An error that quotes as much of the packet as it may hold.
pub(super) fn message(packet: &Ipv4Packet<&[u8]>, problem: Problem<Icmpv4Kind>) -> Vec<u8> {
    let quoted = packet.bytes();
    let quoted = &quoted[..quoted.len().min(LONGEST - ipv4::HEADER - icmp::HEADER)];
    let mut bytes = [&[0; icmp::HEADER], quoted].concat();
    let mut message = Icmpv4Message::new_unchecked(&mut bytes);
    message.set_kind(problem.kind);
    message.set_rest(problem.rest);
    message.fill_checksum();
    bytes
}

/// Whether an address can belong to a single host.
fn is_host(ip: Ipv4Addr) -> bool {
    !matches!(ip.octets()[0], 0 | 127 | 224..=255)
}

/// Whether a packet is an ICMP error, or too short to exclude that.
fn is_error(packet: &Ipv4Packet<&[u8]>) -> bool {
    let type_and_code = |payload: &[u8]| payload.first().map(|kind| Icmpv4Kind::from_type_and_code(*kind, 0));
    packet.protocol() == protocol::ICMP && type_and_code(packet.payload()).is_none_or(Icmpv4Kind::is_error)
}
