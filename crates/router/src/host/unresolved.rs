//! Packets whose neighbour did not answer: they are dropped, and their senders get an ICMP error.

use std::collections::VecDeque;
use std::net::IpAddr;

use super::error::IcmpErrors;
use super::neighbor::{NeighborId, QueuedPacket};
use super::next_hop::NextHopResolver;
use super::sender::PacketSender;
use fullview_plane::wire::icmp::Icmpv4Kind;
use fullview_plane::wire::icmpv6::Icmpv6Kind;

pub(super) fn report<R: NextHopResolver>(
    errors: &mut IcmpErrors,
    sender: &mut PacketSender<'_, R>,
    neighbor: NeighborId,
    packets: VecDeque<QueuedPacket>,
) {
    // No host waits for what the router itself sent; a reset in another host's name would be reported to that host.
    for QueuedPacket { packet, interface, .. } in packets.into_iter().filter(|queued| !queued.is_own) {
        match neighbor.ip {
            IpAddr::V4(_) => {
                errors.report_packet(sender, &packet, interface, Icmpv4Kind::HostUnreachable.into());
            }
            IpAddr::V6(_) => {
                errors.report_packet6(sender, &packet, interface, Icmpv6Kind::AddressUnreachable.into());
            }
        }
    }
}
