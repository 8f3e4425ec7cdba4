//! Whom packets are sent to, and whom the kernel is to be asked for.

use std::net::IpAddr;

use fullview_table::{Address, NextHop};

use crate::route::{LinkIndex, RouteAction};
use fullview_plane::wire::ethernet::Mac;

use super::Mirror;

/// A neighbour that may be sent to and that the kernel would verify if it sent to it itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doubtful {
    /// On which link.
    pub link: LinkIndex,
    /// The interface that this link is.
    pub interface: u16,
    /// Its IP address.
    pub address: IpAddr,
    /// Its Ethernet address.
    pub mac: Mac,
}

impl Mirror {
    /// The neighbours in doubt, on links that are ours.
    pub fn doubtful(&self) -> Vec<Doubtful> {
        let doubtful = |(link, address, mac): (LinkIndex, IpAddr, Mac)| {
            let interface = self.links.number(link)?;
            Some(Doubtful { link, interface, address, mac })
        };
        self.neighbors.stale().filter_map(doubtful).collect()
    }

    /// The stations that packets to `destination` may be sent to by a table of the kernel, as the RIB says: a gateway, or
    /// the destination itself.
    pub fn stations(&self, table: u32, destination: IpAddr) -> Vec<(LinkIndex, IpAddr)> {
        let next_hop = match destination {
            IpAddr::V4(ip) => self
                .tables
                .inet
                .rib(table)
                .and_then(|rib| rib.longest_match(u32::from_ip(ip)))
                .map(|route| route.next_hop),
            IpAddr::V6(ip) => self
                .tables
                .inet6
                .rib(table)
                .and_then(|rib| rib.longest_match(u128::from_ip(ip)))
                .map(|route| route.next_hop),
        };
        let Some(next_hop) = next_hop else { return Vec::new() };
        let members = self.sets.groups.members(next_hop);
        let ways =
            members.map_or(vec![next_hop], |members| members.iter().map(|member| member.next_hop).collect());
        ways.into_iter().filter_map(|way| self.station(way, destination)).collect()
    }

    fn station(&self, next_hop: NextHop, destination: IpAddr) -> Option<(LinkIndex, IpAddr)> {
        match self.sets.indices.action(next_hop)? {
            RouteAction::Forward(via) => Some((via.link, via.neighbor.unwrap_or(destination))),
            _ => None,
        }
    }

    /// The neighbour that is missing for a packet to `destination`, come in by an interface of that number.
    pub fn unresolved(&self, interface: u16, destination: IpAddr) -> Option<(LinkIndex, IpAddr)> {
        let (_, link) = self.links.interfaces().nth(usize::from(interface))?;
        let stations = self.stations(self.links.table(link?.index), destination);
        stations.into_iter().find(|(link, address)| self.neighbors.get(*link, *address).is_none())
    }
}
