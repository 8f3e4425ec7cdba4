//! Route lookup as the host stack needs it. A resolver looks up in tables of its own, or in a view that a mirror keeps;
//! the host stack notifies it when a neighbour is resolved or lost.

use std::net::IpAddr;
use std::time::Duration;

use fullview_table::NextHop;
use fullview_table::nexthop::TooManyNextHops;

use super::neighbor::NeighborId;
use crate::route::{NextHopVia, RouteAction};
use fullview_plane::forward::WayOut;
use fullview_plane::wire::ethernet::Mac;

/// What the router does with packets, where a next hop is named by the number of its interface.
pub type HostAction = RouteAction<NextHopVia<u16>>;

/// Forwards to a neighbour whose address is known: a gateway, or a neighbour that has a route of its own.
pub(super) fn through(neighbor: NeighborId) -> HostAction {
    let NeighborId { interface, ip } = neighbor;
    RouteAction::Forward(NextHopVia { link: interface, neighbor: Some(ip) })
}

/// Forwards to the destinations themselves, which are on the link.
pub(super) fn on_link(interface: u16) -> HostAction {
    RouteAction::Forward(NextHopVia { link: interface, neighbor: None })
}

/// The neighbour that receives packets to this destination; `None` if they do not leave the router.
pub(super) fn neighbor(action: HostAction, destination: IpAddr) -> Option<NeighborId> {
    let RouteAction::Forward(NextHopVia { link, neighbor }) = action else { return None };
    Some(NeighborId { interface: link, ip: neighbor.unwrap_or(destination) })
}

#[derive(Clone, Copy, Debug)]
pub struct RouteQuery<'a> {
    /// The interface whose table is used.
    pub interface: u16,
    pub destination: IpAddr,
    /// The IP packet to send, whose flow picks the member of a next-hop group; empty if there is none yet.
    pub packet: &'a [u8],
    /// By which interfaces it may leave: of a group the member is one that leads there, if there is any.
    pub way: WayOut,
}

pub trait NextHopResolver {
    /// Looks an address up. `None` means that there is no route.
    fn lookup(&self, query: RouteQuery<'_>) -> Option<HostAction>;

    /// What a next-hop index of the forwarding loop stands for.
    fn action(&self, index: NextHop) -> Option<HostAction>;

    /// A neighbour's link address is known, or has changed.
    ///
    /// # Errors
    /// If next-hop indices have run out. The loop then punts the neighbour's packets one by one.
    fn neighbor_resolved(
        &mut self,
        now: Duration,
        neighbor: NeighborId,
        mac: Mac,
    ) -> Result<(), TooManyNextHops>;

    /// A neighbour's link address is no longer known.
    fn neighbor_lost(&mut self, now: Duration, neighbor: NeighborId);

    /// Does the work that is due.
    fn tick(&mut self, now: Duration);

    /// When [`NextHopResolver::tick`] has work to do.
    fn next_deadline(&self) -> Option<Duration>;
}
