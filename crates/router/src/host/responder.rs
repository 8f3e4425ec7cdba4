//! The router's side of ARP and neighbour discovery: `arp` and `ndp` answer requests for its addresses and learn from
//! what other stations send.

use std::net::IpAddr;

use super::conflict::ConflictLog;
use super::sender::PacketSender;
use fullview_plane::wire::ethernet::Mac;

#[derive(Default)]
pub(super) struct NeighborResponder {
    /// Requests answered.
    pub answers: u64,
    /// Messages in which another station claimed an address of this router.
    pub conflicts: ConflictLog,
}

impl NeighborResponder {
    /// Records that the station `mac` claims an address of the router.
    pub fn conflict<R>(&mut self, sender: &PacketSender<'_, R>, number: u16, ip: IpAddr, mac: Mac) {
        let name = sender.ip.interfaces.get(number).map_or("", |interface| &interface.name);
        self.conflicts.record(sender.now, name, ip, mac);
    }
}
