//! Asks the kernel to resolve neighbours that workers have packets for and that are not known.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::time::Duration;

use crate::follow::Follower;
use crate::mirror::Mirror;
use crate::netlink::socket::SocketError;
use crate::route::LinkIndex;

/// The destination of a packet whose neighbour is not known, and the interface it came in by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UnresolvedDestination {
    pub interface: u16,
    pub destination: IpAddr,
}

/// The kernel is asked again for a neighbour only after this time: it retries for some seconds by itself.
const REQUEST_INTERVAL: Duration = Duration::from_secs(1);

/// Neighbours that the kernel is asked for within the interval, at most: a host may scan a whole network.
const MAX_REQUESTS: usize = 256;

#[derive(Default)]
pub struct NeighborResolver {
    requested: HashMap<(LinkIndex, IpAddr), Duration>,
}

impl NeighborResolver {
    pub fn resolve(
        &mut self,
        now: Duration,
        destinations: Vec<UnresolvedDestination>,
        mirror: &Mirror,
        follower: &Follower,
    ) -> Result<(), SocketError> {
        self.requested.retain(|_, at| now.saturating_sub(*at) < REQUEST_INTERVAL);
        for UnresolvedDestination { interface, destination } in destinations {
            let Some(neighbor) = mirror.missing_neighbor(interface, destination) else { continue };
            let has_room = self.requested.len() < MAX_REQUESTS;
            // The entry keeps the time of the request, so that packets that keep coming do not delay the next one.
            if let (Entry::Vacant(place), true) = (self.requested.entry(neighbor), has_room) {
                place.insert(now);
                follower.resolve(neighbor.0, neighbor.1)?;
            }
        }
        Ok(())
    }
}
