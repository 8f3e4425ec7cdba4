//! What the router's threads and its operators ask about the mirror's state.

use std::collections::BTreeSet;
use std::net::IpAddr;

use fullview_plane::policy::PolicyAction;
use fullview_plane::wire::ethernet::Mac;
use fullview_table::NextHop;
use fullview_table::fib::framework::LogEntry;

use super::Mirror;
use super::next_hops::NextHopAction;
use super::resolution::{self, StaleNeighbor};
use crate::netlink::event::Link;
use crate::route::{LinkIndex, NextHopVia, RouteAction};

/// Figures for the log and the metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Prefixes that the kernel has IPv4 routes to, in all its tables.
    pub inet: usize,
    /// Prefixes that the kernel has IPv6 routes to, in all its tables.
    pub inet6: usize,
    /// Interfaces of whose packets rules of policy routing leave some to the kernel, by name.
    pub ruled: Vec<String>,
}

/// A neighbour that frames may be sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsableNeighbor {
    /// Its address.
    pub address: IpAddr,
    /// The name of its link.
    pub link: String,
    /// Its Ethernet address.
    pub mac: Mac,
    /// Whether the kernel would verify the address before it relied on it.
    pub is_stale: bool,
}

impl Mirror {
    /// The figures as they are now.
    pub fn report(&self) -> Report {
        let routing = &self.routing;
        Report {
            inet: routing.inet.len(),
            inet6: routing.inet6.len(),
            ruled: self.publisher.ruled().to_vec(),
        }
    }

    /// What could not be done as the kernel does it, since the last call.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.routing.sets.warnings)
    }

    /// The log of the FIB framework for both families, in the order of time.
    pub fn log(&self) -> Vec<LogEntry> {
        let mut all = self.routing.tables.inet.log();
        all.extend(self.routing.tables.inet6.log());
        all.sort_by_key(|entry| entry.at);
        all
    }

    /// The kernel's number of a table, by its position in the view.
    pub fn table_number(&self, place: u16) -> Option<u32> {
        self.publisher.tables.numbers().get(usize::from(place)).copied()
    }

    /// A table's position in the view.
    pub fn table_place(&self, number: u32) -> Option<u16> {
        self.publisher.tables.of(number)
    }

    /// A next hop in the words of `ip route`; `None` if the index is free.
    pub fn next_hop(&self, hop: NextHop) -> Option<String> {
        if let Some(members) = self.routing.sets.groups.members(hop) {
            return Some(format!("group of {}", members.len()));
        }
        Some(match self.routing.sets.next_hops.action(hop)? {
            RouteAction::Local => "this host".into(),
            RouteAction::Broadcast => "broadcast".into(),
            RouteAction::Blackhole => "blackhole".into(),
            RouteAction::Unreachable => "unreachable".into(),
            RouteAction::Prohibit => "prohibit".into(),
            RouteAction::Throw => "throw".into(),
            RouteAction::Forward(NextHopVia { link, neighbor: None }) => {
                format!("dev {}", self.links.name(link))
            }
            RouteAction::Forward(NextHopVia { link, neighbor: Some(ip) }) => {
                format!("via {ip} dev {}", self.links.name(link))
            }
        })
    }

    /// What is done with packets of each next hop, by number; `None` for groups, links that are gone, and free indices.
    pub fn next_hop_actions(&self) -> Vec<Option<RouteAction<NextHopVia<u16>>>> {
        let mut actions = Vec::new();
        for (NextHop(number), action) in self.routing.sets.next_hops.iter() {
            let place = usize::from(number);
            if actions.len() <= place {
                actions.resize(place + 1, None);
            }
            if let Some(slot) = actions.get_mut(place) {
                *slot = self.by_interface(action);
            }
        }
        actions
    }

    fn by_interface(&self, action: NextHopAction) -> Option<RouteAction<NextHopVia<u16>>> {
        let number = |NextHopVia { link, neighbor }: NextHopVia<LinkIndex>| {
            self.links.number(link).map(|link| NextHopVia { link, neighbor }).ok_or(())
        };
        action.try_map(number).ok()
    }

    /// The link that an interface is now.
    pub fn link_of(&self, interface: u16) -> Option<LinkIndex> {
        self.links.numbered(interface)
    }

    /// Whether the link of each interface, by number, is set up, with or without a carrier. Without a kernel no link is ever
    /// set down.
    pub fn set_up_interfaces(&self) -> Vec<bool> {
        let is_set_up = |link: Option<&Link>| link.is_some_and(|link| link.up || self.keeps_routes);
        self.links.interfaces().map(|(_, link)| is_set_up(link)).collect()
    }

    /// The number of the interface that a link is.
    pub fn interface_of(&self, link: LinkIndex) -> Option<u16> {
        self.links.number(link)
    }

    /// All usable neighbours, in no order.
    pub fn usable_neighbors(&self) -> Vec<UsableNeighbor> {
        let neighbor = |(link, address): (LinkIndex, IpAddr)| {
            let known = self.neighbors.get(link, address)?;
            let link = self.links.name(link);
            Some(UsableNeighbor { address, link, mac: known.mac, is_stale: known.is_stale })
        };
        self.neighbors.keys().filter_map(neighbor).collect()
    }

    /// The usable neighbours on ports that the kernel would verify before it relied on them.
    pub fn stale_neighbors(&self) -> Vec<StaleNeighbor> {
        resolution::stale(&self.neighbors, &self.links)
    }

    /// The gateways among several next hops that are no usable neighbours.
    pub fn missing_gateways(&self) -> BTreeSet<(LinkIndex, IpAddr)> {
        resolution::missing_gateways(&self.routing, &self.neighbors)
    }

    /// The stations that packets to `destination` may be sent to, by the RIB of a kernel table: gateways, or the
    /// destination itself.
    pub fn stations(&self, table: u32, destination: IpAddr) -> Vec<(LinkIndex, IpAddr)> {
        resolution::stations(&self.routing, table, destination)
    }

    /// The neighbour to resolve for a packet to `destination` that arrived on an interface with this number.
    pub fn missing_neighbor(&self, interface: u16, destination: IpAddr) -> Option<(LinkIndex, IpAddr)> {
        resolution::missing(&self.routing, &self.neighbors, self.tables_of(interface), destination)
    }

    /// The tables that packets of an interface may be looked up in, by their numbers in the kernel.
    fn tables_of(&self, interface: u16) -> Vec<u32> {
        let view = self.views().current();
        let Some(interface) = view.interface(interface) else { return Vec::new() };
        let rules = interface.rules.inet.iter().chain(interface.rules.inet6.iter());
        let by_rules = rules.filter_map(|rule| match rule.action {
            PolicyAction::LookUp(place) | PolicyAction::LookUpSpecific(place) => Some(place),
            PolicyAction::SkipTo(_) | PolicyAction::Punt => None,
        });
        by_rules.chain([interface.table]).filter_map(|place| self.table_number(place)).collect()
    }
}
