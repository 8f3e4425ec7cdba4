//! The slow path for IPv6.

use std::net::{IpAddr, Ipv6Addr};

use fullview_table::Family;

use super::error::{IcmpErrors, Problem};
use super::neighbor::NeighborId;
use super::next_hop::{self, NextHopResolver};
use super::received::RxFrame;
use super::redirect;
use super::sender::PacketSender;
use super::transit::{SlowForwarder, TransitOutcome};
use crate::route::RouteAction;
use fullview_plane::wire::icmpv6::Icmpv6Kind;
use fullview_plane::wire::ipv6::Ipv6Packet;

impl SlowForwarder {
    /// Forwards an IPv6 packet, or reports to its sender why that is not possible.
    pub fn forward6<R: NextHopResolver>(
        &mut self,
        errors: &mut IcmpErrors,
        sender: &mut PacketSender<'_, R>,
        frame: RxFrame<'_>,
    ) -> TransitOutcome {
        let packet = frame.inet6().filter(|_| !frame.to_group);
        let Some(packet) = packet else { return TransitOutcome::Handled };
        let to = IpAddr::from(Ipv6Addr::from(packet.destination()));
        let action = sender.ip.resolver.lookup(frame.query(to));
        if let Some(neighbor) = action.and_then(|action| next_hop::neighbor(action, to)) {
            self.forward6_to(errors, sender, frame, packet, neighbor);
            return TransitOutcome::Handled;
        }
        let kind = match action {
            Some(RouteAction::Local) => return TransitOutcome::Local,
            Some(RouteAction::Prohibit) => Icmpv6Kind::Prohibited,
            None | Some(RouteAction::Unreachable | RouteAction::Throw) => Icmpv6Kind::NoRoute,
            Some(_) => return TransitOutcome::Handled,
        };
        errors.report6(sender, frame, kind.into());
        TransitOutcome::Handled
    }

    /// Forwards a packet with a link-local source or destination. It stays on its link (RFC 4291, section 2.5.6). The
    /// router forwards none to a link-local address: stations of a link reach each other without a router.
    pub fn forward_link_local<R: NextHopResolver>(
        &mut self,
        errors: &mut IcmpErrors,
        sender: &mut PacketSender<'_, R>,
        frame: RxFrame<'_>,
    ) -> TransitOutcome {
        let Some(packet) = frame.inet6() else { return TransitOutcome::Handled };
        let to = Ipv6Addr::from(packet.destination());
        if !to.is_unicast_link_local() {
            self.forward6(errors, sender, frame)
        } else if sender.ip.interfaces.is_own_on(frame.interface, to.into()) {
            TransitOutcome::Local
        } else {
            TransitOutcome::Handled
        }
    }

    fn forward6_to<R: NextHopResolver>(
        &mut self,
        errors: &mut IcmpErrors,
        sender: &mut PacketSender<'_, R>,
        frame: RxFrame<'_>,
        packet: Ipv6Packet<&[u8]>,
        neighbor: NeighborId,
    ) {
        if packet.hop_limit() <= 1 {
            return errors.report6(sender, frame, Icmpv6Kind::TimeExceeded.into());
        }
        if !self.may_leave(frame, neighbor) {
            return;
        }
        let source = Ipv6Addr::from(packet.source());
        let candidate =
            redirect::is_redirect_candidate(&sender.ip.interfaces, frame, source.into(), neighbor);
        if let (true, IpAddr::V6(target)) = (candidate, neighbor.ip) {
            redirect::redirect_inet6(errors, sender, packet, neighbor.interface, target);
        }
        if source.is_unicast_link_local() && neighbor.interface != frame.interface {
            return errors.report6(sender, frame, Icmpv6Kind::BeyondScope.into());
        }
        let Some(interface) = sender.ip.interfaces.get(neighbor.interface) else { return };
        let mtu = interface.mtu_of(Family::Inet6);
        if packet.bytes().len() > mtu as usize {
            return errors.report6(sender, frame, Problem { kind: Icmpv6Kind::PacketTooBig, rest: mtu });
        }
        let mut forwarded = packet.bytes().to_vec();
        Ipv6Packet::new_unchecked(&mut forwarded[..]).decrement_hop_limit();
        self.forwarded += 1;
        sender.deliver(forwarded, neighbor, frame.interface);
    }
}
