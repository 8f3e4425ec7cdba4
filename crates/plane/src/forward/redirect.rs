//! Packets that leave by the interface they came in by, from a sender on that link: it could have sent them to the next
//! router itself (RFC 1812, section 5.2.7.2; RFC 4861, section 8). They are forwarded all the same; what whoever tells
//! the sender has to know is noted here.

use std::net::IpAddr;

use fullview_table::NextHop;

use super::Stages;
use crate::adjacency::Kind;
use crate::burst::{Packet, Slot};
use crate::view::View;
use crate::wire::ethernet::HEADER as ETHERNET;
use crate::wire::{ipv4, ipv6};

/// A packet whose sender could have taken a shorter way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detour {
    /// The interface it came in by and left by.
    pub interface: u16,
    /// Its next hop.
    pub next_hop: NextHop,
    /// The first bytes of the frame as it came in, without a tag: an ICMP message quotes them.
    pub head: [u8; 64],
    /// Bytes of the frame, without a tag.
    pub frame_len: usize,
}

/// Detours noted of one burst: whoever tells the senders does so seldom, and more of them come with the next burst.
pub(super) const NOTED: usize = 8;

impl Stages {
    /// To be asked before the packets are written anew.
    #[cold]
    pub(super) fn note_detours(&mut self, view: &View, packets: &[Packet<'_>]) {
        for table in &self.tables {
            for (place, hop) in table.inet.destinations.found() {
                let ip = ipv4::Packet::new_unchecked(&packets[place].head()[ETHERNET..]);
                note(&mut self.detours, view, packets[place], hop, IpAddr::V4(ip.source().into()));
            }
            for (place, hop) in table.inet6.destinations.found() {
                let ip = ipv6::Packet::new_unchecked(&packets[place].head()[ETHERNET..]);
                note(&mut self.detours, view, packets[place], hop, IpAddr::V6(ip.source().into()));
            }
        }
    }
}

fn note(detours: &mut Vec<Detour>, view: &View, packet: &Slot, next_hop: NextHop, source: IpAddr) {
    let entry = view.entries().get(next_hop);
    if detours.len() == NOTED || entry.kind != Kind::Neighbor || entry.interface != packet.interface {
        return;
    }
    let told = view.interface(packet.interface).filter(|interface| interface.redirects);
    if told.is_some_and(|interface| interface.is_on_link(source)) {
        let (head, frame_len) = (*packet.head(), packet.frame_len());
        detours.push(Detour { interface: packet.interface, next_hop, head, frame_len });
    }
}
