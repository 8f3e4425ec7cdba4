//! Events of the control plane, and dumps of them, applied to the mirror's state.

use std::net::IpAddr;

use fullview_table::Family;
use rustc_hash::FxHashSet;

use crate::netlink::event::{AssignedAddress, ControlEvent, DumpPart, Link, LinkNeighbor, RouteEntry, Rule};
use crate::route::{AnyPrefix, LinkIndex};

use super::Mirror;
use super::links::LinkState;
use super::neighbors::NeighborUpdate;

impl Mirror {
    /// Applies an event. FIBs and views follow with [`Self::commit`].
    pub fn apply(&mut self, event: ControlEvent) {
        match event {
            ControlEvent::Link(link) => self.set_link(link),
            ControlEvent::LinkRemoved(index) => self.remove_link(index),
            ControlEvent::Address(link, address) => self.add_address(link, address),
            ControlEvent::AddressRemoved(link, address) => self.remove_address(link, address),
            ControlEvent::Neighbor(neighbor) => self.set_neighbor(&neighbor),
            ControlEvent::NeighborRemoved(link, address) => self.remove_neighbor(link, address),
            ControlEvent::Route(route, placement) => self.routing.add(route, placement, &self.links),
            ControlEvent::RouteRemoved(route) => self.remove_route(&route),
            ControlEvent::NextHop(id, object) => {
                self.routing.sets_changed |= self.routing.sets.set_object(id, object);
            }
            ControlEvent::NextHopRemoved(id) => {
                self.routing.remove_objects([id]);
            }
            ControlEvent::Forwarding(link, family, on) => {
                self.view_changed |= self.links.set_forwarding(link, family, on);
            }
            ControlEvent::Rule(rule) => self.add_rule(rule),
            ControlEvent::RuleRemoved(rule) => self.remove_rule(&rule),
        }
    }

    /// Takes in early what a link's change says of its state. A link that carries nothing any more is not used from now on; what
    /// the kernel does to its routes follows when the change is applied in its order.
    pub(crate) fn alarm(&mut self, event: &ControlEvent) {
        let changed = match event {
            ControlEvent::Link(link) => self.links.set_failed(link.index, !(link.up && link.carrier)),
            ControlEvent::LinkRemoved(index) => self.links.set_failed(*index, true),
            _ => false,
        };
        self.view_changed |= changed;
        self.routing.sets_changed |= changed;
    }

    /// Some alarms were lost: links are as the changes say.
    pub(crate) fn forget_alarms(&mut self) {
        let changed = self.links.forget_failed();
        self.view_changed |= changed;
        self.routing.sets_changed |= changed;
    }

    /// Begins a dump of a part: the events that follow list everything that exists.
    pub fn begin_dump(&mut self, part: DumpPart) {
        match part {
            DumpPart::Forwarding | DumpPart::Forwarding6 => {}
            DumpPart::Rules => self.rules.mark(),
            DumpPart::Links => self.links.mark(),
            DumpPart::Addresses => self.links.mark_addresses(),
            DumpPart::Neighbors => self.neighbors.mark(),
            DumpPart::Objects => self.routing.sets.mark(),
            DumpPart::Inet => {
                self.links.mark_revived();
                self.routing.inet.begin_dump();
            }
            DumpPart::Inet6 => self.routing.inet6.begin_dump(),
        }
    }

    /// Removes what the dump of a part may have listed of next-hop objects that went meanwhile.
    pub fn remove_listed(&mut self, part: DumpPart, objects: &FxHashSet<u32>) {
        match part {
            _ if objects.is_empty() => {}
            DumpPart::Inet => self.routing.remove_family_of(Family::Inet, objects),
            DumpPart::Inet6 => self.routing.remove_family_of(Family::Inet6, objects),
            _ => {}
        }
    }

    /// Ends a dump that was complete: removes what it did not list. Returns how much that was.
    pub fn end_dump(&mut self, part: DumpPart) -> usize {
        let routing = &mut self.routing;
        match part {
            DumpPart::Forwarding | DumpPart::Forwarding6 => 0,
            DumpPart::Addresses => {
                let removed = self.links.sweep_addresses();
                self.view_changed |= removed > 0;
                removed
            }
            DumpPart::Links => {
                self.remove_all(self.links.unseen(), |mirror, index| mirror.remove_link(index))
            }
            DumpPart::Rules => {
                let removed = self.rules.sweep();
                self.view_changed |= removed > 0;
                removed
            }
            DumpPart::Neighbors => self.remove_all(self.neighbors.unseen(), |mirror, (link, address)| {
                mirror.remove_neighbor(link, address);
            }),
            DumpPart::Objects => {
                let unseen = routing.sets.unseen();
                let removed = unseen.len();
                routing.remove_objects(unseen);
                removed
            }
            DumpPart::Inet => {
                routing.sets_changed |= self.links.sweep_revived();
                routing.inet.end_dump(&mut routing.sets)
            }
            DumpPart::Inet6 => routing.inet6.end_dump(&mut routing.sets),
        }
    }

    /// Ends a dump of IPv6 routes during which they changed: what it did not list may be there, and what it listed twice may be
    /// there once.
    pub fn end_shifted_dump(&mut self) {
        self.routing.inet6.remove_repeated(&mut self.routing.sets);
    }

    /// Removes the IPv6 routes that none of the last so many dumps listed; returns how many.
    pub fn remove_unlisted(&mut self, dumps: u8) -> usize {
        self.routing.inet6.remove_unlisted(dumps, &mut self.routing.sets)
    }

    fn remove_all<T>(&mut self, unseen: Vec<T>, remove: impl Fn(&mut Mirror, T)) -> usize {
        let removed = unseen.len();
        unseen.into_iter().for_each(|item| remove(self, item));
        removed
    }

    /// Whether the link is known with another MTU.
    pub(crate) fn has_other_mtu(&self, link: &Link) -> bool {
        self.links.get(link.index).is_some_and(|known| known.mtu != link.mtu)
    }

    fn set_link(&mut self, link: Link) {
        let (index, state) = (link.index, self.links.reported_state(link.index));
        let (was_down, carried) = (self.links.is_down(index), self.links.carries(index));
        let is_same =
            |known: &Link| (&known.name, known.kind, known.master) == (&link.name, link.kind, link.master);
        let is_other = !self.links.get(index).is_some_and(is_same);
        let number = self.links.number(index);
        if !self.links.set(link) {
            return;
        }
        if self.links.begins_to_lack_numbers(index) {
            let warning = "there are too many interfaces: packets of some are left to the kernel";
            self.routing.sets.warnings.push(warning.to_owned());
        }
        let is_other = is_other || number != self.links.number(index);
        (self.routing.sets_changed, self.view_changed) = (true, true);
        if is_other {
            self.place_all_hosts();
        }
        if carried && !self.links.carries(index) {
            self.drop_objects(index);
        }
        match (state, self.links.reported_state(index)) {
            (before, LinkState::Down) if before != LinkState::Down => self.link_went_down(index),
            (before, after) if before != after => {
                self.suspect(DumpPart::Inet);
                self.revive(index);
            }
            _ if (was_down, carried) != (self.links.is_down(index), self.links.carries(index)) => {
                self.foreign_link_changed(index);
            }
            _ => {}
        }
    }

    /// The kernel uses the dead hops of a link that is back at once. Which these are it says only when it is asked: until then their
    /// packets are left to it.
    fn revive(&mut self, index: LinkIndex) {
        if self.links.carries(index) && self.routing.sets.has_dead_by(index) {
            self.links.revive(index);
            self.routing.sets_changed = true;
        }
    }

    /// The kernel drops the routes of a link that is set down. It reports none of IPv4, and none of IPv6 if it is set so
    /// (sysctl `net.ipv6.route.skip_notify_on_dev_down`). A link without a carrier keeps its routes.
    fn link_went_down(&mut self, index: LinkIndex) {
        if self.keeps_routes {
            return;
        }
        self.suspect(DumpPart::Inet);
        self.suspect(DumpPart::Inet6);
        self.routing.remove_routes_by(index, &self.links);
    }

    /// The same of a link that is no port. It may be one of many that come and go with containers, and have no route that counts.
    fn foreign_link_changed(&mut self, index: LinkIndex) {
        let sets = self.routing.sets.by(index);
        if self.keeps_routes || sets.is_empty() {
            return;
        }
        if self.routing.inet.uses(&sets) {
            self.suspect(DumpPart::Inet);
        }
        match self.links.is_down(index) {
            true => self.routing.remove_routes_by(index, &self.links),
            false => self.revive(index),
        }
    }

    /// The kernel drops the next-hop objects of a link that is set down or loses its carrier, whatever its settings say
    /// of routes without a carrier, and does not report it. When the link is back, the objects are not.
    fn drop_objects(&mut self, index: LinkIndex) {
        if !self.keeps_routes && self.routing.remove_objects(self.routing.sets.objects_by(index)) {
            let parts = [DumpPart::Objects, DumpPart::Inet, DumpPart::Inet6];
            parts.into_iter().for_each(|part| self.suspect(part));
        }
    }

    /// Objects may go with every report of a link that carries nothing, also if the mirror knows that of the link: the
    /// kernel reports a lost carrier before and after it drops objects.
    pub(crate) fn suspect_objects_of(&mut self, event: &ControlEvent) {
        let carries_nothing = matches!(event, ControlEvent::Link(link) if !(link.up && link.carrier));
        if carries_nothing && self.routing.sets.has_objects() {
            self.suspect(DumpPart::Objects);
        }
    }

    fn remove_link(&mut self, index: LinkIndex) {
        let addresses = self.neighbors.on(index);
        addresses.into_iter().for_each(|address| self.remove_neighbor(index, address));
        self.drop_objects(index);
        match self.links.place(index) {
            Some(_) => self.link_went_down(index),
            None => self.foreign_link_changed(index),
        }
        if !self.keeps_routes {
            self.routing.remove_all_routes_by(index);
        }
        if self.links.remove(index) {
            (self.routing.sets_changed, self.view_changed) = (true, true);
        }
    }

    /// A link changed its name, type or master. It and the links above or below it may be ports now or no longer, and
    /// may look up in other tables.
    pub(super) fn place_all_hosts(&mut self) {
        self.links.tables().into_iter().for_each(|table| self.routing.create(table));
        for (link, address) in self.neighbors.all() {
            match self.links.place(link) {
                Some(_) if self.routing.has_host(link, address) => {}
                Some(_) => self.place_host(link, address),
                None => self.remove_host(link, address),
            }
        }
    }

    /// With the first address of a link its dead hops can be used again.
    fn add_address(&mut self, link: LinkIndex, address: AssignedAddress) {
        let is_new = self.links.add_address(link, address);
        self.view_changed |= is_new;
        if is_new {
            self.suspect_disabled_inet6(link, address, true);
        }
        if is_new && address.own.ip.is_ipv4() && self.routing.sets.has_dead_by(link) {
            self.suspect(DumpPart::Inet);
            self.revive(link);
        }
    }

    fn remove_address(&mut self, link: LinkIndex, address: AssignedAddress) {
        let was_there = self.links.remove_address(link, address);
        self.view_changed |= was_there;
        if was_there {
            self.suspect_disabled_inet6(link, address, false);
        }
        if was_there && address.own.ip.is_ipv4() {
            self.suspect(DumpPart::Inet);
            self.drop_routes_without_address(link);
        }
    }

    /// With the last IPv4 address of a link go the IPv4 routes by it, without a message.
    fn drop_routes_without_address(&mut self, link: LinkIndex) {
        if !self.keeps_routes && !self.links.has_inet_address(link) {
            self.routing.remove_inet_routes_by(link, &self.links);
        }
    }

    /// The kernel does not report whether IPv6 is disabled on a link. But while it is, the link has no link-local address.
    fn suspect_disabled_inet6(&mut self, link: LinkIndex, address: AssignedAddress, is_there: bool) {
        let is_link_local = matches!(address.own.ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
        if is_link_local && self.links.get(link).is_some_and(|link| link.up && link.runs_inet6 != is_there) {
            self.suspect(DumpPart::Links);
        }
    }

    fn set_neighbor(&mut self, neighbor: &LinkNeighbor) {
        let (link, address) = (neighbor.link, neighbor.address);
        match self.neighbors.set(neighbor) {
            NeighborUpdate::Unchanged => {}
            NeighborUpdate::Moved => self.view_changed = true,
            NeighborUpdate::Added => {
                self.view_changed = true;
                self.place_host(link, address);
            }
            NeighborUpdate::Removed => self.remove_host(link, address),
        }
    }

    fn remove_neighbor(&mut self, link: LinkIndex, address: IpAddr) {
        if self.neighbors.remove((link, address)) == NeighborUpdate::Removed {
            self.remove_host(link, address);
        }
    }

    /// Only neighbours on ports have host routes, and only for addresses that packets are forwarded to.
    fn place_host(&mut self, link: LinkIndex, address: IpAddr) {
        let is_link_local = matches!(address, IpAddr::V6(ip) if ip.is_unicast_link_local());
        if self.links.place(link).is_some() && !is_link_local && !address.is_multicast() {
            self.routing.add_host(link, address);
        }
    }

    fn remove_host(&mut self, link: LinkIndex, address: IpAddr) {
        self.view_changed = true;
        self.routing.remove_host(link, address);
    }

    /// The kernel may have the same rule more than once. Only a dump says which of its rules are left, and in which order.
    fn add_rule(&mut self, rule: Rule) {
        if self.rules.is_repeated(&rule) {
            self.suspect(DumpPart::Rules);
        }
        self.view_changed |= self.rules.add(rule);
    }

    /// There may be another one that is the same.
    fn remove_rule(&mut self, rule: &Rule) {
        self.view_changed |= self.rules.remove(rule);
        self.suspect(DumpPart::Rules);
    }

    /// A removed IPv4 route that the mirror does not have in this form shows that the kernel's routes differ.
    fn remove_route(&mut self, route: &RouteEntry) {
        let is_known = self.routing.remove(route, &self.links);
        if !is_known && matches!(route.prefix, AnyPrefix::Inet(_)) {
            self.suspect(DumpPart::Inet);
        }
    }
}
