//! The neighbours that frames may be sent to.

use std::net::IpAddr;

use fullview_plane::wire::ethernet::Mac;
use rustc_hash::FxHashMap;

use crate::netlink::event::LinkNeighbor;
use crate::route::LinkIndex;

/// What is known about a usable neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KernelNeighbor {
    pub mac: Mac,
    pub is_stale: bool,
    /// Whether the last dump listed it.
    seen: bool,
}

/// The usable neighbours.
#[derive(Default)]
pub(super) struct NeighborTable(FxHashMap<(LinkIndex, IpAddr), KernelNeighbor>);

/// The effect of an event on the table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NeighborUpdate {
    Unchanged,
    Added,
    Removed,
    /// Its Ethernet address changed.
    Moved,
}

impl NeighborTable {
    /// Stores a neighbour, or removes it if it cannot be used.
    pub fn set(&mut self, neighbor: &LinkNeighbor) -> NeighborUpdate {
        let key = (neighbor.link, neighbor.address);
        let mac = neighbor.mac.filter(|_| neighbor.state.is_usable());
        let Some(mac) = mac else { return self.remove(key) };
        let known = KernelNeighbor { mac, is_stale: neighbor.state.is_stale(), seen: true };
        match self.0.insert(key, known) {
            None => NeighborUpdate::Added,
            Some(before) if before.mac != mac => NeighborUpdate::Moved,
            Some(_) => NeighborUpdate::Unchanged,
        }
    }

    pub fn remove(&mut self, key: (LinkIndex, IpAddr)) -> NeighborUpdate {
        if self.0.remove(&key).is_some() { NeighborUpdate::Removed } else { NeighborUpdate::Unchanged }
    }

    pub fn get(&self, link: LinkIndex, address: IpAddr) -> Option<&KernelNeighbor> {
        self.0.get(&(link, address))
    }

    /// Begins a dump.
    pub fn mark(&mut self) {
        self.0.values_mut().for_each(|known| known.seen = false);
    }

    /// The neighbours that the dump did not list.
    pub fn unseen(&self) -> Vec<(LinkIndex, IpAddr)> {
        self.0.iter().filter(|(_, known)| !known.seen).map(|(key, _)| *key).collect()
    }

    /// Their keys, in no order.
    pub fn keys(&self) -> impl Iterator<Item = (LinkIndex, IpAddr)> + '_ {
        self.0.keys().copied()
    }

    /// Those that the kernel would verify before it relied on them.
    pub fn stale(&self) -> impl Iterator<Item = (LinkIndex, IpAddr, Mac)> + '_ {
        let stale = self.0.iter().filter(|(_, known)| known.is_stale);
        stale.map(|((link, address), known)| (*link, *address, known.mac))
    }

    /// Their keys, collected.
    pub fn all(&self) -> Vec<(LinkIndex, IpAddr)> {
        self.keys().collect()
    }

    /// The addresses of those on a link.
    pub fn on(&self, link: LinkIndex) -> Vec<IpAddr> {
        self.0.keys().filter(|(on, _)| *on == link).map(|(_, address)| *address).collect()
    }
}
