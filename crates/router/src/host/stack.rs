//! The host stack as its callers see it: rejected packets, events and time go in, frames come out.

use std::time::Duration;

use super::advertisers::RouterAdvertisers;
use super::announcement::announce;
use super::channel::HostEvent;
use super::config::HostSettings;
use super::conflict::AddressConflict;
use super::counters::HostCounters;
use super::dispatch::PacketHandlers;
use super::error::IcmpErrors;
use super::interfaces::Interfaces;
use super::ip_layer::IpLayer;
use super::limit::InterfaceLimiter;
use super::local::LocalDelivery;
use super::neighbor::{NeighborCache, NeighborTimeout};
use super::next_hop::NextHopResolver;
use super::output::Output;
use super::received::RxFrame;
use super::route_tables::RouteTables;
use super::sender::PacketSender;
use super::transit::SlowForwarder;
use super::{redirect, unresolved};
use fullview_plane::burst::Slot;
use fullview_plane::forward::{RedirectCandidate, WayOut};
use fullview_plane::interface::Interface;
use fullview_plane::verdict::Verdict;
use fullview_plane::wire::ethernet::Frame;

/// Answers and forwards what the loop rejected, and sends the packets that the router itself originates. Next hops come
/// from its own route tables or from another [`NextHopResolver`].
pub struct HostStack<R = RouteTables> {
    pub(super) ip: IpLayer<R>,
    pub(super) handlers: PacketHandlers,
}

impl<R: NextHopResolver> HostStack<R> {
    pub(super) fn from_parts(
        interfaces: Vec<Interface>,
        resolver: R,
        neighbors: NeighborCache,
        settings: &HostSettings,
    ) -> HostStack<R> {
        let HostSettings { errors_per_interface: each, errors: all, .. } = settings;
        let errors = IcmpErrors::new(InterfaceLimiter::new(interfaces.len(), *each, *all));
        let local = LocalDelivery::new(RouterAdvertisers::new(&settings.advertisements));
        let ip = IpLayer::new(Interfaces::new(interfaces), resolver, neighbors);
        HostStack { ip, handlers: PacketHandlers { errors, local, forwarder: SlowForwarder::default() } }
    }

    pub fn counters(&self) -> HostCounters {
        let PacketHandlers { errors, local, forwarder } = &self.handlers;
        HostCounters {
            echoes: local.echoes,
            neighbor_answers: local.responder.answers,
            errors: errors.sent,
            errors_limited: errors.limited,
            forwarded: forwarder.forwarded,
            unjudged: forwarder.unjudged,
            queue_full: self.ip.neighbors.packets_dropped(),
            lost_neighbors: self.ip.lost_neighbors,
            conflicts: local.responder.conflicts.count(),
        }
    }

    /// Takes the conflicts about the router's addresses that were found since the last call, each address at most once a
    /// minute.
    pub fn take_conflicts(&mut self) -> Vec<AddressConflict> {
        self.handlers.local.responder.conflicts.take()
    }

    /// Announces the addresses of all interfaces. Router advertisements are sent by the next [`HostStack::tick`].
    pub fn announce(&self, out: &mut Output) {
        for (_, interface) in self.ip.interfaces.iter() {
            interface.addresses.iter().for_each(|own| announce(interface, own.ip, out));
        }
    }

    /// Handles a packet that a forwarder rejected: answers it, forwards it on the slow path, or drops it, depending on
    /// its verdict.
    pub fn handle(&mut self, now: Duration, packet: &Slot, way: WayOut, out: &mut Output) {
        self.receive(now, (packet.interface, packet.verdict, way), packet.frame(), out);
    }

    /// Handles an event from a worker.
    pub fn handle_event(&mut self, now: Duration, event: &HostEvent, out: &mut Output) {
        match event {
            HostEvent::Packet { interface, verdict, way, frame } => {
                self.receive(now, (*interface, *verdict, *way), frame.frame(), out);
            }
            HostEvent::RedirectCandidate(candidate) => self.redirect(now, candidate, out),
        }
    }

    /// Sends a redirect about a packet that the loop forwarded, if that is allowed and within the limits.
    pub fn redirect(&mut self, now: Duration, candidate: &RedirectCandidate, out: &mut Output) {
        let sender = &mut PacketSender { now, ip: &mut self.ip, out };
        redirect::redirect(&mut self.handlers.errors, sender, candidate);
    }

    /// Does the work that is due: solicits neighbours again or gives them up, and sends router advertisements and reports of
    /// groups.
    pub fn tick(&mut self, now: Duration, out: &mut Output) {
        self.ip.resolver.tick(now);
        self.handlers.local.advertisers.tick(now, &self.ip.interfaces, out);
        self.handlers.local.group_reports.tick(now, &self.ip.interfaces, out);
        let sender = &mut PacketSender { now, ip: &mut self.ip, out };
        while let Some(timeout) = sender.ip.neighbors.next_timeout(now) {
            match timeout {
                NeighborTimeout::Solicit(neighbor, last_known) => sender.solicit(neighbor, last_known),
                NeighborTimeout::Lost(neighbor, packets) => {
                    sender.ip.lost_neighbors += 1;
                    sender.ip.resolver.neighbor_lost(now, neighbor);
                    unresolved::report(&mut self.handlers.errors, sender, neighbor, packets);
                }
            }
        }
    }

    /// When [`HostStack::tick`] has work to do.
    pub fn next_deadline(&self) -> Option<Duration> {
        let neighbors = self.ip.neighbors.next_deadline().into_iter();
        let LocalDelivery { advertisers, group_reports, .. } = &self.handlers.local;
        let periodic = advertisers.next_deadline().into_iter().chain(group_reports.next_deadline());
        neighbors.chain(self.ip.resolver.next_deadline()).chain(periodic).min()
    }

    fn receive(
        &mut self,
        now: Duration,
        (interface, verdict, way): (u16, Verdict, WayOut),
        frame: &[u8],
        out: &mut Output,
    ) {
        let Ok(frame) = Frame::new_checked(frame) else { return };
        // After a link went down, what it delivered before is ignored: the link may come up in another network.
        if !self.ip.interfaces.is_up(interface) {
            return;
        }
        let to_group = frame.destination().is_group();
        let (source, payload) = (frame.source(), frame.payload());
        let received = RxFrame { interface, way, to_group, source, reassembled: false, payload };
        let sender = &mut PacketSender { now, ip: &mut self.ip, out };
        self.handlers.receive(sender, received, frame.ethertype(), verdict);
    }
}
