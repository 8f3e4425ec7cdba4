//! The view that workers forward by, as it follows from links, addresses, neighbours and next hops.

use fullview_table::Family;
use fullview_table::fib::framework::Tables;
use fullview_table::group::Groups;

use crate::netlink::event::Link;
use crate::route::{MAIN_TABLE, NextHopVia, RouteAction};
use fullview_plane::adjacency::{Adjacencies, Adjacency};
use fullview_plane::interface::Interface;
use fullview_plane::view::{Policy, TableReaders, View, ViewParts};
use fullview_plane::wire::ethernet::Mac;

use super::Mirror;
use super::indices::NextHopAction;
use super::links::{Place, State};
use super::rules::Ingress;

/// Nothing is forwarded by it.
pub(super) fn empty(tables: &Tables, groups: &Groups) -> View {
    let parts = ViewParts {
        interfaces: Vec::new(),
        adjacencies: Adjacencies::new(),
        tables: readers(tables, MAIN_TABLE).into_iter().collect(),
        groups: groups.shared_reader(),
        policy: Policy::default(),
    };
    #[allow(clippy::expect_used)] // there is nothing in it that could contradict itself
    View::new(parts).expect("a view without interfaces and next hops")
}

fn readers(tables: &Tables, number: u32) -> Option<TableReaders> {
    let (inet, inet6) = (tables.inet.shared_reader(number), tables.inet6.shared_reader(number));
    Some(TableReaders { inet: inet.ok()?, inet6: inet6.ok()? })
}

impl Mirror {
    /// Workers go by links and neighbours as they are now. ViewParts that do not fit together would be our own mistake;
    /// the view that was published last goes on then, and the report says so.
    pub(super) fn publish_view(&mut self) {
        self.ruled = self.ruled_links();
        let numbers = self.table_numbers();
        let parts = ViewParts {
            interfaces: self.interfaces(&numbers),
            adjacencies: self.adjacencies(),
            tables: numbers.iter().filter_map(|number| readers(&self.tables, *number)).collect(),
            groups: self.sets.groups.shared_reader(),
            policy: Policy { flow_seed: self.flow_seed, ..Policy::default() },
        };
        match View::new(parts) {
            Ok(view) => {
                self.views.publish(view);
                self.sets.indices.published(&self.views.current());
            }
            Err(error) => self.sets.notes.push(format!("the view is not renewed: {error}")),
        }
    }

    /// The kernel's numbers of our tables, by place in the view.
    pub(super) fn table_numbers(&self) -> Vec<u32> {
        let others = self.inet.tables().filter(|number| *number != MAIN_TABLE);
        let mut numbers: Vec<u32> = others.collect();
        numbers.sort_unstable();
        numbers.insert(0, MAIN_TABLE);
        numbers
    }

    fn interfaces(&self, tables: &[u32]) -> Vec<Interface> {
        let interface = |(place, link): (Place, Option<&Link>)| match link {
            Some(link) => self.with_policy(self.interface(place, link, tables)),
            None => self.absent(place),
        };
        self.links.interfaces().map(interface).collect()
    }

    fn interface(&self, place: Place, link: &Link, tables: &[u32]) -> Interface {
        let table = tables.iter().position(|number| *number == self.links.table(link.index));
        Interface {
            name: link.name.clone(),
            vlan: place.vlan,
            mtu: link.mtu,
            mtu6: link.mtu6,
            up: self.links.state(link.index) == State::Up,
            table: table.and_then(|place| u16::try_from(place).ok()).unwrap_or(0),
            forwards_inet: self.forwards(link, Family::Inet),
            forwards_inet6: self.forwards(link, Family::Inet6),
            addresses: self.links.addresses(link.index).to_vec(),
            ..Interface::new(place.port, link.mac)
        }
    }

    /// Where the kernel forwards what we do not, it has what its rules may lead elsewhere.
    fn forwards(&self, link: &Link, family: Family) -> bool {
        self.links.forwards(link.index, family)
            && !(self.links.heeds_forwarding && self.is_ruled(link, family))
    }

    fn ruled_links(&self) -> Vec<String> {
        let links = self.links.interfaces().filter_map(|(_, link)| link);
        let is_ruled =
            |link: &&Link| [Family::Inet, Family::Inet6].iter().any(|family| self.is_ruled(link, *family));
        links.filter(is_ruled).map(|link| link.name.clone()).collect()
    }

    /// Whether rules of policy routing may lead what comes in by a link elsewhere than to the table we look it up in.
    fn is_ruled(&self, link: &Link, family: Family) -> bool {
        let vrf = self.links.vrf(link.index).map(|vrf| vrf.name.as_str());
        !self.rules.lead_home(family, &Ingress { link: &link.name, vrf })
    }

    /// A link that is gone keeps its number, for it may come back.
    fn absent(&self, place: Place) -> Interface {
        let port = self.links.ports().get(usize::from(place.port)).cloned().unwrap_or_default();
        let name = place.vlan.map_or(port.clone(), |vlan| format!("{port}.{vlan}"));
        Interface { name, vlan: place.vlan, up: false, ..Interface::new(place.port, Mac::default()) }
    }

    fn adjacencies(&self) -> Adjacencies {
        let mut adjacencies = Adjacencies::new();
        for (index, action) in self.sets.indices.iter() {
            self.adjacency(action).into_iter().for_each(|adjacency| adjacencies.set(index, adjacency));
        }
        adjacencies
    }

    /// `None` where a table has no route. What cannot be sent by one of our interfaces is left to the kernel.
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
