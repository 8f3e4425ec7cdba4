//! What people ask about, by the names they know it by.

use std::net::IpAddr;

use fullview_table::NextHop;

use super::Mirror;
use crate::route::{LinkIndex, NextHopVia, RouteAction};
use fullview_plane::wire::ethernet::Mac;

/// A neighbour that may be sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsableNeighbor {
    /// Its address.
    pub address: IpAddr,
    /// The name of its link.
    pub link: String,
    /// Its Ethernet address.
    pub mac: Mac,
    /// Whether the kernel would verify the address if it were used.
    pub is_stale: bool,
}

impl Mirror {
    /// The kernel's number of a table, by its place in the view.
    pub fn table_number(&self, place: u16) -> Option<u32> {
        self.table_numbers().get(usize::from(place)).copied()
    }

    /// A table's place in the view.
    pub fn table_place(&self, number: u32) -> Option<u16> {
        let place = self.table_numbers().iter().position(|known| *known == number)?;
        u16::try_from(place).ok()
    }

    /// What a next hop is, in the words of `ip route`; `None` if the index is free.
    pub fn next_hop(&self, hop: NextHop) -> Option<String> {
        if let Some(members) = self.sets.groups.members(hop) {
            return Some(format!("group of {}", members.len()));
        }
        Some(match self.sets.indices.action(hop)? {
            RouteAction::Local => "this host".into(),
            RouteAction::Broadcast => "broadcast".into(),
            RouteAction::Blackhole => "blackhole".into(),
            RouteAction::Unreachable => "unreachable".into(),
            RouteAction::Prohibit => "prohibit".into(),
            RouteAction::Throw => "throw".into(),
            RouteAction::Forward(NextHopVia { link, neighbor: None }) => {
                format!("dev {}", self.link_name(link))
            }
            RouteAction::Forward(NextHopVia { link, neighbor: Some(ip) }) => {
                format!("via {ip} dev {}", self.link_name(link))
            }
        })
    }

    /// All neighbours that may be sent to, in no order.
    pub fn usable_neighbors(&self) -> Vec<UsableNeighbor> {
        let neighbor = |(link, address): (LinkIndex, IpAddr)| {
            let known = self.neighbors.get(link, address)?;
            Some(UsableNeighbor {
                address,
                link: self.link_name(link),
                mac: known.mac,
                is_stale: known.is_stale,
            })
        };
        self.neighbors.keys().filter_map(neighbor).collect()
    }

    fn link_name(&self, link: LinkIndex) -> String {
        self.links.get(link).map_or_else(|| format!("link {link}"), |link| link.name.clone())
    }
}
