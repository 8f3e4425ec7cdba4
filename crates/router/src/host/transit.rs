//! The slow way through the router, for packets the loop does not forward: their neighbour is not known yet, they have
//! to be fragmented, or they have options that every router looks at.

use fullview_plane::wire::icmp::Icmpv4Kind;
use fullview_plane::wire::icmpv6::Icmpv6Kind;
use fullview_plane::wire::ipv4::Ipv4Packet;
use fullview_plane::wire::ipv6::Ipv6Packet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use fullview_table::Family;

use super::fragment::{self, Fragments};
use super::next_hop::Hop;
use super::next_hop::NextHopResolver;
use super::output::Output;
use super::sender::{self, NeighborId};
use super::{HostStack, RxFrame, options};
use fullview_plane::wire::ipv4;

impl<W: NextHopResolver> HostStack<W> {
    /// Forwards an IPv4 packet, or tells its sender why not.
    pub(super) fn transit(&mut self, now: Duration, arrival: RxFrame<'_>, out: &mut Output) {
        let Some(packet) = sender::inet(arrival.payload).filter(|_| !arrival.to_group) else { return };
        if let Some(at) = options::damage(packet.header()) {
            let pointer = (at as u32) << 24;
            return self.error(now, arrival, Icmpv4Kind::ParameterProblem, pointer, out);
        }
        let to = IpAddr::from(Ipv4Addr::from(packet.destination()));
        let error = match self.routes.find(arrival.wanted(to)) {
            Some(Hop::Station(interface, station)) => {
                return self.forward(now, arrival, packet, NeighborId { interface, station }, out);
            }
            Some(Hop::Link(interface)) => {
                return self.forward(now, arrival, packet, NeighborId { interface, station: to }, out);
            }
            Some(Hop::Own) => return self.local(now, arrival, out),
            Some(Hop::Broadcast | Hop::Blackhole) => return,
            Some(Hop::Unreachable) => Icmpv4Kind::HostUnreachable,
            Some(Hop::Prohibit) => Icmpv4Kind::Prohibited,
            None => Icmpv4Kind::NetUnreachable,
        };
        self.error(now, arrival, error, 0, out);
    }

    fn forward(
        &mut self,
        now: Duration,
        arrival: RxFrame<'_>,
        packet: Ipv4Packet<&[u8]>,
        way: NeighborId,
        out: &mut Output,
    ) {
        if packet.ttl() <= 1 {
            return self.error(now, arrival, Icmpv4Kind::TimeExceeded, 0, out);
        }
        let Some(mtu) = self.interface(way.interface).map(|interface| interface.mtu as usize) else { return };
        if packet.bytes().len() > mtu && packet.dont_fragment() {
            return self.error(now, arrival, Icmpv4Kind::FragmentationNeeded, mtu as u32, out);
        }
        let source = Ipv4Addr::from(packet.source());
        if let (true, IpAddr::V4(gateway)) = (self.is_detour(arrival, source.into(), way), way.station) {
            self.redirect_inet(now, packet, way.interface, gateway, out);
        }
        let mut forwarded = packet.bytes().to_vec();
        self.stamp(now, &mut forwarded, way);
        Ipv4Packet::new_unchecked(&mut forwarded[..]).decrement_ttl();
        let parts = match fragment::split(forwarded, mtu) {
            Fragments::Whole(packet) => vec![packet],
            Fragments::Several(parts) => parts,
            Fragments::Impossible => return,
        };
        self.counters.forwarded += 1;
        parts.into_iter().for_each(|part| self.deliver(now, part, way, arrival.interface, out));
    }

    /// Writes the router's address and the time into the options that ask for them.
    fn stamp(&self, now: Duration, packet: &mut [u8], way: NeighborId) {
        let IpAddr::V4(station) = way.station else { return };
        if Ipv4Packet::new_unchecked(&*packet).header_len() == ipv4::HEADER {
            return;
        }
        if let Some(own) = self.source_inet(way.interface, station) {
            options::stamp(packet, own, now);
        }
    }

    /// Forwards an IPv6 packet, or tells its sender why not.
    pub(super) fn transit6(&mut self, now: Duration, arrival: RxFrame<'_>, out: &mut Output) {
        let Some(packet) = sender::inet6(arrival.payload).filter(|_| !arrival.to_group) else { return };
        let to = IpAddr::from(Ipv6Addr::from(packet.destination()));
        let error = match self.routes.find(arrival.wanted(to)) {
            Some(Hop::Station(interface, station)) => {
                return self.forward6(now, arrival, packet, NeighborId { interface, station }, out);
            }
            Some(Hop::Link(interface)) => {
                return self.forward6(now, arrival, packet, NeighborId { interface, station: to }, out);
            }
            Some(Hop::Own) => return self.local6(now, arrival, out),
            Some(Hop::Broadcast | Hop::Blackhole) => return,
            Some(Hop::Prohibit) => Icmpv6Kind::Prohibited,
            Some(Hop::Unreachable) | None => Icmpv6Kind::NoRoute,
        };
        self.error6(now, arrival, error, 0, out);
    }

    fn forward6(
        &mut self,
        now: Duration,
        arrival: RxFrame<'_>,
        packet: Ipv6Packet<&[u8]>,
        way: NeighborId,
        out: &mut Output,
    ) {
        if packet.hop_limit() <= 1 {
            return self.error6(now, arrival, Icmpv6Kind::TimeExceeded, 0, out);
        }
        let source = Ipv6Addr::from(packet.source());
        if let (true, IpAddr::V6(target)) = (self.is_detour(arrival, source.into(), way), way.station) {
            self.redirect_inet6(now, packet, way.interface, target, out);
        }
        if source.is_unicast_link_local() && way.interface != arrival.interface {
            return self.error6(now, arrival, Icmpv6Kind::BeyondScope, 0, out);
        }
        let Some(mtu) = self.interface(way.interface).map(|interface| interface.mtu_of(Family::Inet6)) else {
            return;
        };
        if packet.bytes().len() > mtu as usize {
            return self.error6(now, arrival, Icmpv6Kind::PacketTooBig, mtu, out);
        }
        let mut forwarded = packet.bytes().to_vec();
        Ipv6Packet::new_unchecked(&mut forwarded[..]).decrement_hop_limit();
        self.counters.forwarded += 1;
        self.deliver(now, forwarded, way, arrival.interface, out);
    }

    /// A packet from or to a link-local address: for the router itself, or it has to stay on its link (RFC 4291,
    /// section 2.5.6), where nobody needs a router to reach a link-local address. A sender who does not know that is
    /// told.
    pub(super) fn link_local(&mut self, now: Duration, arrival: RxFrame<'_>, out: &mut Output) {
        let Some(packet) = sender::inet6(arrival.payload) else { return };
        let to = Ipv6Addr::from(packet.destination());
        if !to.is_unicast_link_local() {
            self.transit6(now, arrival, out);
        } else if self.is_own_on(arrival.interface, to.into()) {
            self.local6(now, arrival, out);
        }
    }
}
