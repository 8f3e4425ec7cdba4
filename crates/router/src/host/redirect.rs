//! Redirects: a sender is told of the router or station on its own link that it could have sent to itself (RFC 1812,
//! section 5.2.7.2; RFC 4861, section 8.2). The loop notes the occasions on interfaces that are asked to do so; of the
//! packets that take the slow way, they are found here.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use super::next_hop::{Hop, NextHopResolver};
use super::output::Output;
use super::sender::{self, NeighborId};
use super::{HostStack, RxFrame, error, packet};
use fullview_plane::forward::RedirectCandidate;
use fullview_plane::wire::ethernet::{EtherType, Frame};
use fullview_plane::wire::icmp::Icmpv4Kind;
use fullview_plane::wire::ipv4::Ipv4Packet;
use fullview_plane::wire::ipv6::{self, Ipv6Packet};
use fullview_plane::wire::ndp::{self, Builder, LinkAddress};

impl<W: NextHopResolver> HostStack<W> {
    /// Tells a sender of a shorter way, if it may be told and there have not been too many.
    pub fn redirect(&mut self, now: Duration, detour: &RedirectCandidate, out: &mut Output) {
        let Some(Hop::Station(interface, station)) = self.routes.hop(detour.next_hop) else { return };
        let frame = Frame::new_checked(detour.frame.frame()).ok();
        let Some(frame) = frame.filter(|_| interface == detour.interface) else { return };
        match (frame.outer_ethertype(), station) {
            (EtherType::IPV4, IpAddr::V4(gateway)) => {
                let packet = sender::inet(frame.payload());
                packet
                    .into_iter()
                    .for_each(|packet| self.redirect_inet(now, packet, interface, gateway, out));
            }
            (EtherType::IPV6, IpAddr::V6(target)) => {
                let packet = sender::inet6(frame.payload());
                packet
                    .into_iter()
                    .for_each(|packet| self.redirect_inet6(now, packet, interface, target, out));
            }
            _ => {}
        }
    }

    /// Whether the sender of a packet on the slow way is to be told of a shorter one.
    pub(super) fn is_detour(&self, arrival: RxFrame<'_>, source: IpAddr, way: NeighborId) -> bool {
        let interface = self.interface(arrival.interface).filter(|interface| interface.redirects);
        way.interface == arrival.interface && interface.is_some_and(|interface| interface.is_on_link(source))
    }

    pub(super) fn redirect_inet(
        &mut self,
        now: Duration,
        about: Ipv4Packet<&[u8]>,
        interface: u16,
        gateway: Ipv4Addr,
        out: &mut Output,
    ) {
        let to = Ipv4Addr::from(about.source());
        let way = self.way(to.into(), interface).filter(|way| way.interface == interface);
        let Some(way) = way.filter(|_| self.may_answer(interface, &about)) else { return };
        let Some(from) = self.source_inet(interface, to) else { return };
        if self.may_err(now, interface) {
            let message = error::message(&about, Icmpv4Kind::Redirect, gateway.to_bits());
            self.originate_icmp(now, (from, to), error::precedence(&about), &message, way, out);
        }
    }

    /// The target is the destination itself, or a router, which hosts know by its link-local address. A redirect is no
    /// error, and may answer one.
    pub(super) fn redirect_inet6(
        &mut self,
        now: Duration,
        about: Ipv6Packet<&[u8]>,
        interface: u16,
        target: Ipv6Addr,
        out: &mut Output,
    ) {
        let (to, destination) = (Ipv6Addr::from(about.source()), Ipv6Addr::from(about.destination()));
        let is_known_so = target.is_unicast_link_local() || target == destination;
        let Some(from) = self.link_local_of(interface).filter(|_| is_known_so) else { return };
        let way = self.way(to.into(), interface).filter(|way| way.interface == interface);
        let Some(way) = way.filter(|_| self.may_err(now, interface)) else { return };
        let mut message = Builder::redirect(target.to_bits(), destination.to_bits());
        if let Some(mac) = self.neighbors.mac((interface, target.into())) {
            message = message.link_address(LinkAddress::Target, mac);
        }
        let message = message.redirected(about.bytes(), error::LONGEST6 - ipv6::HEADER).build();
        let packet = packet::with_hop_limit(packet::icmpv6((from, to), 0, message), ndp::HOP_LIMIT);
        self.deliver(now, packet, way, interface, out);
    }
}
