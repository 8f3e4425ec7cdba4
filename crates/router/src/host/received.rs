//! A frame that the loop rejected, and the IP packet in it.

use std::net::IpAddr;

use super::next_hop::RouteQuery;
use fullview_plane::forward::WayOut;
use fullview_plane::wire::ethernet::Mac;
use fullview_plane::wire::ipv4::Ipv4Packet;
use fullview_plane::wire::ipv6::Ipv6Packet;

/// A received frame, without its Ethernet header and tag.
#[derive(Clone, Copy)]
pub(super) struct RxFrame<'a> {
    pub interface: u16,
    /// By which interfaces the packet may leave.
    pub way: WayOut,
    /// Whether the frame was a broadcast or multicast.
    pub to_group: bool,
    pub source: Mac,
    /// Whether the packet was reassembled from fragments.
    pub reassembled: bool,
    pub payload: &'a [u8],
}

impl<'a> RxFrame<'a> {
    pub fn inet(&self) -> Option<Ipv4Packet<&'a [u8]>> {
        inet(self.payload)
    }

    pub fn inet6(&self) -> Option<Ipv6Packet<&'a [u8]>> {
        inet6(self.payload)
    }

    /// Asks where the packet's destination leads.
    pub fn query(&self, destination: IpAddr) -> RouteQuery<'a> {
        RouteQuery { interface: self.interface, destination, packet: self.payload, way: self.way }
    }
}

/// The IPv4 packet without padding; `None` if its header is malformed.
pub(super) fn inet(payload: &[u8]) -> Option<Ipv4Packet<&[u8]>> {
    let whole = Ipv4Packet::new_checked(payload).ok()?;
    Some(Ipv4Packet::new_unchecked(&payload[..usize::from(whole.total_len())]))
}

/// The IPv6 packet without padding; `None` if its header is malformed.
pub(super) fn inet6(payload: &[u8]) -> Option<Ipv6Packet<&[u8]>> {
    let whole = Ipv6Packet::new_checked(payload).ok()?;
    Some(Ipv6Packet::new_unchecked(&payload[..whole.total_len()]))
}
