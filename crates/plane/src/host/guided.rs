//! A host beside tables that somebody else keeps: what it is told when they change.

use std::sync::Arc;
use std::time::Duration;

use super::Host;
use super::advertise::Advertisers;
use super::config::{Settings, StaticNeighbor};
use super::guide::{Guide, News};
use super::limit::Limiter;
use super::neighbor::Neighbors;
use super::output::Output;
use super::ways::{Hop, Key, Ways};
use crate::interface::InterfaceAddress;
use crate::view::View;
use crate::wire::ethernet::Mac;

impl Host<Guide> {
    /// A host that goes by such a view; what its interfaces are, it is told by [`Host::follow`].
    pub fn guided(routes: Guide, settings: &Settings) -> Host<Guide> {
        Host {
            interfaces: Vec::new(),
            routes,
            neighbors: Neighbors::new(0, settings.neighbors.clone()),
            limiter: Limiter::new(0, settings.errors_per_interface, settings.errors),
            advertisers: Advertisers::new(&settings.advertisements),
            identification: 0,
            counters: Default::default(),
        }
    }

    /// The view that it goes by.
    pub fn view(&self) -> &Arc<View> {
        self.routes.view()
    }

    /// Goes by another view and other next hops; links are told of addresses that were not there before.
    pub fn follow(&mut self, view: Arc<View>, hops: Vec<Option<Hop>>, out: &mut Output) {
        let interfaces = view.parts().interfaces.clone();
        self.limiter.grow(interfaces.len());
        self.neighbors.grow(interfaces.len());
        let before = std::mem::replace(&mut self.interfaces, interfaces);
        self.routes.follow(view, hops);
        let had = |number: usize, own: &InterfaceAddress| {
            before.get(number).is_some_and(|interface| interface.addresses.contains(own))
        };
        for number in 0..self.interfaces.len() {
            let addresses = self.interfaces[number].addresses.clone();
            let new = addresses.into_iter().filter(|own| !had(number, own));
            new.for_each(|own| self.announce_one(number as u16, own.ip, out));
        }
    }

    /// Knows these stations for good, and none that it was told of so before.
    pub fn keep(&mut self, now: Duration, neighbors: &[StaticNeighbor]) {
        let kept = |key: &_| neighbors.iter().any(|neighbor| (neighbor.interface, neighbor.ip) == *key);
        for key in self.neighbors.statics().filter(|key| !kept(key)).collect::<Vec<_>>() {
            self.neighbors.remove(key);
            self.routes.unknown(now, key);
        }
        for StaticNeighbor { interface, ip, mac } in neighbors.iter().copied() {
            self.neighbors.set_static((interface, ip), mac);
            // Numbers of next hops are the affair of whoever keeps the tables.
            let _ = self.routes.known(now, (interface, ip), mac);
        }
    }

    /// All neighbours whose link address is known, in no order.
    pub fn known(&self) -> impl Iterator<Item = (Key, Mac)> + '_ {
        self.neighbors.known()
    }

    /// What has been learnt of neighbours since this was last asked, in its order.
    pub fn take_news(&mut self) -> Vec<News> {
        self.routes.take_news()
    }
}
