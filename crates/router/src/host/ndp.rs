//! Neighbour discovery (RFC 4861, section 7): solicitations for the router's addresses are answered, also those of
//! stations that look whether an address is free; answers to its own are taken note of.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use super::neighbor::Evidence;
use super::next_hop::Hop;
use super::next_hop::NextHopResolver;
use super::output::Output;
use super::{HostStack, RxFrame};
use fullview_plane::wire::ethernet::Mac;
use fullview_plane::wire::icmpv6::{Icmpv6Kind, Icmpv6Message};
use fullview_plane::wire::ipv6::Ipv6Packet;
use fullview_plane::wire::ndp::{self, Builder, LinkAddress};

/// A solicitation or advertisement in order.
struct NeighborMessage<'a> {
    from: Ipv6Addr,
    to: Ipv6Addr,
    target: Ipv6Addr,
    /// The frame's.
    source: Mac,
    message: &'a [u8],
}

impl<W: NextHopResolver> HostStack<W> {
    /// A message whose hop limit, checksum and code are right.
    pub(super) fn ndp(
        &mut self,
        now: Duration,
        arrival: RxFrame<'_>,
        packet: &Ipv6Packet<&[u8]>,
        message: &[u8],
        out: &mut Output,
    ) {
        let kind = Icmpv6Message::new_unchecked(message).kind();
        if kind == Icmpv6Kind::RouterSolicitation {
            return self.solicited_router(now, arrival.interface, message);
        }
        let Ok(target) = ndp::target(message) else { return };
        let (from, to) = (packet.source().into(), packet.destination().into());
        let news = NeighborMessage { from, to, target: target.into(), source: arrival.source, message };
        if news.target.is_multicast() || from.is_multicast() {
            return;
        }
        match kind {
            Icmpv6Kind::NeighborSolicitation => self.solicited(now, arrival.interface, &news, out),
            Icmpv6Kind::NeighborAdvertisement => self.advertised(now, arrival.interface, &news, out),
            _ => {}
        }
    }

    fn solicited(&mut self, now: Duration, interface: u16, news: &NeighborMessage<'_>, out: &mut Output) {
        if self.is_own(interface, news.from.into()) {
            self.counters.conflicts += 1;
            return;
        }
        let link_address = ndp::link_address(news.message, LinkAddress::Source);
        let answered_at = link_address.unwrap_or(news.source);
        let is_detection = news.from.is_unspecified();
        let to_its_group = news.to.to_bits() == ndp::solicited_node(news.target.to_bits());
        if answered_at.is_group() {
            return;
        }
        if is_detection && (link_address.is_some() || !to_its_group) || !self.is_asked(interface, news.target)
        {
            return;
        }
        if let Some(mac) = link_address.filter(|_| self.is_near(interface, news.from)) {
            self.learn(now, (interface, news.from.into()), mac, Evidence::Question, out);
        }
        let to = if is_detection { None } else { Some((news.from, answered_at)) };
        self.advertise_own(interface, news.target, to, news.to.is_multicast(), out);
    }

    /// An address of this interface, or the one that any router of its network answers for.
    fn is_asked(&self, interface: u16, target: Ipv6Addr) -> bool {
        self.is_own_on(interface, target.into()) || self.is_anycast(interface, target)
    }

    fn is_anycast(&self, number: u16, target: Ipv6Addr) -> bool {
        let on_link = self.interface(number).is_some_and(|interface| interface.is_on_link(target.into()));
        let own = self.leads(number, target.into()) == Some(Hop::Own);
        on_link && own && !target.is_unicast_link_local() && !self.is_own(number, target.into())
    }

    fn is_near(&self, number: u16, ip: Ipv6Addr) -> bool {
        let on_link = self.interface(number).is_some_and(|interface| interface.is_on_link(ip.into()));
        ip.is_unicast_link_local() || on_link && !ip.is_unspecified()
    }

    /// HostDriver a solicitation; to all, if whoever asked has no address yet. Its link address belongs into the answer
    /// only if a group was asked, since whoever asks the router alone knows it.
    fn advertise_own(
        &mut self,
        number: u16,
        target: Ipv6Addr,
        to: Option<(Ipv6Addr, Mac)>,
        asked_group: bool,
        out: &mut Output,
    ) {
        let Some(mac) = self.interface(number).map(|interface| interface.mac) else { return };
        let anycast = self.is_anycast(number, target);
        let solicited = if to.is_some() { ndp::SOLICITED } else { 0 };
        let overrides = if asked_group && !anycast { ndp::OVERRIDE } else { 0 };
        let flags = ndp::ROUTER | solicited | overrides;
        let mut answer = Builder::neighbor(Icmpv6Kind::NeighborAdvertisement, flags, target.to_bits());
        if asked_group {
            answer = answer.link_address(LinkAddress::Target, mac);
        }
        let (destination, mac) = to.map_or((ndp::ALL_NODES.into(), None), |(ip, mac)| (ip, Some(mac)));
        let from = if anycast { self.source_inet6(number, destination) } else { Some(target) };
        let Some(from) = from else { return };
        self.send_ndp(number, (from, destination), mac, answer.build(), out);
        self.counters.neighbor_answers += 1;
    }

    fn advertised(&mut self, now: Duration, interface: u16, news: &NeighborMessage<'_>, out: &mut Output) {
        let flags = Icmpv6Message::new_unchecked(news.message).rest();
        let solicited = flags & ndp::SOLICITED != 0;
        if solicited && news.to.is_multicast() {
            return;
        }
        if self.is_own(interface, news.target.into()) {
            self.counters.conflicts += 1;
            return;
        }
        let key = (interface, IpAddr::V6(news.target));
        let told = ndp::link_address(news.message, LinkAddress::Target);
        // An answer to a question asked of one station may leave out what that station's link address is.
        let Some(mac) = told.or_else(|| self.neighbors.mac(key)) else { return };
        let overrides = flags & ndp::OVERRIDE != 0;
        let evidence =
            if solicited { Evidence::Answer { overrides } } else { Evidence::Unasked { overrides } };
        self.learn(now, key, mac, evidence, out);
    }

    /// Asks for a station: its group, or only where it was last known to be.
    pub(super) fn solicit(&self, number: u16, target: Ipv6Addr, at: Option<Mac>, out: &mut Output) {
        let Some(interface) = self.interface(number) else { return };
        let key = (number, IpAddr::V6(target));
        let waiting = self.neighbors.first_waiting(key).map(|waiting| super::packet::source(&waiting.packet));
        let prompting = match waiting {
            Some(IpAddr::V6(source)) if self.is_own_on(number, source.into()) => Some(source),
            _ => None,
        };
        let other = || self.link_local_of(number).or_else(|| self.source_inet6(number, target));
        let Some(from) = prompting.or_else(other) else { return };
        let message = Builder::neighbor(Icmpv6Kind::NeighborSolicitation, 0, target.to_bits());
        let message = message.link_address(LinkAddress::Source, interface.mac).build();
        let to = if at.is_some() { target } else { ndp::solicited_node(target.to_bits()).into() };
        self.send_ndp(number, (from, to), at, message, out);
    }

    /// Tells a link of one's address, so that whoever knew another station there knows better.
    pub(super) fn ndp_announce(&self, number: u16, own: Ipv6Addr, out: &mut Output) {
        let Some(interface) = self.interface(number) else { return };
        let flags = ndp::ROUTER | ndp::OVERRIDE;
        let message = Builder::neighbor(Icmpv6Kind::NeighborAdvertisement, flags, own.to_bits());
        let message = message.link_address(LinkAddress::Target, interface.mac).build();
        self.send_ndp(number, (own, ndp::ALL_NODES.into()), None, message, out);
    }
}
