//! A host stack whose tables a mirror keeps: what it does when the mirror publishes another view.

use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashSet;

use super::announcement::announce;
use super::config::{HostSettings, StaticNeighbor};
use super::interfaces::Interfaces;
use super::neighbor::{NeighborCache, NeighborId};
use super::next_hop::{HostAction, NextHopResolver};
use super::output::Output;
use super::sender::PacketSender;
use super::stack::HostStack;
use super::unresolved;
use super::view_resolver::{NeighborChange, ViewResolver};
use fullview_plane::interface::InterfaceAddress;
use fullview_plane::view::View;
use fullview_plane::wire::ethernet::Mac;

impl HostStack<ViewResolver> {
    /// A host stack without interfaces; [`HostStack::follow`] sets them.
    pub fn mirrored(resolver: ViewResolver, settings: &HostSettings) -> HostStack<ViewResolver> {
        let neighbors = NeighborCache::new(0, settings.neighbors.clone());
        HostStack::from_parts(Vec::new(), resolver, neighbors, settings)
    }

    pub fn view(&self) -> &Arc<View> {
        self.ip.resolver.view()
    }

    /// Replaces the view, its interfaces and its next hops. Addresses that are new on a link are announced there, and all
    /// addresses of a link that came up. Neighbours on a link that went down are lost, and except for the static ones
    /// they are resolved again when a packet needs them.
    pub fn follow(
        &mut self,
        now: Duration,
        view: Arc<View>,
        actions: Vec<Option<HostAction>>,
        out: &mut Output,
    ) {
        let interfaces = view.parts().interfaces.clone();
        self.handlers.errors.grow(interfaces.len());
        self.ip.neighbors.grow(interfaces.len());
        let before = std::mem::replace(&mut self.ip.interfaces, Interfaces::new(interfaces));
        self.ip.resolver.follow(view, actions);
        self.lose_neighbors(now, &before.up_unlike_in(&self.ip.interfaces), out);
        self.restore_static_neighbors(now, &self.ip.interfaces.up_unlike_in(&before));
        self.announce_new(now, &before, out);
    }

    /// Reports the neighbours on these links as lost, and removes those that were learned.
    fn lose_neighbors(&mut self, now: Duration, down: &FxHashSet<u16>, out: &mut Output) {
        let lost = self.ip.neighbors.resolved().map(|(neighbor, _)| neighbor);
        lost.filter(|neighbor| down.contains(&neighbor.interface))
            .for_each(|neighbor| self.ip.resolver.neighbor_lost(now, neighbor));
        let removed = self.ip.neighbors.remove_learned(down);
        let sender = &mut PacketSender { now, ip: &mut self.ip, out };
        for (neighbor, packets) in removed {
            unresolved::report(&mut self.handlers.errors, sender, neighbor, packets);
        }
    }

    /// Reports the static neighbours on these links as resolved.
    fn restore_static_neighbors(&mut self, now: Duration, up: &FxHashSet<u16>) {
        let resolved = self.ip.neighbors.resolved();
        for (neighbor, mac) in resolved.filter(|(neighbor, _)| up.contains(&neighbor.interface)) {
            // A `ViewResolver` records changes only; the mirror assigns next-hop indices.
            let _ = self.ip.resolver.neighbor_resolved(now, neighbor, mac);
        }
    }

    /// Announces new addresses. Their groups are reported by the next [`HostStack::tick`].
    fn announce_new(&mut self, now: Duration, before: &Interfaces, out: &mut Output) {
        for (number, interface) in self.ip.interfaces.iter().filter(|(_, interface)| interface.up) {
            let had: &[InterfaceAddress] = match before.get(number) {
                Some(interface) if interface.up => &interface.addresses,
                _ => &[],
            };
            let new = interface.addresses.iter().filter(|own| !had.contains(own));
            new.clone().for_each(|own| announce(interface, own.ip, out));
            if new.clone().any(|own| own.ip.is_ipv6()) {
                self.handlers.local.group_reports.begin(now, number, interface);
            }
        }
    }

    /// Replaces the static neighbours.
    pub fn set_static_neighbors(&mut self, now: Duration, neighbors: &[StaticNeighbor]) {
        let kept: FxHashSet<NeighborId> = neighbors.iter().map(StaticNeighbor::id).collect();
        let before = self.ip.neighbors.static_neighbors();
        for gone in before.filter(|neighbor| !kept.contains(neighbor)).collect::<Vec<_>>() {
            self.ip.neighbors.remove(gone);
            self.ip.resolver.neighbor_lost(now, gone);
        }
        for neighbor in neighbors {
            self.ip.neighbors.set_static(neighbor.id(), neighbor.mac);
            if self.ip.interfaces.is_up(neighbor.interface) {
                let _ = self.ip.resolver.neighbor_resolved(now, neighbor.id(), neighbor.mac);
            }
        }
    }

    /// All neighbours that can be reached, in no order.
    pub fn resolved_neighbors(&self) -> impl Iterator<Item = (NeighborId, Mac)> + '_ {
        let resolved = self.ip.neighbors.resolved();
        resolved.filter(|(neighbor, _)| self.ip.interfaces.is_up(neighbor.interface))
    }

    /// Takes what became of neighbours since the last call, in its order.
    pub fn take_neighbor_changes(&mut self) -> Vec<NeighborChange> {
        self.ip.resolver.take_changes()
    }
}
