//! The slow path through the router, for packets that the loop does not forward: their neighbour is unresolved, they have
//! to be fragmented, or they have options that every router examines. The IPv6 half is in `transit6`.

use std::net::{IpAddr, Ipv4Addr};

use super::error::{IcmpErrors, Problem};
use super::fragment::{self, Fragments};
use super::neighbor::NeighborId;
use super::next_hop::{self, NextHopResolver};
use super::received::RxFrame;
use super::sender::PacketSender;
use super::{options, redirect};
use crate::route::RouteAction;
use fullview_plane::wire::icmp::Icmpv4Kind;
use fullview_plane::wire::ipv4::{self, Ipv4Packet};

#[derive(Default)]
pub(super) struct SlowForwarder {
    /// Packets forwarded.
    pub forwarded: u64,
    /// Packets that would have left by an interface for which the filter had not judged them.
    pub unjudged: u64,
}

/// Whether a packet was for the router, so that the caller has to deliver it locally.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TransitOutcome {
    Handled,
    Local,
}

impl SlowForwarder {
    /// Forwards an IPv4 packet, or reports to its sender why that is not possible.
    pub fn forward<R: NextHopResolver>(
        &mut self,
        errors: &mut IcmpErrors,
        sender: &mut PacketSender<'_, R>,
        frame: RxFrame<'_>,
    ) -> TransitOutcome {
        let packet = frame.inet().filter(|_| !frame.to_group);
        let Some(packet) = packet else { return TransitOutcome::Handled };
        if let Some(at) = options::malformed_at(packet.header()) {
            let problem = Problem { kind: Icmpv4Kind::ParameterProblem, rest: (at as u32) << 24 };
            errors.report(sender, frame, problem);
            return TransitOutcome::Handled;
        }
        let to = IpAddr::from(Ipv4Addr::from(packet.destination()));
        let action = sender.ip.resolver.lookup(frame.query(to));
        if let Some(neighbor) = action.and_then(|action| next_hop::neighbor(action, to)) {
            self.forward_to(errors, sender, frame, packet, neighbor);
            return TransitOutcome::Handled;
        }
        let kind = match action {
            Some(RouteAction::Local) => return TransitOutcome::Local,
            Some(RouteAction::Unreachable) => Icmpv4Kind::HostUnreachable,
            Some(RouteAction::Prohibit) => Icmpv4Kind::Prohibited,
            None | Some(RouteAction::Throw) => Icmpv4Kind::NetUnreachable,
            Some(_) => return TransitOutcome::Handled,
        };
        errors.report(sender, frame, kind.into());
        TransitOutcome::Handled
    }

    /// Whether the filter lets the packet leave to this neighbour. Counts it if not.
    pub(super) fn may_leave(&mut self, frame: RxFrame<'_>, neighbor: NeighborId) -> bool {
        let may = frame.way.includes(neighbor.interface);
        self.unjudged += u64::from(!may);
        may
    }

    fn forward_to<R: NextHopResolver>(
        &mut self,
        errors: &mut IcmpErrors,
        sender: &mut PacketSender<'_, R>,
        frame: RxFrame<'_>,
        packet: Ipv4Packet<&[u8]>,
        neighbor: NeighborId,
    ) {
        if packet.ttl() <= 1 {
            return errors.report(sender, frame, Icmpv4Kind::TimeExceeded.into());
        }
        if !self.may_leave(frame, neighbor) {
            return;
        }
        let Some(mtu) = sender.ip.interfaces.get(neighbor.interface).map(|interface| interface.mtu) else {
            return;
        };
        if packet.bytes().len() > mtu as usize && packet.dont_fragment() {
            let problem = Problem { kind: Icmpv4Kind::FragmentationNeeded, rest: mtu };
            return errors.report(sender, frame, problem);
        }
        let source = Ipv4Addr::from(packet.source());
        let candidate =
            redirect::is_redirect_candidate(&sender.ip.interfaces, frame, source.into(), neighbor);
        if let (true, IpAddr::V4(gateway)) = (candidate, neighbor.ip) {
            redirect::redirect_inet(errors, sender, packet, neighbor.interface, gateway);
        }
        let mut forwarded = packet.bytes().to_vec();
        stamp(sender, &mut forwarded, neighbor);
        Ipv4Packet::new_unchecked(&mut forwarded[..]).decrement_ttl();
        let parts = match fragment::split(forwarded, mtu as usize) {
            Fragments::Whole(packet) => vec![packet],
            Fragments::Several(parts) => parts,
            Fragments::Impossible => return,
        };
        self.forwarded += 1;
        parts.into_iter().for_each(|part| sender.deliver(part, neighbor, frame.interface));
    }
}

/// Writes the router's address and the time into the options that ask for them.
fn stamp<R>(sender: &PacketSender<'_, R>, packet: &mut [u8], neighbor: NeighborId) {
    let IpAddr::V4(next) = neighbor.ip else { return };
    if Ipv4Packet::new_unchecked(&*packet).header_len() == ipv4::HEADER {
        return;
    }
    if let Some(own) = sender.ip.interfaces.source_inet(neighbor.interface, next) {
        options::stamp(packet, own, sender.now);
    }
}
