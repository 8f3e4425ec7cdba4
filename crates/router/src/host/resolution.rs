//! From news of neighbours to what follows: packets that waited go out, routes change, and senders are told that nobody
//! answered.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use super::HostStack;
use super::neighbor::{Due, Evidence, Learned, QueuedPacket};
use super::next_hop::{Key, NextHopResolver};
use super::output::Output;
use super::sender::NeighborId;
use fullview_plane::wire::ethernet::Mac;
use fullview_plane::wire::icmp::Icmpv4Kind;
use fullview_plane::wire::icmpv6::Icmpv6Kind;

impl<W: NextHopResolver> HostStack<W> {
    /// Takes note of a neighbour's link address.
    pub(super) fn learn(&mut self, now: Duration, key: Key, mac: Mac, evidence: Evidence, out: &mut Output) {
        if mac.is_group() {
            return;
        }
        let Learned { changed, released, evicted } = self.neighbors.learn(now, key, mac, evidence);
        if let Some(evicted) = evicted {
            self.routes.unknown(now, evicted);
        }
        if changed && self.routes.known(now, key, mac).is_err() {
            // No number is left: this neighbour's packets come here one by one, and are forwarded all the same.
            self.routes.unknown(now, key);
        }
        let way = NeighborId { interface: key.0, station: key.1 };
        released
            .into_iter()
            .for_each(|waiting| self.deliver(now, waiting.packet, way, waiting.interface, out));
    }

    /// Asks for a neighbour: everybody on its link, or only where it was last known to be.
    pub(super) fn ask(&mut self, (interface, ip): Key, at: Option<Mac>, out: &mut Output) {
        match ip {
            IpAddr::V4(target) => self.arp_ask(interface, target, at, out),
            IpAddr::V6(target) => self.solicit(interface, target, at, out),
        }
    }

    /// Does what is due about a neighbour.
    pub(super) fn resolve(&mut self, now: Duration, due: Due, out: &mut Output) {
        match due {
            Due::Ask(key, at) => self.ask(key, at, out),
            Due::Lost(key, waiting) => {
                self.counters.lost_neighbors += 1;
                self.routes.unknown(now, key);
                self.give_up_all(now, key, waiting, out);
            }
        }
    }

    /// What waited for a neighbour goes nowhere, and its senders are told.
    pub(super) fn give_up_all(
        &mut self,
        now: Duration,
        key: Key,
        waiting: VecDeque<QueuedPacket>,
        out: &mut Output,
    ) {
        for QueuedPacket { packet, interface, .. } in waiting {
            self.give_up(now, key, &packet, interface, out);
        }
    }

    fn give_up(&mut self, now: Duration, key: Key, packet: &[u8], interface: u16, out: &mut Output) {
        match key.1 {
            IpAddr::V4(_) => self.error_about(now, packet, interface, Icmpv4Kind::HostUnreachable, 0, out),
            IpAddr::V6(_) => {
                self.error6_about(now, packet, interface, Icmpv6Kind::AddressUnreachable, 0, out)
            }
        }
    }
}
