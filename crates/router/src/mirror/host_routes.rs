//! The host routes of neighbours on connected networks.
//!
//! A connected network is one next hop without a MAC address. Each of its stations that is resolved has a host route of
//! its own, while the network's route is the one that would lead to it. A default route to a link is such a network too.

use std::collections::{BTreeMap, BTreeSet};

use fullview_table::fib::framework::{FamilyTables, Origin, Time};
use fullview_table::{Address, Change, NextHop, Prefix};
use rustc_hash::FxHashMap;

use crate::route::{LinkIndex, NextHopVia, RouteAction};

use super::next_hops::NextHopIndices;

/// A neighbour's address and its link.
type HostKey<A> = (A, LinkIndex);

/// The host routes of one family.
pub(super) struct HostRoutes<A: Address> {
    /// Neighbours that may be sent to, each with the table that packets to it are looked up in.
    all: BTreeMap<HostKey<A>, HostRoute>,
    /// Neighbours whose covering route may have changed.
    dirty: BTreeSet<HostKey<A>>,
    /// Host routes to remove, by table.
    removed: Vec<(u32, A)>,
}

/// The indices of a neighbour.
#[derive(Clone, Copy)]
pub(super) struct HostIndices {
    pub below_network: NextHop,
    /// A rule of policy routing that does not count default routes does not count what is below them either.
    pub below_default: NextHop,
}

#[derive(Clone, Copy)]
struct HostRoute {
    table: u32,
    indices: HostIndices,
    placed: Option<NextHop>,
}

impl<A: Address> Default for HostRoutes<A> {
    fn default() -> Self {
        HostRoutes { all: BTreeMap::new(), dirty: BTreeSet::new(), removed: Vec::new() }
    }
}

impl<A: Address> HostRoutes<A> {
    /// Adds a neighbour. If its link moved to another table, the indices that it had are returned.
    pub fn add(
        &mut self,
        address: A,
        link: LinkIndex,
        table: u32,
        indices: HostIndices,
    ) -> Option<HostIndices> {
        let before = self.remove(address, link);
        self.all.insert((address, link), HostRoute { table, indices, placed: None });
        self.dirty.insert((address, link));
        before
    }

    /// Removes a neighbour; its indices are returned.
    pub fn remove(&mut self, address: A, link: LinkIndex) -> Option<HostIndices> {
        let host = self.all.remove(&(address, link))?;
        self.dirty.remove(&(address, link));
        if host.placed.is_some() {
            self.removed.push((host.table, address));
        }
        Some(host.indices)
    }

    /// Whether the table has a neighbour's host route at this prefix.
    pub fn is_placed(&self, table: u32, prefix: Prefix<A>) -> bool {
        let at = |address| (address, LinkIndex::MIN)..=(address, LinkIndex::MAX);
        prefix.len() == A::BITS
            && self
                .all
                .range(at(prefix.first()))
                .any(|(_, host)| host.placed.is_some() && host.table == table)
    }

    /// A route changed: the neighbours below it have to be decided again.
    pub fn touch_within(&mut self, table: u32, prefix: Prefix<A>) {
        let range = (prefix.first(), LinkIndex::MIN)..=(prefix.last(), LinkIndex::MAX);
        let within = self.all.range(range).filter(|(_, host)| host.table == table);
        self.dirty.extend(within.map(|(key, _)| *key));
    }

    /// Adapts the host routes to the routes of the tables; `has_own` tells where the kernel has a route to that prefix.
    pub fn commit(
        &mut self,
        now: Time,
        tables: &mut FamilyTables<A>,
        indices: &NextHopIndices,
        has_own: impl Fn(u32, Prefix<A>) -> bool,
    ) {
        let mut changes: FxHashMap<u32, Vec<Change<A>>> = FxHashMap::default();
        for (table, address) in std::mem::take(&mut self.removed) {
            let prefix = Prefix::host(address);
            if !has_own(table, prefix) {
                changes.entry(table).or_default().push(Change { prefix, next_hop: None });
            }
        }
        for key in std::mem::take(&mut self.dirty) {
            if let Some((table, change)) = self.decide(key, tables, indices, &has_own) {
                changes.entry(table).or_default().push(change);
            }
        }
        for (table, mut changes) in changes {
            // A neighbour of two links may lose the host route of one and get that of the other.
            changes.sort_by_key(|change| change.next_hop.is_some());
            // Only tables that have routes lead to neighbours.
            let _ = tables.apply(now, table, &changes, Origin::Protocol);
        }
    }

    /// A neighbour has a host route if the route that covers it is its network's. Where the kernel has a route to this
    /// very address, that route stays, and there is nothing to remove.
    fn decide(
        &mut self,
        key: HostKey<A>,
        tables: &FamilyTables<A>,
        indices: &NextHopIndices,
        has_own: &impl Fn(u32, Prefix<A>) -> bool,
    ) -> Option<(u32, Change<A>)> {
        let host = self.all.get_mut(&key)?;
        let prefix = Prefix::host(key.0);
        let network = RouteAction::Forward(NextHopVia { link: key.1, neighbor: None });
        let covering = tables.rib(host.table)?.covering(prefix).map(|route| route.next_hop);
        let has_own = has_own(host.table, prefix);
        let before = host.placed;
        host.placed = match covering.filter(|_| !has_own) {
            Some(hop) if indices.get(network) == Some(hop) => Some(host.indices.below_network),
            Some(hop) if indices.get_default(network) == Some(hop) => Some(host.indices.below_default),
            _ => None,
        };
        let changed = !has_own && host.placed != before;
        changed.then_some((host.table, Change { prefix, next_hop: host.placed }))
    }
}
