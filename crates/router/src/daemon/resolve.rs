//! Neighbours that workers meet packets for and nobody has resolved: the kernel is asked to.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::time::Duration;

use crate::follow::Follower;
use crate::mirror::Mirror;
use crate::netlink::socket::SocketError;
use crate::route::LinkIndex;

/// A destination that a packet was for, and the interface it came in by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wanted {
    pub interface: u16,
    pub destination: IpAddr,
}

/// The kernel tries for some seconds by itself.
const PATIENCE: Duration = Duration::from_secs(1);

/// Neighbours asked for within the time above, at most: somebody may scan a whole network.
const MOST: usize = 256;

#[derive(Default)]
pub struct Resolver {
    asked: HashMap<(LinkIndex, IpAddr), Duration>,
}

impl Resolver {
    pub fn resolve(
        &mut self,
        now: Duration,
        wanted: Vec<Wanted>,
        mirror: &Mirror,
        follower: &Follower,
    ) -> Result<(), SocketError> {
        self.asked.retain(|_, at| now.saturating_sub(*at) < PATIENCE);
        for Wanted { interface, destination } in wanted {
            let Some(neighbor) = mirror.missing_neighbor(interface, destination) else { continue };
            let has_room = self.asked.len() < MOST;
            // The time stays that of the question: packets that go on coming do not put the next one off.
            if let (Entry::Vacant(place), true) = (self.asked.entry(neighbor), has_room) {
                place.insert(now);
                follower.resolve(neighbor.0, neighbor.1)?;
            }
        }
        Ok(())
    }
}
