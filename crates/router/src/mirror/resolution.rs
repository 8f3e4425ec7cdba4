//! Where a destination's packets are sent by link and address, and which neighbours have to be resolved or verified for
//! that.

use std::collections::BTreeSet;
use std::net::IpAddr;

use fullview_plane::wire::ethernet::Mac;
use fullview_table::{Address, NextHop};

use crate::route::{LinkIndex, RouteAction};

use super::links::LinkTable;
use super::neighbors::NeighborTable;
use super::routing::Routing;

/// A usable neighbour that the kernel would verify if it sent a packet to it itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaleNeighbor {
    /// The link that it is on.
    pub link: LinkIndex,
    /// The interface that this link is.
    pub interface: u16,
    /// Its IP address.
    pub address: IpAddr,
    /// Its Ethernet address.
    pub mac: Mac,
}

/// The stale neighbours on ports.
pub(super) fn stale(neighbors: &NeighborTable, links: &LinkTable) -> Vec<StaleNeighbor> {
    let stale = |(link, address, mac): (LinkIndex, IpAddr, Mac)| {
        let interface = links.number(link)?;
        Some(StaleNeighbor { link, interface, address, mac })
    };
    neighbors.stale().filter_map(stale).collect()
}

/// The first neighbour without a MAC address that a packet to `destination` needs, if it is looked up in one of these
/// tables.
pub(super) fn missing(
    routing: &Routing,
    neighbors: &NeighborTable,
    tables: Vec<u32>,
    destination: IpAddr,
) -> Option<(LinkIndex, IpAddr)> {
    let mut stations = tables.into_iter().flat_map(|table| stations(routing, table, destination));
    stations.find(|(link, address)| neighbors.get(*link, *address).is_none())
}

/// The gateways among several next hops that have no MAC address. The kernel gets the packets for such a one, and chooses among
/// all of them by a hash of its own: it need not ever ask for this one.
pub(super) fn missing_gateways(
    routing: &Routing,
    neighbors: &NeighborTable,
) -> BTreeSet<(LinkIndex, IpAddr)> {
    let gateway = |next_hop: NextHop| match routing.sets.next_hops.action(next_hop)? {
        RouteAction::Forward(via) => Some((via.link, via.neighbor?)),
        _ => None,
    };
    let gateways = routing.sets.members_of_several().filter_map(gateway);
    gateways.filter(|(link, address)| neighbors.get(*link, *address).is_none()).collect()
}

/// The stations that packets to `destination` may be sent to, by the RIB of a kernel table: gateways, or the
/// destination itself.
pub(super) fn stations(routing: &Routing, table: u32, destination: IpAddr) -> Vec<(LinkIndex, IpAddr)> {
    let Some(next_hop) = longest_match(routing, table, destination) else { return Vec::new() };
    let members = routing.sets.groups.members(next_hop);
    let next_hops =
        members.map_or(vec![next_hop], |members| members.iter().map(|member| member.next_hop).collect());
    let station = |next_hop: NextHop| match routing.sets.next_hops.action(next_hop)? {
        RouteAction::Forward(via) => Some((via.link, via.neighbor.unwrap_or(destination))),
        _ => None,
    };
    next_hops.into_iter().filter_map(station).collect()
}

fn longest_match(routing: &Routing, table: u32, destination: IpAddr) -> Option<NextHop> {
    let tables = &routing.tables;
    match destination {
        IpAddr::V4(ip) => Some(tables.inet.rib(table)?.longest_match(u32::from_ip(ip))?.next_hop),
        IpAddr::V6(ip) => Some(tables.inet6.rib(table)?.longest_match(u128::from_ip(ip))?.next_hop),
    }
}
