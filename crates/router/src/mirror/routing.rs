//! The routes of both families, the sets of next hops that they use, and the tables that follow them.

use std::collections::{BTreeSet, HashSet};
use std::net::IpAddr;

use fullview_table::fib::framework::{Tables, Time};
use fullview_table::{Address, Family, Prefix};
use rustc_hash::FxHashSet;

use crate::netlink::event::{PROTOCOL_RA, Placement, RouteEntry};
use crate::netlink::uapi;
use crate::route::{
    AnyPrefix, HopSet, LOCAL_TABLE, LinkIndex, MAIN_TABLE, NextHopVia, RouteAction, RouteHop,
};

use super::family::{self, FamilyRoutes, GoneAction, GoneRoute, PlacedRoute};
use super::hop_sets::{HopSets, SetId, SetKey};
use super::host_routes::HostIndices;
use super::links::LinkTable;
use super::rule_list::Coverage;
use super::stored_route::{HopOrder, StoredRoute};

pub(super) struct Routing {
    pub inet: FamilyRoutes<u32>,
    pub inet6: FamilyRoutes<u128>,
    pub sets: HopSets,
    pub tables: Tables,
    /// Links or objects changed: the next hops of all sets have to be determined again.
    pub sets_changed: bool,
}

impl Routing {
    /// The main table exists from the beginning.
    pub fn new(mut tables: Tables) -> Routing {
        tables.create(MAIN_TABLE);
        let mut routing = Routing {
            inet: FamilyRoutes::default(),
            inet6: FamilyRoutes::default(),
            sets: HopSets::default(),
            tables,
            sets_changed: false,
        };
        routing.create(MAIN_TABLE);
        routing
    }

    /// Makes a table that packets may be looked up in.
    pub fn create(&mut self, table: u32) {
        if self.tables.inet.rib(table).is_none() {
            self.tables.create(table);
        }
        self.inet.create(table);
        self.inet6.create(table);
    }

    pub fn add(&mut self, route: RouteEntry, placement: Placement, links: &LinkTable) {
        if route.table != LOCAL_TABLE {
            self.create(route.table);
        }
        let route = if matches!(placement, Placement::First | Placement::Last) {
            self.in_order(route)
        } else {
            route
        };
        let mut stored = stored(&route, |hops| self.sets.acquire(key(&route, hops), links));
        stored.passed_over = placement == Placement::Listed && is_without_links(&route, links);
        match route.prefix {
            AnyPrefix::Inet(prefix) => {
                self.inet.add(placed(&route, prefix, stored), placement, &mut self.sets)
            }
            AnyPrefix::Inet6(prefix) => {
                self.inet6.add(placed(&route, prefix, stored), placement, &mut self.sets)
            }
        }
    }

    /// A route with its hops in the order of the kernel's list, which reports one that joined others before them.
    fn in_order(&self, route: RouteEntry) -> RouteEntry {
        let (AnyPrefix::Inet6(prefix), RouteAction::Forward(HopSet::Hops(hops))) =
            (route.prefix, &route.action)
        else {
            return route;
        };
        if hops.len() == 1 {
            return route;
        }
        let entries = self.inet6.at(route.table, prefix).iter();
        let mut joined = entries.filter(|entry| is_beside(entry, &route) && entry.order.joins());
        let Some(known) = joined.next().and_then(|entry| self.sets.hops(entry.set()?)) else { return route };
        let mut hops = hops.to_vec();
        let place = |hop: &RouteHop| known.iter().position(|known| family::holds(&[*known], hop));
        hops.sort_by_cached_key(|hop| place(hop).unwrap_or(known.len()));
        RouteEntry { action: RouteAction::via(hops), ..route }
    }

    /// Returns whether the route was there.
    pub fn remove(&mut self, route: &RouteEntry, links: &LinkTable) -> bool {
        let hops = match &route.action {
            RouteAction::Forward(HopSet::Hops(hops)) => Some(&**hops),
            _ => None,
        };
        let is_known = match hops {
            Some(hops) => self.remove_stored(route, GoneAction::Hops(hops), links),
            None => {
                let acquire = |hops| self.sets.acquire(key(route, hops), links);
                let action = route.action.clone().map(acquire);
                let is_known = self.remove_stored(route, GoneAction::Other(action), links);
                let set = if let RouteAction::Forward(id) = action { Some(id) } else { None };
                set.into_iter().for_each(|id| self.sets.release(id));
                is_known
            }
        };
        if let (false, AnyPrefix::Inet6(prefix), Some(gone)) = (is_known, route.prefix, hops) {
            self.remove_hops(route, prefix, gone, links);
        }
        is_known
    }

    fn remove_stored(&mut self, route: &RouteEntry, does: GoneAction<'_>, links: &LinkTable) -> bool {
        let sets = &mut self.sets;
        match route.prefix {
            AnyPrefix::Inet(prefix) => self.inet.remove(&gone(route, prefix, does), links, sets),
            AnyPrefix::Inet6(prefix) => self.inet6.remove(&gone(route, prefix, does), links, sets),
        }
    }

    /// One IPv6 hop of several was removed: the others stay.
    fn remove_hops(
        &mut self,
        route: &RouteEntry,
        prefix: Prefix<u128>,
        gone: &[RouteHop],
        links: &LinkTable,
    ) {
        let entries = self.inet6.at(route.table, prefix).to_vec();
        for entry in entries.iter().filter(|entry| is_beside(entry, route)) {
            let Some(hops) = entry.set().and_then(|id| self.sets.hops(id)) else { continue };
            let left: Vec<_> = hops.iter().filter(|hop| !family::holds(gone, hop)).copied().collect();
            if left.len() == hops.len() || left.is_empty() {
                continue;
            }
            let is_gone = |place: &usize| family::holds(gone, &hops[*place]);
            let places: Vec<usize> = (0..hops.len()).filter(is_gone).collect();
            let route = RouteEntry { action: RouteAction::via(left), ..route.clone() };
            let stored = stored(&route, |hops| self.sets.acquire(key(&route, hops), links));
            self.inet6.shrink(placed(&route, prefix, stored), entry, &places, &mut self.sets);
        }
    }

    /// Removes the routes of which every hop leaves by this link, or is dead for another reason.
    pub fn remove_routes_by(&mut self, link: LinkIndex, links: &LinkTable) {
        self.remove_inet_routes_by(link, links);
        self.inet6.sweep_visible(&mut self.sets, |route, sets| is_dead_with(route, link, sets, links));
    }

    pub fn remove_inet_routes_by(&mut self, link: LinkIndex, links: &LinkTable) {
        self.inet.sweep(&mut self.sets, |route, sets| is_dead_with(route, link, sets, links));
    }

    /// Removes the routes that the kernel removes with a link: those of IPv4 with any hop by it (`fib_sync_down_dev` in
    /// net/ipv4/fib_semantics.c), and those of IPv6 with no other hops, none of which it passes over.
    pub fn remove_all_routes_by(&mut self, link: LinkIndex) {
        let by = self.sets.by(link);
        if by.is_empty() {
            return;
        }
        let is_by = |route: &StoredRoute| route.set().is_some_and(|id| by.contains(&id));
        let is_only_by = |route: &StoredRoute, sets: &HopSets| {
            let hops = route.set().and_then(|id| sets.hops(id)).unwrap_or_default();
            is_by(route) && hops.iter().all(|hop| hop.link == link)
        };
        self.inet.sweep(&mut self.sets, |route, _| is_by(route));
        self.inet6.sweep(&mut self.sets, is_only_by);
    }

    /// Removes next-hop objects; returns whether any was known. The kernel removes their routes with them, and does not always
    /// report that. A group loses the member, and is removed with its last.
    pub fn remove_objects(&mut self, objects: impl IntoIterator<Item = u32>) -> bool {
        let gone: FxHashSet<u32> =
            objects.into_iter().filter_map(|id| self.sets.remove_object(id)).flatten().collect();
        self.sets_changed |= !gone.is_empty();
        self.remove_family_of(Family::Inet, &gone);
        self.remove_family_of(Family::Inet6, &gone);
        !gone.is_empty()
    }

    /// Removes the routes of a family by these next-hop objects. Daemons remove objects after their routes, and many at once:
    /// these are not looked for among a million routes.
    pub fn remove_family_of(&mut self, family: Family, objects: &FxHashSet<u32>) {
        if !self.sets.uses_any(family, objects) {
            return;
        }
        let is_gone = |route: &StoredRoute, sets: &HopSets| {
            route.set().and_then(|set| sets.object(set)).is_some_and(|id| objects.contains(&id))
        };
        match family {
            Family::Inet => self.inet.sweep(&mut self.sets, is_gone),
            Family::Inet6 => self.inet6.sweep(&mut self.sets, is_gone),
        };
    }

    /// Gives a neighbour a host route in the tables that have its network.
    pub fn add_host(&mut self, link: LinkIndex, address: IpAddr) {
        let Some(indices) = self.host_indices(NextHopVia { link, neighbor: Some(address) }) else {
            // The kernel continues to forward to this neighbour.
            return;
        };
        let before = match address {
            IpAddr::V4(ip) => self.inet.hosts.add(ip.to_bits(), link, indices),
            IpAddr::V6(ip) => self.inet6.hosts.add(ip.to_bits(), link, indices),
        };
        self.release(before);
    }

    /// `None` if there is no room for both: none is given out and taken back, which would need a view without it.
    fn host_indices(&mut self, via: NextHopVia<LinkIndex>) -> Option<HostIndices> {
        let (next_hops, via) = (&mut self.sets.next_hops, RouteAction::Forward(via));
        let known = [next_hops.get(via), next_hops.get_default(via)];
        let missing = known.iter().filter(|index| index.is_none()).count();
        if missing > next_hops.room() {
            self.sets.note_lack(missing);
            return None;
        }
        let (below_network, below_default) =
            (next_hops.acquire(via).ok()?, next_hops.acquire_default(via).ok()?);
        Some(HostIndices { below_network, below_default })
    }

    pub fn has_host(&self, link: LinkIndex, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(ip) => self.inet.hosts.has(ip.to_bits(), link),
            IpAddr::V6(ip) => self.inet6.hosts.has(ip.to_bits(), link),
        }
    }

    /// Takes the host routes of a neighbour away, if it has any.
    pub fn remove_host(&mut self, link: LinkIndex, address: IpAddr) {
        let indices = match address {
            IpAddr::V4(ip) => self.inet.hosts.remove(ip.to_bits(), link),
            IpAddr::V6(ip) => self.inet6.hosts.remove(ip.to_bits(), link),
        };
        self.release(indices);
    }

    fn release(&mut self, indices: Option<HostIndices>) {
        let Some(HostIndices { below_network, below_default }) = indices else { return };
        self.sets.next_hops.release(below_network);
        self.sets.next_hops.release(below_default);
    }

    /// Determines the next hops of all sets again, if links or objects changed; returns whether that was so.
    pub fn refresh(&mut self, links: &LinkTable) -> bool {
        let was_due = std::mem::take(&mut self.sets_changed);
        if was_due {
            self.refresh_sets(links);
        }
        was_due
    }

    /// As [`Self::refresh`], whether anything changed or not.
    pub fn refresh_sets(&mut self, links: &LinkTable) {
        let changed = self.sets.refresh_all(links);
        if !changed.is_empty() {
            self.inet.touch_sets(&changed);
            self.inet6.touch_sets(&changed);
        }
    }

    /// Hands changed routes to the tables. Those of `left` keep the routes that are gone until they are left no longer.
    pub fn commit(&mut self, now: Time, left: &BTreeSet<u32>) {
        self.inet.commit(now, left, &mut self.tables.inet, &self.sets);
        self.inet6.commit(now, left, &mut self.tables.inet6, &self.sets);
    }

    /// The tables that do not have all changed routes.
    pub fn lacking_changes(&self) -> BTreeSet<u32> {
        self.inet.lacking_changes().chain(self.inet6.lacking_changes()).collect()
    }

    /// Hands to these tables the routes that there are, at once, so that packets may be looked up in them. Routes that are gone
    /// stay there until [`Self::commit`].
    pub fn commit_present(&mut self, now: Time, tables: &BTreeSet<u32>) {
        self.inet.commit_present(now, tables, &mut self.tables.inet, &self.sets);
        self.inet6.commit_present(now, tables, &mut self.tables.inet6, &self.sets);
    }

    /// Removes the tables without routes, except those that packets are looked up in. Returns their numbers.
    pub fn release_tables(&mut self, used: &BTreeSet<u32>) -> Vec<u32> {
        let is_used = |table: u32| table == MAIN_TABLE || used.contains(&table);
        let is_empty = |table: u32| self.inet.is_empty(table) && self.inet6.is_empty(table);
        let unused: Vec<u32> =
            self.inet.tables().filter(|table| !is_used(*table) && is_empty(*table)).collect();
        for table in &unused {
            self.inet.forget(*table);
            self.inet6.forget(*table);
            // Each of them was made in both families.
            let _ = self.tables.remove(*table);
        }
        unused
    }

    /// How much of the address space a table has routes for, by the routes that are to be handed to it.
    pub fn coverage(&self, family: Family, table: u32) -> Coverage {
        match family {
            Family::Inet => self.inet.coverage(table, &self.sets),
            Family::Inet6 => self.inet6.coverage(table, &self.sets),
        }
    }

    /// The addresses of this host in the table `local` and in these.
    pub fn local_addresses(&self, tables: &BTreeSet<u32>) -> HashSet<IpAddr> {
        let inet = self.inet.own_addresses(tables).map(|address| IpAddr::V4(address.to_ip()));
        let inet6 = self.inet6.own_addresses(tables).map(|address| IpAddr::V6(address.to_ip()));
        inet.chain(inet6).collect()
    }

    /// How often the addresses of this host in any table changed.
    pub fn local_changes(&self) -> u64 {
        self.inet.own_changes() + self.inet6.own_changes()
    }
}

fn is_dead_with(route: &StoredRoute, link: LinkIndex, sets: &HopSets, links: &LinkTable) -> bool {
    let hops = route.set().and_then(|id| sets.hops(id)).unwrap_or_default();
    let is_dead = |hop: &RouteHop| hop.link == link || hop.dead || links.is_down(hop.link);
    hops.iter().any(|hop| hop.link == link) && hops.iter().all(is_dead)
}

fn is_beside(entry: &StoredRoute, route: &RouteEntry) -> bool {
    (entry.metric, entry.selective) == (route.metric, route.selective)
}

fn key(route: &RouteEntry, hops: HopSet) -> SetKey {
    let (family, is_default) = match route.prefix {
        AnyPrefix::Inet(prefix) => (Family::Inet, prefix.len() == 0),
        AnyPrefix::Inet6(prefix) => (Family::Inet6, prefix.len() == 0),
    };
    SetKey { hops, family, is_default }
}

fn stored(route: &RouteEntry, acquire: impl FnOnce(HopSet) -> SetId) -> StoredRoute {
    let RouteEntry { metric, selective, origin, .. } = *route;
    let (action, order) = (route.action.clone().map(acquire), order(route));
    StoredRoute { metric, action, selective, origin, order, may_hide: false, passed_over: false, dump: 0 }
}

/// Whether the links of an IPv6 route are down: the kernel has no such routes but those that it passed over.
fn is_without_links(route: &RouteEntry, links: &LinkTable) -> bool {
    let RouteAction::Forward(HopSet::Hops(hops)) = &route.action else { return false };
    let is_inet6 = matches!(route.prefix, AnyPrefix::Inet6(_));
    is_inet6 && hops.iter().all(|hop| links.is_down(hop.link))
}

fn order(route: &RouteEntry) -> HopOrder {
    let is_inet6 = matches!(route.prefix, AnyPrefix::Inet6(_));
    match &route.action {
        RouteAction::Forward(HopSet::Hops(hops))
            if is_inet6
                && (hops.len() > 1 || route.protocol != PROTOCOL_RA)
                && hops.iter().all(|hop| hop.gateway.is_some()) =>
        {
            HopOrder::hops(hops.len())
        }
        _ => HopOrder::Behind(0),
    }
}

fn placed<A: Address>(route: &RouteEntry, prefix: Prefix<A>, stored: StoredRoute) -> PlacedRoute<A> {
    PlacedRoute { table: route.table, prefix, route: stored, at_once: is_urgent(route) }
}

fn gone<'h, A: Address>(route: &RouteEntry, prefix: Prefix<A>, does: GoneAction<'h>) -> GoneRoute<'h, A> {
    let RouteEntry { table, metric, selective, origin, .. } = *route;
    GoneRoute { table, prefix, metric, selective, origin, does, at_once: is_urgent(route) }
}

/// Routes of interfaces and static routes do not wait for others.
fn is_urgent(route: &RouteEntry) -> bool {
    matches!(route.protocol, uapi::RTPROT_KERNEL | uapi::RTPROT_BOOT | uapi::RTPROT_STATIC)
}
