//! Which packets the host stack needs first.

use super::received::inet6;
use fullview_plane::verdict::{Punt, Verdict};
use fullview_plane::wire::ethernet::{EtherType, Frame};
use fullview_plane::wire::ipv4::protocol;
use fullview_plane::wire::ndp;

/// The classes of packets that the loop does not forward, the most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketClass {
    /// ARP and neighbour discovery.
    NeighborDiscovery,
    /// Other packets to the router itself, and to groups of the link.
    Local,
    /// Packets to others, which get an ICMP error or take the slow path.
    Transit,
}

impl PacketClass {
    pub const COUNT: usize = PacketClass::Transit as usize + 1;

    pub fn of(verdict: Verdict, frame: &[u8]) -> PacketClass {
        match verdict {
            Verdict::Punt(Punt::Arp) => PacketClass::NeighborDiscovery,
            Verdict::Punt(Punt::Local | Punt::LinkMulticast | Punt::LinkLocal | Punt::NotForwarding) => {
                if is_discovery(frame) {
                    PacketClass::NeighborDiscovery
                } else {
                    PacketClass::Local
                }
            }
            _ => PacketClass::Transit,
        }
    }
}

/// Whether the packet is ICMPv6 from the link. Only its hop limit proves that (RFC 4861, section 3.1).
fn is_discovery(frame: &[u8]) -> bool {
    let frame = Frame::new_checked(frame).ok().filter(|frame| frame.ethertype() == EtherType::IPV6);
    let packet = frame.as_ref().and_then(|frame| inet6(frame.payload()));
    packet.is_some_and(|packet| {
        packet.next_header() == protocol::ICMPV6 && packet.hop_limit() == ndp::HOP_LIMIT
    })
}
