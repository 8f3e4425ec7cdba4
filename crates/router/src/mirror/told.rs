//! What the kernel says about links, addresses, neighbours and objects.

use std::net::IpAddr;

use crate::netlink::event::{ControlEvent, Link, LinkNeighbor};

use super::Mirror;
use super::links::State;
use super::neighbors::Turn;
use super::routes::Entry;
use super::sets::Sets;
use crate::route::{LinkIndex, NextHopVia, RouteAction};

impl Mirror {
    /// Takes in what the kernel says.
    pub fn apply(&mut self, event: ControlEvent) {
        match event {
            ControlEvent::Link(link) => self.set_link(link),
            ControlEvent::LinkRemoved(index) => self.remove_link(index),
            ControlEvent::Address(link, address) => {
                let is_new = self.links.add_address(link, address);
                self.view_changed |= is_new;
                // With its first address a link's dead hops come to life.
                self.suspects_inet |= is_new && address.ip.is_ipv4() && self.sets.has_dead_by(link);
            }
            ControlEvent::AddressRemoved(link, address) => {
                let was_there = self.links.remove_address(link, address);
                self.view_changed |= was_there;
                self.suspects_inet |= was_there && address.ip.is_ipv4();
            }
            ControlEvent::Neighbor(neighbor) => self.set_neighbor(&neighbor),
            ControlEvent::NeighborRemoved(link, address) => self.remove_neighbor(link, address),
            ControlEvent::Route(route, placement) => self.add_route(route, placement),
            ControlEvent::RouteRemoved(route) => self.remove_route(route),
            ControlEvent::NextHop(id, object) => self.sets_changed |= self.sets.set_object(id, object),
            ControlEvent::NextHopRemoved(id) => self.remove_object(id),
            ControlEvent::Forwarding(link, family, on) => {
                self.view_changed |= self.links.set_forwarding(link, family, on)
            }
            ControlEvent::Rule(rule) => self.view_changed |= self.rules.add(rule),
            ControlEvent::RuleRemoved(rule) => self.view_changed |= self.rules.remove(&rule),
        }
    }

    /// Whether that link was known with another MTU.
    pub(crate) fn has_other_mtu(&self, link: &Link) -> bool {
        self.links.get(link.index).is_some_and(|known| known.mtu != link.mtu)
    }

    fn set_link(&mut self, link: Link) {
        let (index, state) = (link.index, self.links.state(link.index));
        let is_same =
            |known: &Link| (&known.name, known.kind, known.master) == (&link.name, link.kind, link.master);
        let is_other = !self.links.get(index).is_some_and(is_same);
        if !self.links.set(link) {
            return;
        }
        (self.sets_changed, self.view_changed) = (true, true);
        if is_other {
            self.place_all();
        }
        match (state, self.links.state(index)) {
            (before, State::Down) if before != State::Down => self.went_down(index),
            (before, after) => self.suspects_inet |= before != after,
        }
    }

    /// The kernel drops the IPv4 routes of a link that is set down, and says nothing.
    fn went_down(&mut self, index: LinkIndex) {
        if self.keeps_routes {
            return;
        }
        self.suspects_inet = true;
        self.inet.sweep(&mut self.sets, |entry, sets| {
            let hops = entry.set().and_then(|id| sets.hops(id));
            hops.is_some_and(|hops| hops.iter().all(|hop| hop.link == index))
        });
    }

    pub(super) fn remove_link(&mut self, index: LinkIndex) {
        let addresses = self.neighbors.on(index);
        addresses.into_iter().for_each(|address| self.remove_neighbor(index, address));
        if self.links.place(index).is_some() {
            self.went_down(index);
        }
        if self.links.remove(index) {
            (self.sets_changed, self.view_changed) = (true, true);
        }
    }

    /// A link is another one now, and with it maybe those above or below it: ours or not, in this table or that.
    fn place_all(&mut self) {
        self.links.tables().into_iter().for_each(|table| self.create(table));
        for (link, address) in self.neighbors.all() {
            self.forget_host(link, address);
            self.place_host(link, address);
        }
    }

    fn set_neighbor(&mut self, neighbor: &LinkNeighbor) {
        let (link, address) = (neighbor.link, neighbor.address);
        match self.neighbors.set(neighbor) {
            Turn::Nothing => {}
            Turn::Changed => self.view_changed = true,
            Turn::Came => {
                self.view_changed = true;
                self.place_host(link, address);
            }
            Turn::Went => self.forget_host(link, address),
        }
    }

    pub(super) fn remove_neighbor(&mut self, link: LinkIndex, address: IpAddr) {
        if self.neighbors.remove((link, address)) == Turn::Went {
            self.forget_host(link, address);
        }
    }

    /// Only on links that are ours, and not for addresses that no packet is forwarded to.
    fn place_host(&mut self, link: LinkIndex, address: IpAddr) {
        let is_link_local = matches!(address, IpAddr::V6(ip) if ip.is_unicast_link_local());
        if self.links.place(link).is_none() || is_link_local || address.is_multicast() {
            return;
        }
        // Without an index left the kernel goes on to forward to this neighbour.
        let Ok(index) =
            self.sets.indices.acquire(RouteAction::Forward(NextHopVia { link, neighbor: Some(address) }))
        else {
            return;
        };
        let table = self.links.table(link);
        let before = match address {
            IpAddr::V4(ip) => self.inet.hosts.add(ip.to_bits(), link, table, index),
            IpAddr::V6(ip) => self.inet6.hosts.add(ip.to_bits(), link, table, index),
        };
        before.into_iter().for_each(|index| self.sets.indices.release(index));
    }

    fn forget_host(&mut self, link: LinkIndex, address: IpAddr) {
        self.view_changed = true;
        let index = match address {
            IpAddr::V4(ip) => self.inet.hosts.remove(ip.to_bits(), link),
            IpAddr::V6(ip) => self.inet6.hosts.remove(ip.to_bits(), link),
        };
        index.into_iter().for_each(|index| self.sets.indices.release(index));
    }

    /// The kernel removes the routes of an object that goes, and does not always say so.
    pub(super) fn remove_object(&mut self, id: u32) {
        if !self.sets.remove_object(id) {
            return;
        }
        self.sets_changed = true;
        let of_object =
            |entry: &Entry, sets: &Sets| entry.set().is_some_and(|set| sets.object(set) == Some(id));
        self.inet.sweep(&mut self.sets, of_object);
        self.inet6.sweep(&mut self.sets, of_object);
    }
}
