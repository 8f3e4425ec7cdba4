//! Redirects: the router reports to a sender the router or station on its own link to which it could have sent the
//! packet itself (RFC 1812, section 5.2.7.2; RFC 4861, section 8.2). The loop records candidates on interfaces
//! that have redirects enabled; for packets on the slow path they are found here.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::error::{self, IcmpErrors, Problem};
use super::interfaces::Interfaces;
use super::neighbor::NeighborId;
use super::next_hop::NextHopResolver;
use super::received::{self, RxFrame};
use super::sender::PacketSender;
use super::{error6, packet};
use crate::route::{NextHopVia, RouteAction};
use fullview_plane::forward::RedirectCandidate;
use fullview_plane::wire::ethernet::{EtherType, Frame};
use fullview_plane::wire::icmp::Icmpv4Kind;
use fullview_plane::wire::ipv4::Ipv4Packet;
use fullview_plane::wire::ipv6::{self, Ipv6Packet};
use fullview_plane::wire::ndp::{self, Builder, LinkAddress};

/// Sends a redirect about a packet that the loop forwarded, if that is allowed and within the limits.
pub(super) fn redirect<R: NextHopResolver>(
    errors: &mut IcmpErrors,
    sender: &mut PacketSender<'_, R>,
    candidate: &RedirectCandidate,
) {
    let Some(neighbor) = gateway(&sender.ip.resolver, candidate) else { return };
    let Ok(frame) = Frame::new_checked(candidate.frame.frame()) else { return };
    match (frame.outer_ethertype(), neighbor.ip) {
        (EtherType::IPV4, IpAddr::V4(gateway)) => {
            let packet = received::inet(frame.payload());
            packet.into_iter().for_each(|packet| {
                redirect_inet(errors, sender, packet, neighbor.interface, gateway);
            });
        }
        (EtherType::IPV6, IpAddr::V6(target)) => {
            let packet = received::inet6(frame.payload());
            packet.into_iter().for_each(|packet| {
                redirect_inet6(errors, sender, packet, neighbor.interface, target);
            });
        }
        _ => {}
    }
}

/// The neighbour that the loop sent the packet to, if it is on the link on which the packet arrived.
fn gateway(resolver: &impl NextHopResolver, candidate: &RedirectCandidate) -> Option<NeighborId> {
    let RouteAction::Forward(NextHopVia { link, neighbor }) = resolver.action(candidate.next_hop)? else {
        return None;
    };
    (link == candidate.interface).then_some(NeighborId { interface: link, ip: neighbor? })
}

/// Whether the sender of a packet on the slow path gets a redirect.
pub(super) fn is_redirect_candidate(
    interfaces: &Interfaces,
    frame: RxFrame<'_>,
    source: IpAddr,
    neighbor: NeighborId,
) -> bool {
    let interface = interfaces.get(frame.interface).filter(|interface| interface.redirects);
    neighbor.interface == frame.interface && interface.is_some_and(|interface| interface.is_on_link(source))
}

pub(super) fn redirect_inet<R: NextHopResolver>(
    errors: &mut IcmpErrors,
    sender: &mut PacketSender<'_, R>,
    about: Ipv4Packet<&[u8]>,
    interface: u16,
    gateway: Ipv4Addr,
) {
    let to = Ipv4Addr::from(about.source());
    let back = sender.ip.next_neighbor(to.into(), interface);
    let back = back.filter(|neighbor| neighbor.interface == interface);
    let Some(back) = back.filter(|_| error::is_reportable(sender.ip, interface, &about)) else { return };
    let Some(from) = sender.ip.interfaces.source_inet(interface, to) else { return };
    if errors.may_send(sender.now, interface) {
        let problem = Problem { kind: Icmpv4Kind::Redirect, rest: gateway.to_bits() };
        let message = error::message(&about, problem);
        sender.originate_icmp((from, to), error::precedence(&about), &message, back);
    }
}

/// The target is the destination itself, or a router, which hosts know by its link-local address. A redirect is not an
/// error, so it may answer one.
pub(super) fn redirect_inet6<R: NextHopResolver>(
    errors: &mut IcmpErrors,
    sender: &mut PacketSender<'_, R>,
    about: Ipv6Packet<&[u8]>,
    interface: u16,
    target: Ipv6Addr,
) {
    let (to, destination) = (Ipv6Addr::from(about.source()), Ipv6Addr::from(about.destination()));
    let is_valid_target = target.is_unicast_link_local() || target == destination;
    let from = sender.ip.interfaces.link_local_of(interface).filter(|_| is_valid_target);
    let Some(from) = from else { return };
    let back = sender.ip.next_neighbor(to.into(), interface);
    let back = back.filter(|neighbor| neighbor.interface == interface);
    let Some(back) = back.filter(|_| errors.may_send(sender.now, interface)) else { return };
    let mut message = Builder::redirect(target.to_bits(), destination.to_bits());
    if let Some(mac) = sender.ip.neighbors.mac(NeighborId { interface, ip: target.into() }) {
        message = message.link_address(LinkAddress::Target, mac);
    }
    let message = message.redirected(about.bytes(), error6::LONGEST - ipv6::HEADER).build();
    let packet = packet::with_hop_limit(packet::icmpv6((from, to), 0, message), ndp::HOP_LIMIT);
    sender.deliver(packet, back, interface);
}
