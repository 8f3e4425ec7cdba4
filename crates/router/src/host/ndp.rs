//! Neighbour discovery (RFC 4861, section 7): answers solicitations for the router's addresses, including those of
//! duplicate address detection, and learns link addresses from solicitations and advertisements.

use std::net::Ipv6Addr;

use super::discovery;
use super::interfaces::Interfaces;
use super::ip_layer::IpLayer;
use super::neighbor::{Evidence, NeighborId};
use super::next_hop::NextHopResolver;
use super::received::RxFrame;
use super::responder::NeighborResponder;
use super::sender::PacketSender;
use crate::route::RouteAction;
use fullview_plane::wire::ethernet::Mac;
use fullview_plane::wire::icmpv6::{Icmpv6Kind, Icmpv6Message};
use fullview_plane::wire::ipv6::Ipv6Packet;
use fullview_plane::wire::ndp::{self, Builder, LinkAddress};

/// A well-formed solicitation or advertisement.
struct DiscoveryMessage<'a> {
    interface: u16,
    from: Ipv6Addr,
    to: Ipv6Addr,
    target: Ipv6Addr,
    /// The source address of the frame.
    source: Mac,
    bytes: &'a [u8],
}

/// How a solicitation is answered.
struct NdpReply {
    /// The solicitor, with its link address; `None` if it has no address yet and all nodes get the answer.
    to: Option<(Ipv6Addr, Mac)>,
    /// Whether the solicitation was multicast. The answer then names the router's link address; a station that sent it
    /// to the router alone knows the address already.
    was_multicast: bool,
}

impl NeighborResponder {
    /// Handles a message whose hop limit, checksum and code are valid.
    pub fn receive_ndp<R: NextHopResolver>(
        &mut self,
        sender: &mut PacketSender<'_, R>,
        frame: RxFrame<'_>,
        packet: &Ipv6Packet<&[u8]>,
        bytes: &[u8],
    ) {
        let Ok(target) = ndp::target(bytes) else { return };
        let (from, to) = (Ipv6Addr::from(packet.source()), Ipv6Addr::from(packet.destination()));
        let (interface, target, source) = (frame.interface, Ipv6Addr::from(target), frame.source);
        let message = DiscoveryMessage { interface, from, to, target, source, bytes };
        if target.is_multicast() || from.is_multicast() {
            return;
        }
        match Icmpv6Message::new_unchecked(bytes).kind() {
            Icmpv6Kind::NeighborSolicitation => self.receive_solicitation(sender, &message),
            Icmpv6Kind::NeighborAdvertisement => self.receive_advertisement(sender, &message),
            _ => {}
        }
    }

    fn receive_solicitation<R: NextHopResolver>(
        &mut self,
        sender: &mut PacketSender<'_, R>,
        message: &DiscoveryMessage<'_>,
    ) {
        let DiscoveryMessage { interface, from, to, target, .. } = *message;
        if sender.ip.interfaces.is_own(interface, from.into()) {
            return self.conflict(sender, interface, from.into(), message.source);
        }
        let link_address = ndp::link_address(message.bytes, LinkAddress::Source);
        let reply_mac = link_address.unwrap_or(message.source);
        let is_detection = from.is_unspecified();
        let to_its_group = to.to_bits() == ndp::solicited_node(target.to_bits());
        if reply_mac.is_group() || is_detection && (link_address.is_some() || !to_its_group) {
            return;
        }
        if !answers_for(sender.ip, interface, target) {
            return;
        }
        if let Some(mac) = link_address.filter(|_| can_be_on_link(&sender.ip.interfaces, interface, from)) {
            sender.learn(NeighborId { interface, ip: from.into() }, mac, Evidence::Request);
        }
        let to = if is_detection { None } else { Some((from, reply_mac)) };
        self.answer_ndp(sender, interface, target, NdpReply { to, was_multicast: message.to.is_multicast() });
    }

    fn answer_ndp<R: NextHopResolver>(
        &mut self,
        sender: &mut PacketSender<'_, R>,
        number: u16,
        target: Ipv6Addr,
        NdpReply { to, was_multicast }: NdpReply,
    ) {
        let Some(interface) = sender.ip.interfaces.get(number) else { return };
        let anycast = is_anycast(sender.ip, number, target);
        let solicited = if to.is_some() { ndp::SOLICITED } else { 0 };
        let overrides = if was_multicast && !anycast { ndp::OVERRIDE } else { 0 };
        let flags = ndp::ROUTER | solicited | overrides;
        let mut answer = Builder::neighbor(Icmpv6Kind::NeighborAdvertisement, flags, target.to_bits());
        if was_multicast {
            answer = answer.link_address(LinkAddress::Target, interface.mac);
        }
        let (destination, mac) = to.map_or((ndp::ALL_NODES.into(), None), |(ip, mac)| (ip, Some(mac)));
        let from =
            if anycast { sender.ip.interfaces.source_inet6(number, destination) } else { Some(target) };
        let Some(from) = from else { return };
        discovery::send(interface, (from, destination), mac, answer.build(), sender.out);
        self.answers += 1;
    }

    fn receive_advertisement<R: NextHopResolver>(
        &mut self,
        sender: &mut PacketSender<'_, R>,
        message: &DiscoveryMessage<'_>,
    ) {
        let flags = Icmpv6Message::new_unchecked(message.bytes).rest();
        let solicited = flags & ndp::SOLICITED != 0;
        if solicited && message.to.is_multicast() {
            return;
        }
        if sender.ip.interfaces.is_own(message.interface, message.target.into()) {
            return self.conflict(sender, message.interface, message.target.into(), message.source);
        }
        let neighbor = NeighborId { interface: message.interface, ip: message.target.into() };
        let named = ndp::link_address(message.bytes, LinkAddress::Target);
        // The answer to a unicast solicitation may leave the link address out.
        let Some(mac) = named.or_else(|| sender.ip.neighbors.mac(neighbor)) else { return };
        let overrides = flags & ndp::OVERRIDE != 0;
        let evidence =
            if solicited { Evidence::Solicited { overrides } } else { Evidence::Unsolicited { overrides } };
        sender.learn(neighbor, mac, evidence);
    }
}

/// Whether the router answers for an address on this interface: its own, or the anycast address of a network's routers.
fn answers_for<R: NextHopResolver>(ip: &IpLayer<R>, interface: u16, target: Ipv6Addr) -> bool {
    ip.interfaces.is_own_on(interface, target.into()) || is_anycast(ip, interface, target)
}

fn is_anycast<R: NextHopResolver>(ip: &IpLayer<R>, number: u16, target: Ipv6Addr) -> bool {
    let on_link = ip.interfaces.is_on_link(number, target.into());
    let local = ip.lookup(number, target.into()) == Some(RouteAction::Local);
    on_link && local && !target.is_unicast_link_local() && !ip.interfaces.is_own(number, target.into())
}

fn can_be_on_link(interfaces: &Interfaces, number: u16, ip: Ipv6Addr) -> bool {
    let on_link = interfaces.is_on_link(number, ip.into());
    ip.is_unicast_link_local() || on_link && !ip.is_unspecified()
}
