//! The host routes of neighbours on connected networks.
//!
//! A connected network is one next hop without a MAC address. Each of its stations that is resolved has a host route of
//! its own, while the network's route is the one that would lead to it. A default route to a link is such a network too. Tables of
//! rules and VRFs may have a network too; a neighbour has a host route in each table that has its network.

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
    /// Neighbours that may be sent to.
    all: BTreeMap<HostKey<A>, HostRoute>,
    /// Those that no table knows yet.
    added: BTreeSet<HostKey<A>>,
    /// Those whose covering route in a table may have changed.
    dirty: BTreeSet<(u32, HostKey<A>)>,
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

struct HostRoute {
    indices: HostIndices,
    /// The tables that have a host route to it, and which.
    placed: Vec<(u32, NextHop)>,
}

impl HostRoute {
    fn in_table(&self, table: u32) -> Option<NextHop> {
        self.placed.iter().find(|(placed, _)| *placed == table).map(|(_, hop)| *hop)
    }

    fn place(&mut self, table: u32, hop: Option<NextHop>) {
        self.placed.retain(|(placed, _)| *placed != table);
        self.placed.extend(hop.map(|hop| (table, hop)));
    }
}

impl<A: Address> Default for HostRoutes<A> {
    fn default() -> Self {
        HostRoutes {
            all: BTreeMap::new(),
            added: BTreeSet::new(),
            dirty: BTreeSet::new(),
            removed: Vec::new(),
        }
    }
}

impl<A: Address> HostRoutes<A> {
    /// Adds a neighbour. If it was there, the indices that it had are returned.
    pub fn add(&mut self, address: A, link: LinkIndex, indices: HostIndices) -> Option<HostIndices> {
        let before = self.remove(address, link);
        self.all.insert((address, link), HostRoute { indices, placed: Vec::new() });
        self.added.insert((address, link));
        before
    }

    /// Removes a neighbour; its indices are returned.
    pub fn remove(&mut self, address: A, link: LinkIndex) -> Option<HostIndices> {
        let host = self.all.remove(&(address, link))?;
        self.added.remove(&(address, link));
        self.removed.extend(host.placed.iter().map(|(table, _)| (*table, address)));
        Some(host.indices)
    }

    pub fn has(&self, address: A, link: LinkIndex) -> bool {
        self.all.contains_key(&(address, link))
    }

    /// Whether the table has a neighbour's host route at this prefix.
    pub fn is_placed(&self, table: u32, prefix: Prefix<A>) -> bool {
        let at = |address| (address, LinkIndex::MIN)..=(address, LinkIndex::MAX);
        prefix.len() == A::BITS
            && self.all.range(at(prefix.first())).any(|(_, host)| host.in_table(table).is_some())
    }

    /// A route changed: the neighbours below it have to be decided again.
    pub fn touch_within(&mut self, table: u32, prefix: Prefix<A>) {
        let range = (prefix.first(), LinkIndex::MIN)..=(prefix.last(), LinkIndex::MAX);
        self.dirty.extend(self.all.range(range).map(|(key, _)| (table, *key)));
    }

    /// Adapts the host routes to the routes of the tables; `has_own` tells where the kernel has a route to that prefix. `origin`
    /// says whether the tables may follow later.
    pub fn commit(
        &mut self,
        (now, origin): (Time, Origin),
        tables: &mut FamilyTables<A>,
        indices: &NextHopIndices,
        has_own: impl Fn(u32, Prefix<A>) -> bool,
    ) {
        let mut changes: FxHashMap<u32, Vec<Change<A>>> = FxHashMap::default();
        let mut change = |table: u32, change| changes.entry(table).or_default().push(change);
        for (table, address) in std::mem::take(&mut self.removed) {
            let prefix = Prefix::host(address);
            if !has_own(table, prefix) {
                change(table, Change { prefix, next_hop: None });
            }
        }
        for key in std::mem::take(&mut self.added) {
            self.dirty.extend(tables.numbers().map(|table| (table, key)));
        }
        for (table, key) in std::mem::take(&mut self.dirty) {
            let decided = self.decide(table, key, tables, indices, &has_own);
            decided.into_iter().for_each(|decided| change(table, decided));
        }
        hand_over((now, origin), tables, changes);
    }

    /// A neighbour has a host route if the route that covers it is its network's. Where the kernel has a route to this
    /// very address, that route stays, and there is nothing to remove.
    fn decide(
        &mut self,
        table: u32,
        key: HostKey<A>,
        tables: &FamilyTables<A>,
        indices: &NextHopIndices,
        has_own: &impl Fn(u32, Prefix<A>) -> bool,
    ) -> Option<Change<A>> {
        let host = self.all.get_mut(&key)?;
        let prefix = Prefix::host(key.0);
        let network = RouteAction::Forward(NextHopVia { link: key.1, neighbor: None });
        let covering = tables.rib(table)?.covering(prefix).map(|route| route.next_hop);
        let has_own = has_own(table, prefix);
        let before = host.in_table(table);
        let next_hop = match covering.filter(|_| !has_own) {
            Some(hop) if indices.get(network) == Some(hop) => Some(host.indices.below_network),
            Some(hop) if indices.get_default(network) == Some(hop) => Some(host.indices.below_default),
            _ => None,
        };
        host.place(table, next_hop);
        (!has_own && next_hop != before).then_some(Change { prefix, next_hop })
    }
}

fn hand_over<A: Address>(
    (now, origin): (Time, Origin),
    tables: &mut FamilyTables<A>,
    changes: FxHashMap<u32, Vec<Change<A>>>,
) {
    for (table, mut changes) in changes {
        // A neighbour of two links may lose the host route of one and get that of the other.
        changes.sort_by_key(|change| change.next_hop.is_some());
        // Only tables that have routes lead to neighbours.
        let _ = tables.apply(now, table, &changes, origin);
    }
}
