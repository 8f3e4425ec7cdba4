//! Neighbour resolution: requests for link addresses, and what follows from the answers.

use super::neighbor::{CacheUpdate, Evidence, NeighborId};
use super::next_hop::NextHopResolver;
use super::sender::PacketSender;
use super::solicitation::Solicitation;
use fullview_plane::wire::ethernet::Mac;

impl<R: NextHopResolver> PacketSender<'_, R> {
    /// Asks for a neighbour's link address: the whole link, or only the station that last had it.
    pub fn solicit(&mut self, neighbor: NeighborId, last_known: Option<Mac>) {
        let oldest = self.ip.neighbors.oldest_queued(neighbor);
        let prompted_by = oldest.map(|queued| queued.source);
        Solicitation { neighbor, prompted_by, last_known }.send(&self.ip.interfaces, self.out);
    }

    /// Enters a neighbour's link address into the cache, and sends the packets that waited for it.
    pub fn learn(&mut self, neighbor: NeighborId, mac: Mac, evidence: Evidence) {
        if mac.is_group() {
            return;
        }
        let CacheUpdate { changed, released, evicted } =
            self.ip.neighbors.learn(self.now, neighbor, mac, evidence);
        self.report_evicted(evicted);
        if changed && self.ip.resolver.neighbor_resolved(self.now, neighbor, mac).is_err() {
            // No next-hop index is left: the loop punts this neighbour's packets, and the slow path forwards them.
            self.ip.resolver.neighbor_lost(self.now, neighbor);
        }
        released.into_iter().for_each(|queued| self.deliver(queued.packet, neighbor, queued.interface));
    }

    /// Tells the resolver of a neighbour that had to make room for another one.
    pub fn report_evicted(&mut self, evicted: Option<NeighborId>) {
        if let Some(evicted) = evicted {
            self.ip.resolver.neighbor_lost(self.now, evicted);
        }
    }
}
