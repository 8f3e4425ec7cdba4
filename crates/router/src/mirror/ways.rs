//! What a host without a kernel behind it asks about next hops and interfaces.

use fullview_table::NextHop;

use super::Mirror;
use super::indices::Via;
use crate::host::next_hop::Hop;
use crate::netlink::event::LinkIndex;

impl Mirror {
    /// What next hops stand for, by number; `None` for groups, links that are gone, and what is free.
    pub fn hops(&self) -> Vec<Option<Hop>> {
        let mut hops = Vec::new();
        for (NextHop(number), via) in self.sets.indices.iter() {
            let place = usize::from(number);
            if hops.len() <= place {
                hops.resize(place + 1, None);
            }
            if let Some(hop) = hops.get_mut(place) {
                *hop = self.hop(via);
            }
        }
        hops
    }

    fn hop(&self, via: Via) -> Option<Hop> {
        Some(match via {
            Via::Kernel => Hop::Own,
            Via::Broadcast => Hop::Broadcast,
            Via::Blackhole => Hop::Blackhole,
            Via::Unreachable => Hop::Unreachable,
            Via::Prohibit => Hop::Prohibit,
            Via::Network(link) => Hop::Link(self.links.number(link)?),
            Via::Station(link, address) => Hop::Station(self.links.number(link)?, address),
        })
    }

    /// The link that an interface is now.
    pub fn link_of(&self, interface: u16) -> Option<LinkIndex> {
        self.links.numbered(interface)
    }

    /// The number of the interface that a link is, if it is one of ours.
    pub fn interface_of(&self, link: LinkIndex) -> Option<u16> {
        self.links.number(link)
    }
}
