//! Decides, by the loop's verdict, what handles a rejected packet.

use super::error::IcmpErrors;
use super::local::LocalDelivery;
use super::next_hop::NextHopResolver;
use super::received::RxFrame;
use super::reject;
use super::sender::PacketSender;
use super::transit::{SlowForwarder, TransitOutcome};
use fullview_plane::verdict::{Punt, Reason, Verdict};
use fullview_plane::wire::ethernet::EtherType;
use fullview_plane::wire::icmp::Icmpv4Kind;
use fullview_plane::wire::icmpv6::Icmpv6Kind;

/// The parts of the host stack that answer and forward packets.
pub(super) struct PacketHandlers {
    pub errors: IcmpErrors,
    pub local: LocalDelivery,
    pub forwarder: SlowForwarder,
}

impl PacketHandlers {
    pub fn receive<R: NextHopResolver>(
        &mut self,
        sender: &mut PacketSender<'_, R>,
        frame: RxFrame<'_>,
        ethertype: EtherType,
        verdict: Verdict,
    ) {
        match (ethertype, verdict) {
            (EtherType::ARP, Verdict::Punt(Punt::Arp)) => self.local.responder.receive_arp(sender, frame),
            (EtherType::IPV4, Verdict::Punt(punt)) => self.punted(sender, frame, punt),
            (EtherType::IPV6, Verdict::Punt(punt)) => self.punted6(sender, frame, punt),
            (EtherType::IPV4, Verdict::Drop(reason)) => self.dropped(sender, frame, reason),
            (EtherType::IPV6, Verdict::Drop(reason)) => self.dropped6(sender, frame, reason),
            (EtherType::IPV4 | EtherType::IPV6, Verdict::Reject(answer)) => {
                reject::answer(&mut self.errors, sender, frame, answer);
            }
            _ => {}
        }
    }

    fn punted<R: NextHopResolver>(
        &mut self,
        sender: &mut PacketSender<'_, R>,
        frame: RxFrame<'_>,
        punt: Punt,
    ) {
        match punt {
            Punt::Local => self.local.receive(&mut self.errors, sender, frame),
            // Packets from and to 169.254.0.0/16 stay on their link (RFC 3927, section 2.6.2).
            Punt::NotForwarding | Punt::LinkLocal => {
                self.local.receive_if_own(&mut self.errors, sender, frame);
            }
            Punt::Glean | Punt::Options => self.forward(sender, frame),
            _ => {}
        }
    }

    fn punted6<R: NextHopResolver>(
        &mut self,
        sender: &mut PacketSender<'_, R>,
        frame: RxFrame<'_>,
        punt: Punt,
    ) {
        match punt {
            Punt::Local | Punt::LinkMulticast => self.local.receive6(&mut self.errors, sender, frame),
            Punt::LinkLocal => self.forward_link_local(sender, frame),
            Punt::NotForwarding => self.local.receive6_if_own(&mut self.errors, sender, frame),
            Punt::Glean => self.forward6(sender, frame),
            _ => {}
        }
    }

    fn dropped<R: NextHopResolver>(
        &mut self,
        sender: &mut PacketSender<'_, R>,
        frame: RxFrame<'_>,
        reason: Reason,
    ) {
        let kind = match reason {
            Reason::TtlExpired => Icmpv4Kind::TimeExceeded,
            Reason::NoRoute => Icmpv4Kind::NetUnreachable,
            Reason::Unreachable => Icmpv4Kind::HostUnreachable,
            Reason::Prohibited => Icmpv4Kind::Prohibited,
            Reason::NoAdjacency | Reason::NeedsFragments | Reason::TooBig => {
                return self.forward(sender, frame);
            }
            _ => return,
        };
        self.errors.report(sender, frame, kind.into());
    }

    fn dropped6<R: NextHopResolver>(
        &mut self,
        sender: &mut PacketSender<'_, R>,
        frame: RxFrame<'_>,
        reason: Reason,
    ) {
        let kind = match reason {
            Reason::HopLimitExpired => Icmpv6Kind::TimeExceeded,
            Reason::NoRoute | Reason::Unreachable => Icmpv6Kind::NoRoute,
            Reason::Prohibited => Icmpv6Kind::Prohibited,
            Reason::NoAdjacency | Reason::TooBig => return self.forward6(sender, frame),
            _ => return,
        };
        self.errors.report6(sender, frame, kind.into());
    }

    fn forward<R: NextHopResolver>(&mut self, sender: &mut PacketSender<'_, R>, frame: RxFrame<'_>) {
        if self.forwarder.forward(&mut self.errors, sender, frame) == TransitOutcome::Local {
            self.local.receive(&mut self.errors, sender, frame);
        }
    }

    fn forward6<R: NextHopResolver>(&mut self, sender: &mut PacketSender<'_, R>, frame: RxFrame<'_>) {
        if self.forwarder.forward6(&mut self.errors, sender, frame) == TransitOutcome::Local {
            self.local.receive6(&mut self.errors, sender, frame);
        }
    }

    fn forward_link_local<R: NextHopResolver>(
        &mut self,
        sender: &mut PacketSender<'_, R>,
        frame: RxFrame<'_>,
    ) {
        if self.forwarder.forward_link_local(&mut self.errors, sender, frame) == TransitOutcome::Local {
            self.local.receive6(&mut self.errors, sender, frame);
        }
    }
}
