//! Whom the kernel is to be asked for.

use std::net::IpAddr;

use fullview_table::{Address, NextHop};

use crate::kernel::event::LinkIndex;

use super::Mirror;
use super::indices::Via;

impl Mirror {
    /// The neighbour that a packet to `destination`, come in by an interface of that number, would be sent to if it
    /// were known.
    pub fn unresolved(&self, interface: u16, destination: IpAddr) -> Option<(LinkIndex, IpAddr)> {
        let (_, link) = self.links.interfaces().nth(usize::from(interface))?;
        let table = self.links.table(link?.index);
        let next_hop = match destination {
            IpAddr::V4(ip) => self.tables.inet.rib(table)?.longest_match(u32::from_ip(ip))?.next_hop,
            IpAddr::V6(ip) => self.tables.inet6.rib(table)?.longest_match(u128::from_ip(ip))?.next_hop,
        };
        let members = self.sets.groups.members(next_hop);
        let ways =
            members.map_or(vec![next_hop], |members| members.iter().map(|member| member.next_hop).collect());
        ways.into_iter().find_map(|way| self.neighbor_of(way, destination))
    }

    /// `None` if it is known, or no neighbour at all.
    fn neighbor_of(&self, next_hop: NextHop, destination: IpAddr) -> Option<(LinkIndex, IpAddr)> {
        let (link, address) = match self.sets.indices.via(next_hop)? {
            Via::Network(link) => (link, destination),
            Via::Station(link, gateway) => (link, gateway),
            _ => return None,
        };
        self.neighbors.get(link, address).is_none().then_some((link, address))
    }
}
