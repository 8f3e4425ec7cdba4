//! The ways of a host whose tables somebody else keeps: it goes by their view, and notes what it learns of neighbours
//! for them to take in.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use fullview_table::NextHop;
use fullview_table::nexthop::TooManyNextHops;

use super::next_hop::{Hop, Key, NextHopResolver, RouteQuery};
use fullview_plane::forward::flow_hash_of;
use fullview_plane::view::View;
use fullview_plane::wire::ethernet::Mac;

/// What became of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeighborChange {
    /// It has this link address.
    Resolved(Key, Mac),
    /// Nothing is known about it any more.
    Lost(Key),
}

/// A view, and what its next hops are.
pub struct ViewResolver {
    view: Arc<View>,
    /// By number.
    hops: Vec<Option<Hop>>,
    news: Vec<NeighborChange>,
}

impl ViewResolver {
    /// By this view.
    pub fn new(view: Arc<View>, hops: Vec<Option<Hop>>) -> ViewResolver {
        ViewResolver { view, hops, news: Vec::new() }
    }

    /// Another view from now on.
    pub(super) fn follow(&mut self, view: Arc<View>, hops: Vec<Option<Hop>>) {
        (self.view, self.hops) = (view, hops);
    }

    /// The view it goes by.
    pub fn view(&self) -> &Arc<View> {
        &self.view
    }

    /// What has been learnt since this was last asked, in its order.
    pub(super) fn take_neighbor_changes(&mut self) -> Vec<NeighborChange> {
        std::mem::take(&mut self.news)
    }

    /// Of a group the member that the forwarding loop picks for the same flow.
    fn number(&self, wanted: RouteQuery<'_>) -> Option<NextHop> {
        let parts = self.view.parts();
        let table = parts.tables.get(usize::from(self.view.interface(wanted.interface)?.table))?;
        let number = match wanted.to {
            IpAddr::V4(to) => table.inet.with(|fib| fib.lookup(to.to_bits())),
            IpAddr::V6(to) => table.inet6.with(|fib| fib.lookup(to.to_bits())),
        };
        let groups = parts.groups.current();
        let hash = || flow_hash_of(wanted.packet, parts.policy.flow_seed).unwrap_or(0);
        Some(if groups.is_group(number) { groups.select(number, hash()) } else { number })
    }
}

impl NextHopResolver for ViewResolver {
    fn find(&self, wanted: RouteQuery<'_>) -> Option<Hop> {
        self.hop(self.number(wanted)?)
    }

    fn hop(&self, number: NextHop) -> Option<Hop> {
        *self.hops.get(number.index())?
    }

    fn known(&mut self, _now: Duration, neighbor: Key, mac: Mac) -> Result<(), TooManyNextHops> {
        self.news.push(NeighborChange::Resolved(neighbor, mac));
        Ok(())
    }

    fn unknown(&mut self, _now: Duration, neighbor: Key) {
        self.news.push(NeighborChange::Lost(neighbor));
    }

    fn tick(&mut self, _now: Duration) {}

    fn next_deadline(&self) -> Option<Duration> {
        None
    }
}
