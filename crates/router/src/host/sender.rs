//! Sends packets to a neighbour: at once if its link address is known, else when it is resolved.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use fullview_table::Family;

use super::fragment::{self, Fragments};
use super::fragment6;
use super::ip_layer::IpLayer;
use super::neighbor::{Enqueued, NeighborId, QueuedPacket};
use super::next_hop::NextHopResolver;
use super::output::Output;
use super::packet;
use fullview_plane::wire::ethernet::EtherType;
use fullview_plane::wire::ipv4;

/// What the handling of one frame or timer sends with.
pub(super) struct PacketSender<'a, R> {
    pub now: Duration,
    pub ip: &'a mut IpLayer<R>,
    pub out: &'a mut Output,
}

impl<R: NextHopResolver> PacketSender<'_, R> {
    /// Sends an IPv4 packet that the router made, in fragments if the link needs them.
    pub fn originate(&mut self, packet: Vec<u8>, neighbor: NeighborId) {
        let Some(interface) = self.ip.interfaces.get(neighbor.interface) else { return };
        match fragment::split(packet, interface.mtu as usize) {
            Fragments::Whole(packet) => self.deliver_own(packet, neighbor),
            Fragments::Several(parts) => {
                parts.into_iter().for_each(|part| self.deliver_own(part, neighbor));
            }
            Fragments::Impossible => {}
        }
    }

    /// Sends an ICMP message that the router made.
    pub fn originate_icmp(
        &mut self,
        addresses: (Ipv4Addr, Ipv4Addr),
        type_of_service: u8,
        message: &[u8],
        neighbor: NeighborId,
    ) {
        let identification = self.ip.next_identification();
        let protocol = ipv4::protocol::ICMP;
        self.originate(packet::inet(addresses, protocol, type_of_service, identification, message), neighbor);
    }

    /// Sends an ICMPv6 message that the router made and that is not one of neighbour discovery.
    pub fn originate_icmpv6(
        &mut self,
        addresses: (Ipv6Addr, Ipv6Addr),
        traffic_class: u8,
        message: Vec<u8>,
        neighbor: NeighborId,
    ) {
        let packet = packet::icmpv6(addresses, traffic_class, message);
        let interface = self.ip.interfaces.get(neighbor.interface);
        let mtu = interface.map_or(0, |interface| interface.mtu_of(Family::Inet6) as usize);
        if packet.len() <= mtu {
            return self.deliver_own(packet, neighbor);
        }
        let identification = self.ip.next_identification().into();
        let parts = fragment6::split(&packet, mtu, identification);
        parts.into_iter().for_each(|part| self.deliver_own(part, neighbor));
    }

    /// Sends a segment of TCP in the name of the first of two addresses to the second.
    pub fn originate_segment(&mut self, ends: (IpAddr, IpAddr), segment: &[u8], neighbor: NeighborId) {
        let protocol = ipv4::protocol::TCP;
        match ends {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let packet = packet::whole_inet((from, to), protocol, segment);
                self.originate(packet, neighbor);
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                self.deliver_own(packet::inet6((from, to), protocol, 0, segment), neighbor);
            }
            _ => {}
        }
    }

    /// Sends a packet that was received on interface `from` to a neighbour, at once or when it is resolved.
    pub fn deliver(&mut self, packet: Vec<u8>, neighbor: NeighborId, from: u16) {
        self.send_or_queue(packet, neighbor, (from, false));
    }

    /// Sends a packet that the router made.
    fn deliver_own(&mut self, packet: Vec<u8>, neighbor: NeighborId) {
        self.send_or_queue(packet, neighbor, (neighbor.interface, true));
    }

    fn send_or_queue(&mut self, packet: Vec<u8>, neighbor: NeighborId, (interface, is_own): (u16, bool)) {
        let IpLayer { interfaces, neighbors, .. } = &mut *self.ip;
        if let Some(mac) = neighbors.mac(neighbor) {
            let Some(out) = interfaces.get(neighbor.interface) else { return };
            return self.out.send(out, mac, ethertype(neighbor.ip), &packet);
        }
        let source = packet::source(&packet);
        let queued = QueuedPacket { packet, interface, source, is_own };
        if let Enqueued::Solicit { evicted } = neighbors.enqueue(self.now, neighbor, queued) {
            self.report_evicted(evicted);
            self.solicit(neighbor, None);
        }
    }
}

fn ethertype(neighbor: IpAddr) -> EtherType {
    if neighbor.is_ipv4() { EtherType::IPV4 } else { EtherType::IPV6 }
}
