//! Neighbours, and the host routes of those that a connected network leads to.
//!
//! A connected network is one next hop that nobody has a MAC address for. Each of its stations that is resolved has a
//! route of its own, as long as the network's route is the one that would lead to it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fullview_table::fib::framework::{FamilyTables, Origin, Time};
use fullview_table::{Address, Change, NextHop, Prefix};
use rustc_hash::FxHashMap;

use crate::netlink::event::LinkNeighbor;
use crate::route::{LinkIndex, NextHopVia, RouteAction};
use fullview_plane::wire::ethernet::Mac;

use super::family::HostKey;
use super::indices::Indices;

/// What is known about a neighbour that may be sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub mac: Mac,
    pub is_stale: bool,
    seen: bool,
}

/// The neighbours that may be sent to.
#[derive(Default)]
pub(super) struct Neighbors(FxHashMap<(LinkIndex, IpAddr), Known>);

/// What became of a neighbour.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Nothing,
    Came,
    Went,
    /// Its address is another one now.
    Changed,
}

impl Neighbors {
    pub fn set(&mut self, neighbor: &LinkNeighbor) -> Turn {
        let key = (neighbor.link, neighbor.address);
        let mac = neighbor.mac.filter(|_| neighbor.state.is_usable());
        let Some(mac) = mac else { return self.remove(key) };
        let known = Known { mac, is_stale: neighbor.state.is_stale(), seen: true };
        match self.0.insert(key, known) {
            None => Turn::Came,
            Some(before) if before.mac != mac => Turn::Changed,
            Some(_) => Turn::Nothing,
        }
    }

    pub fn remove(&mut self, key: (LinkIndex, IpAddr)) -> Turn {
        if self.0.remove(&key).is_some() { Turn::Went } else { Turn::Nothing }
    }

    pub fn get(&self, link: LinkIndex, address: IpAddr) -> Option<&Known> {
        self.0.get(&(link, address))
    }

    /// Before a dump.
    pub fn mark(&mut self) {
        self.0.values_mut().for_each(|known| known.seen = false);
    }

    /// After a dump: those it did not mention.
    pub fn unseen(&self) -> Vec<(LinkIndex, IpAddr)> {
        self.0.iter().filter(|(_, known)| !known.seen).map(|(key, _)| *key).collect()
    }

    /// All of them.
    pub fn keys(&self) -> impl Iterator<Item = (LinkIndex, IpAddr)> + '_ {
        self.0.keys().copied()
    }

    /// Those in doubt.
    pub fn stale(&self) -> impl Iterator<Item = (LinkIndex, IpAddr, Mac)> + '_ {
        let stale = self.0.iter().filter(|(_, known)| known.is_stale);
        stale.map(|((link, address), known)| (*link, *address, known.mac))
    }

    /// All of them.
    pub fn all(&self) -> Vec<(LinkIndex, IpAddr)> {
        self.0.keys().copied().collect()
    }

    /// Those on a link.
    pub fn on(&self, link: LinkIndex) -> Vec<IpAddr> {
        self.0.keys().filter(|(on, _)| *on == link).map(|(_, address)| *address).collect()
    }
}

/// The host routes of one family.
pub(super) struct Hosts<A: Address> {
    /// Neighbours that may be sent to, each with the table that packets to it are looked up in.
    all: BTreeMap<HostKey<A>, Host>,
    /// Neighbours to look at again.
    dirty: BTreeSet<HostKey<A>>,
    /// Host routes of neighbours that are gone, by table.
    gone: Vec<(u32, A)>,
}

#[derive(Clone, Copy)]
struct Host {
    table: u32,
    index: NextHop,
    is_placed: bool,
}

impl<A: Address> Default for Hosts<A> {
    fn default() -> Self {
        Hosts { all: BTreeMap::new(), dirty: BTreeSet::new(), gone: Vec::new() }
    }
}

impl<A: Address> Hosts<A> {
    /// A neighbour came, or its link moved to another table: then the index it had is returned.
    pub fn add(&mut self, address: A, link: LinkIndex, table: u32, index: NextHop) -> Option<NextHop> {
        let before = self.remove(address, link);
        self.all.insert((address, link), Host { table, index, is_placed: false });
        self.dirty.insert((address, link));
        before
    }

    /// A neighbour went; its index is returned.
    pub fn remove(&mut self, address: A, link: LinkIndex) -> Option<NextHop> {
        let host = self.all.remove(&(address, link))?;
        self.dirty.remove(&(address, link));
        if host.is_placed {
            self.gone.push((host.table, address));
        }
        Some(host.index)
    }

    /// Whether a neighbour's own route stands in a table at this prefix.
    pub fn is_placed(&self, table: u32, prefix: Prefix<A>) -> bool {
        let at = |address| (address, LinkIndex::MIN)..=(address, LinkIndex::MAX);
        prefix.len() == A::BITS
            && self.all.range(at(prefix.first())).any(|(_, host)| host.is_placed && host.table == table)
    }

    /// A route changed: another one may lead to the neighbours below it now.
    pub fn touch_within(&mut self, table: u32, prefix: Prefix<A>) {
        let range = (prefix.first(), LinkIndex::MIN)..=(prefix.last(), LinkIndex::MAX);
        let within = self.all.range(range).filter(|(_, host)| host.table == table);
        self.dirty.extend(within.map(|(key, _)| *key));
    }

    /// Brings the host routes up to the routes of the tables; `has_own` says where the kernel has a route of its own.
    pub fn commit(
        &mut self,
        now: Time,
        tables: &mut FamilyTables<A>,
        indices: &Indices,
        has_own: impl Fn(u32, Prefix<A>) -> bool,
    ) {
        let mut changes: FxHashMap<u32, Vec<Change<A>>> = FxHashMap::default();
        for (table, address) in std::mem::take(&mut self.gone) {
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
        for (table, changes) in changes {
            // Only tables that have routes lead to neighbours.
            let _ = tables.apply(now, table, &changes, Origin::Protocol);
        }
    }

    /// Whether the route that covers a neighbour is its network's. Where the kernel has a route to this very address
    /// that one stands, and nothing is to be taken away.
    fn decide(
        &mut self,
        key: HostKey<A>,
        tables: &FamilyTables<A>,
        indices: &Indices,
        has_own: &impl Fn(u32, Prefix<A>) -> bool,
    ) -> Option<(u32, Change<A>)> {
        let host = self.all.get_mut(&key)?;
        let (prefix, network) = (
            Prefix::host(key.0),
            indices.get(RouteAction::Forward(NextHopVia { link: key.1, neighbor: None })),
        );
        let covering = tables.rib(host.table)?.covering(prefix).map(|route| route.next_hop);
        let has_own = has_own(host.table, prefix);
        let was_placed = host.is_placed;
        host.is_placed = !has_own && network.is_some() && covering == network;
        let changed = !has_own && host.is_placed != was_placed;
        changed.then_some((host.table, Change { prefix, next_hop: host.is_placed.then_some(host.index) }))
    }
}
