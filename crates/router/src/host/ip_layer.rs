//! The state that sending needs: interfaces, the route lookup, and the neighbours on the links.

use std::net::IpAddr;

use super::interfaces::Interfaces;
use super::neighbor::{NeighborCache, NeighborId};
use super::next_hop::{self, HostAction, NextHopResolver, RouteQuery};
use fullview_plane::forward::WayOut;

pub(super) struct IpLayer<R> {
    pub interfaces: Interfaces,
    pub resolver: R,
    pub neighbors: NeighborCache,
    /// Neighbours that did not answer.
    pub lost_neighbors: u64,
    last_identification: u16,
}

impl<R: NextHopResolver> IpLayer<R> {
    pub fn new(interfaces: Interfaces, resolver: R, neighbors: NeighborCache) -> IpLayer<R> {
        IpLayer { interfaces, resolver, neighbors, lost_neighbors: 0, last_identification: 0 }
    }

    /// Looks an address up in the table of an interface.
    pub fn lookup(&self, interface: u16, destination: IpAddr) -> Option<HostAction> {
        self.resolver.lookup(RouteQuery { interface, destination, packet: &[], way: WayOut::Any })
    }

    /// The neighbour that packets to an address go to. A link-local address is one of the link given.
    pub fn next_neighbor(&self, destination: IpAddr, link: u16) -> Option<NeighborId> {
        if matches!(destination, IpAddr::V6(ip) if ip.is_unicast_link_local()) {
            return Some(NeighborId { interface: link, ip: destination });
        }
        next_hop::neighbor(self.lookup(link, destination)?, destination)
    }

    /// The identification of the next packet that may be fragmented.
    pub fn next_identification(&mut self) -> u16 {
        self.last_identification = self.last_identification.wrapping_add(1);
        self.last_identification
    }
}
