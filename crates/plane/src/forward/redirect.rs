//! Packets that leave by the interface they came in by, from a sender on that link: it could have sent them to the next
//! router itself (RFC 1812, section 5.2.7.2; RFC 4861, section 8). They are forwarded all the same; what whoever tells
//! the sender has to know is noted here.

use std::net::IpAddr;

use fullview_table::NextHop;

use super::Stages;
use crate::adjacency::AdjacencyKind;
use crate::burst::FrameCopy;
use crate::burst::{Packet, Slot};
use crate::view::View;
use crate::wire::ethernet::HEADER as ETHERNET;
use crate::wire::ipv4::Ipv4Packet;
use crate::wire::ipv6::Ipv6Packet;

/// A packet whose sender could have taken a shorter way.
#[derive(Clone)]
pub struct RedirectCandidate {
    /// The interface it came in by and left by.
    pub interface: u16,
    /// Its next hop.
    pub next_hop: NextHop,
    /// As it came in, without a tag: an ICMP message quotes it.
    pub frame: FrameCopy,
}

/// Detours noted of one burst: each is a copy of its frame, whoever tells the senders does so seldom, and more of them
/// come with the next burst.
pub(super) const NOTED: usize = 2;

impl Stages {
    /// To be asked before the packets are written anew.
    #[cold]
    pub(super) fn note_detours(&mut self, view: &View, packets: &[Packet<'_>]) {
        for table in &self.tables {
            for (place, hop) in table.inet.destinations.found() {
                let (packet, entry) = (&*packets[place], view.adjacencies().get(hop));
                let ip = Ipv4Packet::new_unchecked(&packet.head()[ETHERNET..]);
                if ip.ttl() > 1 && ip.total_len() <= entry.mtu {
                    note(&mut self.detours, view, packet, hop, IpAddr::V4(ip.source().into()));
                }
            }
            for (place, hop) in table.inet6.destinations.found() {
                let (packet, entry) = (&*packets[place], view.adjacencies().get(hop));
                let ip = Ipv6Packet::new_unchecked(&packet.head()[ETHERNET..]);
                if ip.hop_limit() > 1 && ip.total_len() <= usize::from(entry.mtu6) {
                    note(&mut self.detours, view, packet, hop, IpAddr::V6(ip.source().into()));
                }
            }
        }
    }
}

/// What is not forwarded is told of by whoever answers it.
fn note(detours: &mut Vec<RedirectCandidate>, view: &View, packet: &Slot, next_hop: NextHop, source: IpAddr) {
    let entry = view.adjacencies().get(next_hop);
    if detours.len() == NOTED || entry.kind != AdjacencyKind::Neighbor || entry.interface != packet.interface
    {
        return;
    }
    let told = view.interface(packet.interface).filter(|interface| interface.redirects);
    if told.is_some_and(|interface| interface.is_on_link(source)) {
        detours.push(RedirectCandidate {
            interface: packet.interface,
            next_hop,
            frame: FrameCopy::of(packet),
        });
    }
}
