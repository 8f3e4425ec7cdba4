//! The view that workers forward with, made from links, addresses, neighbours, rules and next hops.

use std::collections::BTreeMap;
use std::sync::Arc;

use fullview_plane::adjacency::{Adjacencies, Adjacency};
use fullview_plane::interface::{Interface, SourceCheck};
use fullview_plane::view::{Policy, TableReaders, View, ViewError, ViewParts, Views};
use fullview_plane::wire::ethernet::Mac;
use fullview_table::Family;
use fullview_table::fib::framework::Tables;

use crate::netlink::event::Link;
use crate::route::{MAIN_TABLE, NextHopVia, RouteAction};

use super::links::{LinkState, LinkTable, PortVlan};
use super::neighbors::NeighborTable;
use super::next_hops::NextHopAction;
use super::routing::Routing;
use super::rules::{Ingress, RuleTable};
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
    /// Interfaces whose packets rules may have looked up in other tables than this router's, by name.
    ruled: Vec<String>,
    pub tables: TablePlaces,
    warning: Option<String>,
    pub policies: BTreeMap<String, InterfacePolicy>,
    pub flow_seed: u64,
    /// The names of the interfaces, by number, for which the rules of a filter were made; `None` if there is no filter.
    pub judged: Option<Vec<String>>,
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
            ruled: Vec::new(),
            tables: TablePlaces::default(),
            warning: None,
            policies: BTreeMap::new(),
            flow_seed: 0,
            judged: None,
        }
    }

    pub fn views(&self) -> &Views {
        &self.views
    }

    /// The names of interfaces whose packets rules may have looked up in other tables.
    pub fn ruled(&self) -> &[String] {
        &self.ruled
    }

    /// Makes a view and publishes it. ViewParts that contradict each other would be a defect of the mirror; the last view
    /// stays then.
    pub fn publish(&mut self, sources: &Sources<'_>) -> Result<Arc<View>, ViewError> {
        self.ruled = sources.ruled();
        self.warning = self.tables.follow(sources.links.tables());
        let tables = &sources.routing.tables;
        let interfaces = sources.interfaces(&self.tables);
        let view = View::new(ViewParts {
            interfaces: (0..)
                .zip(interfaces)
                .map(|(at, one)| self.closed(at, self.with_policy(one)))
                .collect(),
            adjacencies: sources.adjacencies(),
            tables: self.tables.numbers().iter().filter_map(|number| readers(tables, *number)).collect(),
            groups: sources.routing.sets.groups.shared_reader(),
            policy: Policy { flow_seed: self.flow_seed, ..Policy::default() },
        })?;
        self.views.publish(view);
        Ok(self.views.current())
    }

    /// What the last view lacks.
    pub fn take_warning(&mut self) -> Option<String> {
        self.warning.take()
    }

    /// An interface for which the rules of the filter were not made forwards nothing: they may be about it.
    fn closed(&self, number: usize, interface: Interface) -> Interface {
        let is_judged = self.judged.as_ref().is_none_or(|names| names.get(number) == Some(&interface.name));
        match is_judged {
            true => interface,
            false => Interface { up: false, forwards_inet: false, forwards_inet6: false, ..interface },
        }
    }

    /// A link that is gone has no policy.
    fn with_policy(&self, (interface, is_present): (Interface, bool)) -> Interface {
        match self.policies.get(&interface.name).filter(|_| is_present) {
            Some(policy) => {
                Interface { source_check: policy.source_check, redirects: policy.redirects, ..interface }
            }
            None => interface,
        }
    }
}

fn readers(tables: &Tables, number: u32) -> Option<TableReaders> {
    let (inet, inet6) = (tables.inet.shared_reader(number), tables.inet6.shared_reader(number));
    Some(TableReaders { inet: inet.ok()?, inet6: inet6.ok()? })
}

impl Sources<'_> {
    /// All interfaces by number, and whether each has a link now.
    fn interfaces(&self, tables: &TablePlaces) -> impl Iterator<Item = (Interface, bool)> {
        self.links.interfaces().map(|(place, link)| match link {
            Some(link) => (self.interface(place, link, tables), true),
            None => (self.absent(place), false),
        })
    }

    fn interface(&self, place: PortVlan, link: &Link, tables: &TablePlaces) -> Interface {
        let table = tables.of(self.links.table(link.index));
        let forwards = |family| table.is_some() && self.forwards(link, family);
        Interface {
            name: link.name.clone(),
            vlan: place.vlan,
            mtu: link.mtu,
            mtu6: link.mtu6,
            up: self.links.state(link.index) == LinkState::Up,
            table: table.unwrap_or(0),
            forwards_inet: forwards(Family::Inet),
            forwards_inet6: forwards(Family::Inet6),
            addresses: self.links.addresses(link.index),
            ..Interface::new(place.port, link.mac)
        }
    }

    /// Where the kernel forwards what this router does not, it also gets the packets that its rules may have looked up
    /// in another table.
    fn forwards(&self, link: &Link, family: Family) -> bool {
        self.links.forwards(link.index, family) && !(self.links.follows_kernel && self.is_ruled(link, family))
    }

    fn ruled(&self) -> Vec<String> {
        let links = self.links.interfaces().filter_map(|(_, link)| link);
        let is_ruled =
            |link: &&Link| [Family::Inet, Family::Inet6].iter().any(|family| self.is_ruled(link, *family));
        links.filter(is_ruled).map(|link| link.name.clone()).collect()
    }

    /// Whether rules may have packets that arrive on a link looked up in another table than this router does.
    fn is_ruled(&self, link: &Link, family: Family) -> bool {
        let vrf = self.links.vrf(link.index).map(|vrf| vrf.name.as_str());
        !self.rules.choose_own_table(family, &Ingress { link: &link.name, vrf })
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
