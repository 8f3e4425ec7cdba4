//! What a host without a kernel behind it asks about next hops and interfaces.

use fullview_table::NextHop;

use super::Mirror;
use super::indices::NextHopAction;
use crate::route::{LinkIndex, NextHopVia, RouteAction};

impl Mirror {
    /// What next hops stand for, by number; `None` for groups, links that are gone, and what is free.
    pub fn next_hop_actions(&self) -> Vec<Option<RouteAction<NextHopVia<u16>>>> {
        let mut actions = Vec::new();
        for (NextHop(number), action) in self.sets.indices.iter() {
            let place = usize::from(number);
            if actions.len() <= place {
                actions.resize(place + 1, None);
            }
            if let Some(slot) = actions.get_mut(place) {
                *slot = self.by_interface(action);
            }
        }
        actions
    }

    fn by_interface(&self, action: NextHopAction) -> Option<RouteAction<NextHopVia<u16>>> {
        let numbered = |via: NextHopVia<LinkIndex>| {
            let link = self.links.number(via.link).ok_or(())?;
            Ok::<_, ()>(NextHopVia { link, neighbor: via.neighbor })
        };
        action.try_map(numbered).ok()
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
