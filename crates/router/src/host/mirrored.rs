//! A host beside tables that somebody else keeps: what it is told when they change.

use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashSet;

use super::HostStack;
use super::advertisers::RouterAdvertisers;
use super::config::{HostSettings, StaticNeighbor};
use super::limit::InterfaceLimiter;
use super::neighbor::NeighborCache;
use super::next_hop::{Hop, Key, NextHopResolver};
use super::output::Output;
use super::view_resolver::{NeighborChange, ViewResolver};
use fullview_plane::interface::{Interface, InterfaceAddress};
use fullview_plane::view::View;
use fullview_plane::wire::ethernet::Mac;

impl HostStack<ViewResolver> {
    /// A host that goes by such a view; what its interfaces are, it is told by [`HostStack::follow`].
    pub fn mirrored(routes: ViewResolver, settings: &HostSettings) -> HostStack<ViewResolver> {
        HostStack {
            interfaces: Vec::new(),
            routes,
            neighbors: NeighborCache::new(0, settings.neighbors.clone()),
            limiter: InterfaceLimiter::new(0, settings.errors_per_interface, settings.errors),
            advertisers: RouterAdvertisers::new(&settings.advertisements),
            identification: 0,
            counters: Default::default(),
        }
    }

    /// The view that it goes by.
    pub fn view(&self) -> &Arc<View> {
        self.routes.view()
    }

    /// Goes by another view and other next hops. Links are told of addresses that were not there before, or all of them
    /// when they come up. By a link that went down nobody can be reached; whoever was not told of for good is asked for
    /// anew later.
    pub fn follow(&mut self, now: Duration, view: Arc<View>, hops: Vec<Option<Hop>>, out: &mut Output) {
        let interfaces = view.parts().interfaces.clone();
        self.limiter.grow(interfaces.len());
        self.neighbors.grow(interfaces.len());
        let before = std::mem::replace(&mut self.interfaces, interfaces);
        self.routes.follow(view, hops);
        let turned = |from: &[Interface], to: &[Interface]| -> FxHashSet<u16> {
            (0..=u16::MAX)
                .take(to.len())
                .filter(|number| !is_up(from, *number) && is_up(to, *number))
                .collect()
        };
        self.lose(now, &turned(&self.interfaces, &before), out);
        self.meet(now, &turned(&before, &self.interfaces));
        self.announce_new(&before, out);
    }

    /// Nobody is on these links any more.
    fn lose(&mut self, now: Duration, down: &FxHashSet<u16>, out: &mut Output) {
        let there = self.neighbors.known().map(|(key, _)| key).filter(|key| down.contains(&key.0));
        there.for_each(|key| self.routes.unknown(now, key));
        for (key, waiting) in self.neighbors.forget_learnt(down) {
            self.give_up_all(now, key, waiting, out);
        }
    }

    /// On these links are the stations that are never asked for.
    fn meet(&mut self, now: Duration, up: &FxHashSet<u16>) {
        for (key, mac) in self.neighbors.known().filter(|(key, _)| up.contains(&key.0)) {
            // Numbers of next hops are the affair of whoever keeps the tables.
            let _ = self.routes.known(now, key, mac);
        }
    }

    fn announce_new(&mut self, before: &[Interface], out: &mut Output) {
        for number in
            (0..=u16::MAX).take(self.interfaces.len()).filter(|number| is_up(&self.interfaces, *number))
        {
            let had: &[InterfaceAddress] = match before.get(usize::from(number)) {
                Some(interface) if interface.up => &interface.addresses,
                _ => &[],
            };
            let own = self.interfaces[usize::from(number)].addresses.iter();
            let new: Vec<_> = own.filter(|own| !had.contains(own)).map(|own| own.ip).collect();
            new.into_iter().for_each(|ip| self.announce_one(number, ip, out));
        }
    }

    /// Knows these stations for good, and none that it was told of so before.
    pub fn set_static_neighbors(&mut self, now: Duration, neighbors: &[StaticNeighbor]) {
        let kept: FxHashSet<Key> =
            neighbors.iter().map(|neighbor| (neighbor.interface, neighbor.ip)).collect();
        for key in self.neighbors.statics().filter(|key| !kept.contains(key)).collect::<Vec<_>>() {
            self.neighbors.remove(key);
            self.routes.unknown(now, key);
        }
        for StaticNeighbor { interface, ip, mac } in neighbors.iter().copied() {
            self.neighbors.set_static((interface, ip), mac);
            if is_up(&self.interfaces, interface) {
                let _ = self.routes.known(now, (interface, ip), mac);
            }
        }
    }

    /// All neighbours that can be reached, in no order.
    pub fn resolved_neighbors(&self) -> impl Iterator<Item = (Key, Mac)> + '_ {
        self.neighbors.known().filter(|(key, _)| is_up(&self.interfaces, key.0))
    }

    /// What has been learnt of neighbours since this was last asked, in its order.
    pub fn take_neighbor_changes(&mut self) -> Vec<NeighborChange> {
        self.routes.take_neighbor_changes()
    }
}

fn is_up(interfaces: &[Interface], number: u16) -> bool {
    interfaces.get(usize::from(number)).is_some_and(|interface| interface.up)
}
