//! The resolver of a host stack whose tables a mirror keeps: it looks routes up in the mirror's view, and records what
//! became of neighbours for the mirror to apply.

use std::iter::once;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use fullview_table::NextHop;
use fullview_table::nexthop::TooManyNextHops;

use super::neighbor::NeighborId;
use super::next_hop::{HostAction, NextHopResolver, RouteQuery};
use crate::route::{NextHopVia, RouteAction};
use fullview_plane::forward::{WayOut, flow_hash_of};
use fullview_plane::view::View;
use fullview_plane::wire::ethernet::Mac;

/// What became of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeighborChange {
    Resolved(NeighborId, Mac),
    Lost(NeighborId),
}

pub struct ViewResolver {
    view: Arc<View>,
    /// By next-hop index.
    actions: Vec<Option<HostAction>>,
    changes: Vec<NeighborChange>,
}

impl ViewResolver {
    pub fn new(view: Arc<View>, actions: Vec<Option<HostAction>>) -> ViewResolver {
        ViewResolver { view, actions, changes: Vec::new() }
    }

    /// Replaces the view and what its next-hop indices stand for.
    pub(super) fn follow(&mut self, view: Arc<View>, actions: Vec<Option<HostAction>>) {
        (self.view, self.actions) = (view, actions);
    }

    pub fn view(&self) -> &Arc<View> {
        &self.view
    }

    /// Takes the changes since the last call, in their order.
    pub(super) fn take_changes(&mut self) -> Vec<NeighborChange> {
        std::mem::take(&mut self.changes)
    }

    /// The next hop of a packet; of a group the member that the forwarding loop picks for the same flow.
    fn index(&self, query: RouteQuery<'_>) -> Option<NextHop> {
        let parts = self.view.parts();
        let table = parts.tables.get(usize::from(self.view.interface(query.interface)?.table))?;
        let index = match query.destination {
            IpAddr::V4(to) => table.inet.with(|fib| fib.lookup(to.to_bits())),
            IpAddr::V6(to) => table.inet6.with(|fib| fib.lookup(to.to_bits())),
        };
        let groups = parts.groups.current();
        if !groups.is_group(index) {
            return Some(index);
        }
        let chosen = groups.select(index, flow_hash_of(query.packet, parts.policy.flow_hash).unwrap_or(0));
        // The loop chose before the packet was translated.
        let others = groups.members(index).iter().copied();
        Some(once(chosen).chain(others).find(|member| self.leads(*member, query.way)).unwrap_or(chosen))
    }

    fn leads(&self, member: NextHop, way: WayOut) -> bool {
        let via = self.action(member);
        matches!(via, Some(RouteAction::Forward(NextHopVia { link, .. })) if way.includes(link))
    }
}

impl NextHopResolver for ViewResolver {
    fn lookup(&self, query: RouteQuery<'_>) -> Option<HostAction> {
        self.action(self.index(query)?)
    }

    fn action(&self, index: NextHop) -> Option<HostAction> {
        *self.actions.get(index.index())?
    }

    fn neighbor_resolved(
        &mut self,
        _now: Duration,
        neighbor: NeighborId,
        mac: Mac,
    ) -> Result<(), TooManyNextHops> {
        self.changes.push(NeighborChange::Resolved(neighbor, mac));
        Ok(())
    }

    fn neighbor_lost(&mut self, _now: Duration, neighbor: NeighborId) {
        self.changes.push(NeighborChange::Lost(neighbor));
    }

    fn tick(&mut self, _now: Duration) {}

    fn next_deadline(&self) -> Option<Duration> {
        None
    }
}
