//! A host beside tables that somebody else keeps: what it is told when they change.

use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashSet;

use super::Host;
use super::advertise::Advertisers;
use super::config::{Settings, StaticNeighbor};
use super::guide::{Guide, News};
use super::limit::Limiter;
use super::neighbor::Neighbors;
use super::output::Output;
use super::ways::{Hop, Key, Ways};
use crate::interface::{Interface, InterfaceAddress};
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

    /// Goes by another view and other next hops. Links are told of addresses that were not there before, or all of them
    /// when they come up. By a link that went down nobody can be reached; whoever is there later is asked for anew.
    pub fn follow(&mut self, now: Duration, view: Arc<View>, hops: Vec<Option<Hop>>, out: &mut Output) {
        let interfaces = view.parts().interfaces.clone();
        self.limiter.grow(interfaces.len());
        self.neighbors.grow(interfaces.len());
        let before = std::mem::replace(&mut self.interfaces, interfaces);
        self.routes.follow(view, hops);
        for number in 0..self.interfaces.len() as u16 {
            match (is_up(&before, number), is_up(&self.interfaces, number)) {
                (true, false) => self.lose(now, number),
                (false, true) => self.find_statics(now, number),
                _ => {}
            }
        }
        let had = |number: usize, own: &InterfaceAddress| {
            before.get(number).is_some_and(|interface| interface.up && interface.addresses.contains(own))
        };
        for number in 0..self.interfaces.len() {
            let addresses = self.interfaces[number].addresses.clone();
            let new = addresses.into_iter().filter(|own| !had(number, own));
            new.for_each(|own| self.announce_one(number as u16, own.ip, out));
        }
    }

    fn lose(&mut self, now: Duration, interface: u16) {
        let here = self.neighbors.known().map(|(key, _)| key).filter(|key| key.0 == interface);
        here.for_each(|key| self.routes.unknown(now, key));
        self.neighbors.forget_learnt(interface);
    }

    fn find_statics(&mut self, now: Duration, interface: u16) {
        for (key, mac) in self.neighbors.known().filter(|(key, _)| key.0 == interface) {
            // Numbers of next hops are the affair of whoever keeps the tables.
            let _ = self.routes.known(now, key, mac);
        }
    }

    /// Knows these stations for good, and none that it was told of so before.
    pub fn keep(&mut self, now: Duration, neighbors: &[StaticNeighbor]) {
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
    pub fn known(&self) -> impl Iterator<Item = (Key, Mac)> + '_ {
        self.neighbors.known().filter(|(key, _)| is_up(&self.interfaces, key.0))
    }

    /// What has been learnt of neighbours since this was last asked, in its order.
    pub fn take_news(&mut self) -> Vec<News> {
        self.routes.take_news()
    }
}

fn is_up(interfaces: &[Interface], number: u16) -> bool {
    interfaces.get(usize::from(number)).is_some_and(|interface| interface.up)
}
