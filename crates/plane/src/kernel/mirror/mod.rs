//! What the kernel has, and what follows from it: routes in the FIB framework's tables, next hops, groups, views.
//!
//! Pure: fed with events and told the time. [`Mirror::apply`] takes in, [`Mirror::commit`] hands on all that changed,
//! in the order that keeps a FIB from leading where the view knows no way: groups, then the view, then the routes;
//! what is no longer used is forgotten when all FIBs have followed and the last old view is gone.
//!
//! A dump is told of by [`Mirror::begin`] and [`Mirror::end`]: what it did not mention is gone.

use std::collections::HashSet;
use std::net::IpAddr;

use fullview_table::fib::framework::{FamilyTables, Settings, Tables, Time};
use fullview_table::{Address, NextHop};

use crate::view::Views;

use super::event::{Action, AnyPrefix, Event, Link, LinkIndex, Neighbor, Placement, Route};
use super::uapi;
use family::{Family, Kept};
use indices::{Released, Via};
use links::{Links, State};
use neighbors::{Neighbors, Turn};
use routes::{Entry, Way};
use sets::{Key, Sets};

mod family;
mod indices;
mod links;
mod neighbors;
mod report;
mod routes;
mod sets;
mod stations;
mod view;

pub use report::Report;

/// What can be dumped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Which links forward IPv4.
    Forwarding,
    /// Which links forward IPv6.
    Forwarding6,
    /// Rules of policy routing.
    Rules,
    /// Network interfaces.
    Links,
    /// Addresses of this host.
    Addresses,
    /// Neighbours of both families.
    Neighbors,
    /// Next-hop objects.
    Objects,
    /// IPv4 routes.
    Inet,
    /// IPv6 routes.
    Inet6,
}

/// What the kernel has, and what follows from it.
pub struct Mirror {
    links: Links,
    neighbors: Neighbors,
    sets: Sets,
    inet: Family<u32>,
    inet6: Family<u128>,
    tables: Tables,
    views: Views,
    /// Links or objects changed: what sets lead to has to be found out again.
    sets_changed: bool,
    /// Interfaces, addresses, neighbours or tables changed.
    view_changed: bool,
    /// The kernel drops IPv4 routes without a word when links or addresses go, and takes them up again.
    suspects_inet: bool,
    /// Given up, and the generations that all FIBs have to reach.
    following: Vec<(Generations, Vec<Released>, Vec<NextHop>)>,
    has_rules: bool,
}

/// Of the RIBs at one moment, by family and table.
#[derive(Default)]
struct Generations {
    inet: Vec<(u32, u64)>,
    inet6: Vec<(u32, u64)>,
}

impl Mirror {
    /// Of a kernel of which nothing is known yet, to forward by links of these names; their places are the numbers of
    /// the ports.
    pub fn new(now: Time, ports: Vec<String>, settings: Settings) -> Mirror {
        let mut tables = Tables::new(now, settings);
        tables.create(uapi::RT_TABLE_MAIN);
        let (links, sets) = (Links::new(ports), Sets::default());
        let views = Views::new(view::empty(&tables, &sets.groups));
        let mut mirror = Mirror {
            links,
            neighbors: Neighbors::default(),
            sets,
            inet: Family::default(),
            inet6: Family::default(),
            tables,
            views,
            sets_changed: false,
            view_changed: true,
            suspects_inet: false,
            following: Vec::new(),
            has_rules: false,
        };
        mirror.create(uapi::RT_TABLE_MAIN);
        mirror
    }

    /// Takes in what the kernel says.
    pub fn apply(&mut self, event: Event) {
        match event {
            Event::Link(link) => self.set_link(link),
            Event::LinkGone(index) => self.remove_link(index),
            Event::Address(link, address) => self.view_changed |= self.links.add_address(link, address),
            Event::AddressGone(link, address) => {
                let was_there = self.links.remove_address(link, address);
                self.view_changed |= was_there;
                self.suspects_inet |= was_there && address.ip.is_ipv4();
            }
            Event::Neighbor(neighbor) => self.set_neighbor(&neighbor),
            Event::NeighborGone(link, address) => self.remove_neighbor(link, address),
            Event::Route(route, placement) => self.add_route(route, placement),
            Event::RouteGone(route) => self.remove_route(route),
            Event::NextHop(id, object) => self.sets_changed |= self.sets.set_object(id, object),
            Event::NextHopGone(id) => self.remove_object(id),
            Event::Forwarding(link, family, on) => {
                self.view_changed |= self.links.set_forwarding(link, family, on)
            }
            Event::Rule => self.has_rules = true,
        }
    }

    fn set_link(&mut self, link: Link) {
        let (index, state, table) = (link.index, self.links.state(link.index), self.links.table(link.index));
        if !self.links.set(link) {
            return;
        }
        (self.sets_changed, self.view_changed) = (true, true);
        self.create(self.links.table(index));
        if self.links.table(index) != table {
            self.move_hosts(index);
        }
        match (state, self.links.state(index)) {
            (before, State::Down) if before != State::Down => self.went_down(index),
            (before, after) => self.suspects_inet |= before != after,
        }
    }

    /// The kernel drops the IPv4 routes of a link that is set down, and says nothing.
    fn went_down(&mut self, index: LinkIndex) {
        self.suspects_inet = true;
        self.inet.sweep(&mut self.sets, |entry, sets| {
            let hops = entry.way.set().and_then(|id| sets.hops(id));
            hops.is_some_and(|hops| hops.iter().all(|hop| hop.link == index))
        });
    }

    fn remove_link(&mut self, index: LinkIndex) {
        let addresses = self.neighbors.on(index);
        addresses.into_iter().for_each(|address| self.remove_neighbor(index, address));
        if self.links.place(index).is_some() {
            self.went_down(index);
        }
        if self.links.remove(index) {
            (self.sets_changed, self.view_changed) = (true, true);
        }
    }

    /// Whoever is on a link that belongs to another table now.
    fn move_hosts(&mut self, link: LinkIndex) {
        let addresses = self.neighbors.on(link);
        for address in addresses {
            self.place_host(link, address);
        }
    }

    fn set_neighbor(&mut self, neighbor: &Neighbor) {
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

    fn remove_neighbor(&mut self, link: LinkIndex, address: IpAddr) {
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
        let Ok(index) = self.sets.indices.acquire(Via::Station(link, address)) else { return };
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

    fn add_route(&mut self, route: Route, placement: Placement) {
        if route.table != uapi::RT_TABLE_LOCAL {
            self.create(route.table);
        }
        let way = match &route.action {
            Action::Forward(hops) => {
                Way::Set(self.sets.acquire(Key::Hops(hops.as_slice().into()), &self.links))
            }
            Action::Object(id) => Way::Set(self.sets.acquire(Key::Object(*id), &self.links)),
            other => fixed(other),
        };
        match route.prefix {
            AnyPrefix::Inet(prefix) => self.inet.add(kept(&route, prefix, way), placement, &mut self.sets),
            AnyPrefix::Inet6(prefix) => self.inet6.add(kept(&route, prefix, way), placement, &mut self.sets),
        }
    }

    /// A route that we do not know as it was: what the kernel has now has to be looked at.
    fn remove_route(&mut self, route: Route) {
        let is_known = match route.prefix {
            AnyPrefix::Inet(prefix) => {
                self.removed(&route, prefix, |mirror| (&mut mirror.inet, &mut mirror.sets))
            }
            AnyPrefix::Inet6(prefix) => {
                self.removed(&route, prefix, |mirror| (&mut mirror.inet6, &mut mirror.sets))
            }
        };
        if !is_known && let AnyPrefix::Inet6(prefix) = route.prefix {
            self.remove_hops(&route, prefix);
        }
        self.suspects_inet |= !is_known && matches!(route.prefix, AnyPrefix::Inet(_));
    }

    fn removed<A: Address>(
        &mut self,
        route: &Route,
        prefix: fullview_table::Prefix<A>,
        family: impl Fn(&mut Mirror) -> (&mut Family<A>, &mut Sets),
    ) -> bool {
        let (way, hops) = match &route.action {
            Action::Forward(hops) => (Way::Throw, Some(hops.as_slice())),
            Action::Object(id) => (Way::Set(self.sets.acquire(Key::Object(*id), &self.links)), None),
            other => (fixed(other), None),
        };
        let (family, sets) = family(self);
        let was_there = family.remove(&kept(route, prefix, way), hops, sets);
        way.set().into_iter().for_each(|id| sets.release(id));
        was_there
    }

    /// One hop of several went: the others stay.
    fn remove_hops(&mut self, route: &Route, prefix: fullview_table::Prefix<u128>) {
        let Action::Forward(gone) = &route.action else { return };
        let entries = self.inet6.at(route.table, prefix).to_vec();
        for entry in entries.iter().filter(|entry| entry.metric == route.metric) {
            let Some(hops) = entry.way.set().and_then(|id| self.sets.hops(id)) else { continue };
            let left: Vec<_> = hops.iter().filter(|hop| !family::holds(gone, hop)).copied().collect();
            if left.len() == hops.len() || left.is_empty() {
                continue;
            }
            let before = Route { action: Action::Forward(hops.to_vec()), ..route.clone() };
            self.remove_route(before);
            self.add_route(Route { action: Action::Forward(left), ..route.clone() }, Placement::First);
        }
    }

    /// The kernel removes the routes of an object that goes, and does not always say so.
    fn remove_object(&mut self, id: u32) {
        if !self.sets.remove_object(id) {
            return;
        }
        self.sets_changed = true;
        let of_object =
            |entry: &Entry, sets: &Sets| entry.way.set().is_some_and(|set| sets.object(set) == Some(id));
        self.inet.sweep(&mut self.sets, of_object);
        self.inet6.sweep(&mut self.sets, of_object);
    }

    /// A table that packets may be looked up in.
    fn create(&mut self, table: u32) {
        if self.tables.inet.rib(table).is_none() {
            self.tables.create(table);
        }
        self.inet.create(table);
        self.inet6.create(table);
    }

    /// A dump of this part begins: the events that follow are what there is.
    pub fn begin(&mut self, part: Part) {
        match part {
            Part::Forwarding | Part::Forwarding6 => {}
            Part::Rules => self.has_rules = false,
            Part::Links => self.links.mark(),
            Part::Addresses => {
                self.links.forget_addresses();
                self.view_changed = true;
            }
            Part::Neighbors => self.neighbors.mark(),
            Part::Objects => self.sets.mark(),
            Part::Inet => self.inet.begin_dump(),
            Part::Inet6 => self.inet6.begin_dump(),
        }
    }

    /// And was whole: what it did not mention is gone. Returns how much that was.
    pub fn end(&mut self, part: Part) -> usize {
        match part {
            Part::Links => {
                let gone = self.links.unseen();
                gone.iter().for_each(|index| self.remove_link(*index));
                gone.len()
            }
            Part::Forwarding | Part::Forwarding6 | Part::Rules | Part::Addresses => 0,
            Part::Neighbors => {
                let gone = self.neighbors.unseen();
                gone.iter().for_each(|(link, address)| self.remove_neighbor(*link, *address));
                gone.len()
            }
            Part::Objects => {
                let gone = self.sets.unseen();
                gone.iter().for_each(|id| self.remove_object(*id));
                gone.len()
            }
            Part::Inet => self.inet.end_dump(&mut self.sets),
            Part::Inet6 => self.inet6.end_dump(&mut self.sets),
        }
    }

    /// Hands on all that changed.
    pub fn commit(&mut self, now: Time) {
        if std::mem::take(&mut self.sets_changed) {
            let changed = self.sets.refresh_all(&self.links);
            self.view_changed = true;
            if !changed.is_empty() {
                self.inet.touch_sets(&changed);
                self.inet6.touch_sets(&changed);
            }
        }
        self.publish();
        self.inet.commit(now, &mut self.tables.inet, &self.sets);
        self.inet6.commit(now, &mut self.tables.inet6, &self.sets);
        self.tick(now);
    }

    /// Does what is due in the tables, and forgets what nobody uses any more.
    pub fn tick(&mut self, now: Time) {
        self.tables.tick(now);
        self.follow();
        if self.sets.indices.wants_view() {
            self.view_changed = true;
            self.publish();
        }
        self.sets.indices.reclaim();
    }

    /// When [`Self::tick`] has something to do.
    pub fn next_deadline(&self) -> Option<Time> {
        self.tables.next_deadline()
    }

    fn publish(&mut self) {
        if std::mem::take(&mut self.sets.groups_changed) {
            self.sets.groups.publish();
        }
        if std::mem::take(&mut self.view_changed) | std::mem::take(&mut self.sets.indices.is_new) {
            self.publish_view();
        }
    }

    /// Lets go of next hops and groups that no FIB leads to any more.
    fn follow(&mut self) {
        let (released, groups) = (self.sets.indices.released(), self.sets.released_groups());
        if !(released.is_empty() && groups.is_empty()) {
            self.following.push((self.generations(), released, groups));
        }
        for (generations, released, groups) in std::mem::take(&mut self.following) {
            if !self.have_followed(&generations) {
                self.following.push((generations, released, groups));
                continue;
            }
            self.sets.indices.retire(released);
            for group in groups {
                // Each was created here, and is released once.
                let _ = self.sets.groups.release(group);
                self.sets.groups_changed = true;
            }
        }
    }

    fn generations(&self) -> Generations {
        Generations { inet: generations(&self.tables.inet), inet6: generations(&self.tables.inet6) }
    }

    fn have_followed(&self, generations: &Generations) -> bool {
        reached(&self.tables.inet, &generations.inet) && reached(&self.tables.inet6, &generations.inet6)
    }

    /// Forwards only what the kernel would forward too, by its settings for each link. Otherwise everything.
    pub fn heed_forwarding(&mut self) {
        self.links.heeds_forwarding = true;
        self.view_changed = true;
    }

    /// Whether IPv4 routes may have gone, or come, without a word. Asking answers it: dump them.
    pub fn suspects_inet(&mut self) -> bool {
        std::mem::take(&mut self.suspects_inet)
    }

    /// Where workers get their views from.
    pub fn views(&self) -> &Views {
        &self.views
    }

    /// The tables that follow.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// The same, to choose algorithms.
    pub fn tables_mut(&mut self) -> &mut Tables {
        &mut self.tables
    }

    /// Addresses whose packets are for this host, broadcasts of its networks among them.
    pub fn local_addresses(&self) -> HashSet<IpAddr> {
        let inet = self.inet.local_hosts().map(|address| IpAddr::V4(address.to_ip()));
        let inet6 = self.inet6.local_hosts().map(|address| IpAddr::V6(address.to_ip()));
        inet.chain(inet6).collect()
    }

    /// The link that has a port's name now.
    pub fn port_link(&self, port: usize) -> Option<&Link> {
        self.links.by_name(self.links.ports().get(port)?)
    }
}

fn generations<A: Address>(tables: &FamilyTables<A>) -> Vec<(u32, u64)> {
    tables.numbers().filter_map(|number| Some((number, tables.rib(number)?.generation()))).collect()
}

fn reached<A: Address>(tables: &FamilyTables<A>, generations: &[(u32, u64)]) -> bool {
    let has = |(number, generation): &(u32, u64)| {
        tables.attachment(*number).is_none_or(|attachment| attachment.generation() >= *generation)
    };
    generations.iter().all(has)
}

/// What a route does that needs no next hop. Those that do are not asked for.
fn fixed(action: &Action) -> Way {
    match action {
        Action::Broadcast => Way::Broadcast,
        Action::Blackhole => Way::Blackhole,
        Action::Unreachable => Way::Unreachable,
        Action::Prohibit => Way::Prohibit,
        Action::Throw => Way::Throw,
        Action::Local | Action::Forward(_) | Action::Object(_) => Way::Kernel,
    }
}

/// Routes of interfaces, and those somebody typed, do not wait.
fn kept<A: Address>(route: &Route, prefix: fullview_table::Prefix<A>, way: Way) -> Kept<A> {
    let at_once = matches!(route.protocol, uapi::RTPROT_KERNEL | uapi::RTPROT_BOOT | uapi::RTPROT_STATIC);
    let entry = Entry { metric: route.metric, way, selective: route.selective, dump: 0 };
    Kept { table: route.table, prefix, entry, at_once }
}
