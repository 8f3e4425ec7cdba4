//! The view that workers forward with, made from links, addresses, neighbours, rules and next hops.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fullview_plane::adjacency::{Adjacencies, Adjacency};
use fullview_plane::flow_hash::FlowHash;
use fullview_plane::interface::{Interface, SourceCheck};
use fullview_plane::policy::InterfaceRules;
use fullview_plane::view::{Policy, TableReaders, View, ViewError, ViewParts, Views};
use fullview_plane::wire::ethernet::Mac;
use fullview_table::Family;
use fullview_table::fib::framework::Tables;

use crate::netlink::event::Link;
use crate::route::{MAIN_TABLE, NextHopVia, RouteAction};

use super::links::{LinkState, LinkTable, PortVlan};
use super::lookups::{InterfaceLookups, RuleRoom};
use super::neighbors::NeighborTable;
use super::next_hops::NextHopAction;
use super::routing::Routing;
use super::rule_list::Ingress;
use super::rules::RuleTable;
use super::table_places::TablePlaces;

/// Settings of an interface that the kernel does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfacePolicy {
    /// How the sources of its packets are checked.
    pub source_check: SourceCheck,
    /// Whether senders are redirected to a better first hop.
    pub redirects: bool,
}

/// Publishes views.
pub(super) struct Publisher {
    views: Views,
    /// The tables that packets of each interface are looked up in by the last view, by the interface's number.
    used: Vec<BTreeSet<u32>>,
    /// Interfaces of whose packets rules leave some to the kernel, by name.
    ruled: Vec<String>,
    /// How many rules of policy routing the data path has room for.
    pub most_rules: usize,
    pub tables: TablePlaces,
    warnings: Vec<String>,
    /// The names of interfaces that no packet fits on.
    without_mtu: Vec<String>,
    pub policies: BTreeMap<String, InterfacePolicy>,
    pub flow_hash: FlowHash,
    /// The names of the interfaces, by number, for which the rules of a filter were made; `None` if there is no filter.
    pub judged: Option<Vec<String>>,
}

/// The tables that interfaces begin to look up in, and those that interfaces no longer look up in.
#[derive(Default)]
pub(super) struct TableChanges {
    pub entered: BTreeSet<u32>,
    pub left: BTreeSet<u32>,
}

/// What a view is made from.
pub(super) struct Sources<'m> {
    pub links: &'m LinkTable,
    pub neighbors: &'m NeighborTable,
    pub rules: &'m RuleTable,
    pub routing: &'m Routing,
}

impl Publisher {
    /// The first view forwards nothing.
    pub fn new(routing: &Routing) -> Publisher {
        let parts = ViewParts {
            interfaces: Vec::new(),
            adjacencies: Adjacencies::new(),
            tables: readers(&routing.tables, MAIN_TABLE).into_iter().collect(),
            groups: routing.sets.groups.shared_reader(),
            policy: Policy::default(),
        };
        #[allow(clippy::expect_used)]
        // it has no interface and no next hop that could contradict another part
        let view = View::new(parts).expect("a view without interfaces and next hops");
        Publisher {
            views: Views::new(view),
            used: Vec::new(),
            ruled: Vec::new(),
            most_rules: usize::MAX,
            tables: TablePlaces::default(),
            warnings: Vec::new(),
            without_mtu: Vec::new(),
            policies: BTreeMap::new(),
            flow_hash: FlowHash::default(),
            judged: None,
        }
    }

    pub fn views(&self) -> &Views {
        &self.views
    }

    /// The names of interfaces of whose packets rules leave some to the kernel.
    pub fn ruled(&self) -> &[String] {
        &self.ruled
    }

    /// Makes a view and publishes it. ViewParts that contradict each other would be a defect of the mirror; the last view
    /// stays then.
    pub fn publish(&mut self, sources: &Sources<'_>) -> Result<Arc<View>, ViewError> {
        let links: Vec<_> = sources.links_and_lookups().collect();
        self.used = links.iter().map(|(_, link)| tables_of(link.as_ref())).collect();
        self.warnings.extend(self.tables.follow(self.used.iter().flatten().copied().collect()));
        self.ruled.clear();
        let without_mtu = std::mem::take(&mut self.without_mtu);
        let (tables, mut room) = (&sources.routing.tables, RuleRoom::new(self.most_rules));
        let interfaces = (0..).zip(&links).map(|(number, (place, link))| {
            let interface = match link {
                Some((link, lookups)) => self.interface(sources.interface(*place, link), lookups, &mut room),
                None => sources.absent(*place),
            };
            let interface = self.with_mtu(interface);
            self.closed_unless_judged(number, interface)
        });
        let interfaces = interfaces.collect();
        let new = self.without_mtu.iter().filter(|name| !without_mtu.contains(name));
        self.warnings.extend(new.map(|name| no_mtu(name)));
        let view = View::new(ViewParts {
            interfaces,
            adjacencies: sources.adjacencies(),
            tables: self.tables.numbers().iter().filter_map(|number| readers(tables, *number)).collect(),
            groups: sources.routing.sets.groups.shared_reader(),
            policy: Policy { flow_hash: self.flow_hash, ..Policy::default() },
        })?;
        Ok(self.views.publish(view))
    }

    /// Which tables the packets of interfaces will be looked up in that were looked up elsewhere until now, and which no longer.
    pub fn table_changes(&self, sources: &Sources<'_>) -> TableChanges {
        let mut changes = TableChanges::default();
        let new = sources.links_and_lookups().map(|(_, link)| tables_of(link.as_ref()));
        let has_packets =
            |(before, now): &(&BTreeSet<u32>, BTreeSet<u32>)| !before.is_empty() && !now.is_empty();
        for (before, now) in self.used.iter().zip(new).filter(has_packets) {
            changes.entered.extend(&now - before);
            changes.left.extend(before - &now);
        }
        changes
    }

    /// Publishes the current view with the next hops that there are now, and new interfaces that forward nothing yet.
    pub fn publish_next_hops(&mut self, sources: &Sources<'_>) -> Result<Arc<View>, ViewError> {
        let parts = self.views.current().parts().clone();
        let new = sources.links.interfaces().skip(parts.interfaces.len());
        let new = new.map(|(place, _)| closed(sources.absent(place)));
        let interfaces = parts.interfaces.iter().cloned().chain(new).collect();
        let view = View::new(ViewParts { interfaces, adjacencies: sources.adjacencies(), ..parts })?;
        Ok(self.views.publish(view))
    }

    /// What views lack since the last call.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// An interface for which the rules of the filter were not made forwards nothing: they may be about it.
    fn closed_unless_judged(&self, number: usize, interface: Interface) -> Interface {
        let is_judged = self.judged.as_ref().is_none_or(|names| names.get(number) == Some(&interface.name));
        if is_judged { interface } else { closed(interface) }
    }

    /// A VLAN device can have an MTU of 0. Nothing is forwarded on it, and the view is made for the others.
    fn with_mtu(&mut self, interface: Interface) -> Interface {
        if interface.mtu_of(Family::Inet6) > 0 {
            return interface;
        }
        self.without_mtu.push(interface.name.clone());
        closed(Interface { mtu: 1, mtu6: None, ..interface })
    }

    /// An interface that has a link.
    fn interface(
        &mut self,
        interface: Interface,
        lookups: &InterfaceLookups,
        room: &mut RuleRoom,
    ) -> Interface {
        let place = |family| room.place(lookups.rules(family, &self.tables)?);
        let [inet, inet6] = [Family::Inet, Family::Inet6].map(place);
        if lookups.is_ruled || inet.is_none() || inet6.is_none() {
            self.ruled.push(interface.name.clone());
        }
        let table = self.tables.of(lookups.table());
        let forwards = |on: bool, rules: &Option<_>| on && table.is_some() && rules.is_some();
        self.with_policy(Interface {
            table: table.unwrap_or(0),
            forwards_inet: forwards(interface.forwards_inet, &inet),
            forwards_inet6: forwards(interface.forwards_inet6, &inet6),
            rules: InterfaceRules { inet: inet.unwrap_or_default(), inet6: inet6.unwrap_or_default() },
            ..interface
        })
    }

    fn with_policy(&self, interface: Interface) -> Interface {
        match self.policies.get(&interface.name) {
            Some(policy) => {
                Interface { source_check: policy.source_check, redirects: policy.redirects, ..interface }
            }
            None => interface,
        }
    }
}

fn tables_of(link: Option<&(&Link, InterfaceLookups)>) -> BTreeSet<u32> {
    link.into_iter().flat_map(|(_, lookups)| lookups.tables()).collect()
}

fn closed(interface: Interface) -> Interface {
    Interface { up: false, forwards_inet: false, forwards_inet6: false, ..interface }
}

fn no_mtu(name: &str) -> String {
    format!(
        "interface {name} has an MTU of 0, so nothing is forwarded on it; `ip link set {name} mtu 1500` changes that"
    )
}

fn readers(tables: &Tables, number: u32) -> Option<TableReaders> {
    let (inet, inet6) = (tables.inet.shared_reader(number), tables.inet6.shared_reader(number));
    Some(TableReaders { inet: inet.ok()?, inet6: inet6.ok()? })
}

impl Sources<'_> {
    /// All interfaces by number, with the link that each has now, and how its packets are looked up.
    fn links_and_lookups(&self) -> impl Iterator<Item = (PortVlan, Option<(&Link, InterfaceLookups)>)> {
        self.links.interfaces().map(|(place, link)| (place, link.map(|link| (link, self.lookups(link)))))
    }

    fn lookups(&self, link: &Link) -> InterfaceLookups {
        let vrf = self.links.vrf(link.index).map(|vrf| vrf.name.as_str());
        let own_table = self.links.table(link.index);
        let (vrf, knows_transport) = (vrf.map(|vrf| (vrf, own_table)), !self.rules.leaves_transport);
        let ingress = Ingress { link: &link.name, vrf, knows_transport };
        let list = |family| self.rules.list(family, &ingress, &|table| self.routing.coverage(family, table));
        let lists = [Family::Inet, Family::Inet6].map(list);
        InterfaceLookups::new(own_table, lists, self.links.follows_kernel)
    }

    /// An interface as its link is, without what rules say.
    fn interface(&self, place: PortVlan, link: &Link) -> Interface {
        Interface {
            name: link.name.clone(),
            vlan: place.vlan,
            mtu: link.mtu,
            mtu6: link.mtu6,
            up: self.links.state(link.index) == LinkState::Up,
            forwards_inet: self.links.forwards(link.index, Family::Inet),
            forwards_inet6: self.links.forwards(link.index, Family::Inet6),
            addresses: self.links.addresses(link.index),
            ..Interface::new(place.port, link.mac)
        }
    }

    /// An interface whose link is gone keeps its number, because the link may come back.
    fn absent(&self, place: PortVlan) -> Interface {
        let port = self.links.ports().get(usize::from(place.port)).cloned().unwrap_or_default();
        let name = place.vlan.map_or(port.clone(), |vlan| format!("{port}.{vlan}"));
        Interface { name, vlan: place.vlan, up: false, ..Interface::new(place.port, Mac::default()) }
    }

    fn adjacencies(&self) -> Adjacencies {
        let mut adjacencies = Adjacencies::new();
        for (index, action) in self.routing.sets.next_hops.iter() {
            self.adjacency(action).into_iter().for_each(|adjacency| adjacencies.set(index, adjacency));
        }
        self.routing.sets.of_default_routes().for_each(|hop| adjacencies.mark_default(hop));
        adjacencies
    }

    /// `None` where a table has no route. Packets that would leave by a link that is not a port are left to the kernel.
    fn adjacency(&self, action: NextHopAction) -> Option<Adjacency> {
        Some(match action {
            RouteAction::Local => Adjacency::Local,
            RouteAction::Broadcast => Adjacency::Broadcast,
            RouteAction::Blackhole => Adjacency::Blackhole,
            RouteAction::Unreachable => Adjacency::Unreachable,
            RouteAction::Prohibit => Adjacency::Prohibit,
            RouteAction::Throw => return None,
            RouteAction::Forward(NextHopVia { link, neighbor }) => {
                let Some(interface) = self.links.number(link) else { return Some(Adjacency::Local) };
                match neighbor.and_then(|address| self.neighbors.get(link, address)) {
                    Some(known) => Adjacency::Neighbor { interface, mac: known.mac },
                    None => Adjacency::Glean { interface },
                }
            }
        })
    }
}
