//! Packets that leave by the interface that received them, from a sender on that link: the sender could have sent them to
//! the next router itself (RFC 1812, section 5.2.7.2; RFC 4861, section 8). The loop forwards them and copies a few, so
//! that the slow path can send ICMP redirects.

use std::net::IpAddr;

use fullview_table::NextHop;

use super::keys::TableKeys;
use crate::adjacency::AdjacencyKind;
use crate::burst::{FrameCopy, Packet, Slot};
use crate::view::View;
use crate::wire::ethernet::HEADER as ETHERNET;
use crate::wire::ipv4::Ipv4Packet;
use crate::wire::ipv6::Ipv6Packet;

/// A packet whose sender could use a better first hop.
#[derive(Clone)]
pub struct RedirectCandidate {
    /// The interface that received and sent it.
    pub interface: u16,
    /// Its next hop.
    pub next_hop: NextHop,
    /// The frame as it came in, without a tag: an ICMP message quotes it.
    pub frame: FrameCopy,
}

/// Candidates of one burst. Each is a copy of its frame, redirects are rate-limited, and later bursts bring more.
pub(super) const MAX_CANDIDATES: usize = 2;

/// Copies candidates of the burst; has to run before the packets are rewritten. The sender of a translated packet cannot send it
/// to the next router itself.
#[cold]
pub(super) fn record(
    candidates: &mut Vec<RedirectCandidate>,
    tables: &[TableKeys],
    view: &View,
    packets: &[Packet<'_>],
    is_translated: &dyn Fn(usize) -> bool,
) {
    for table in tables {
        for (position, hop) in table.inet.destinations.found() {
            let (packet, entry) = (&*packets[position], view.adjacencies().get(hop));
            let ip = Ipv4Packet::new_unchecked(&packet.head()[ETHERNET..]);
            if ip.ttl() > 1 && ip.total_len() <= entry.mtu {
                let source = IpAddr::V4(ip.source().into());
                record_one(candidates, view, (packet, hop), source, || is_translated(position));
            }
        }
        for (position, hop) in table.inet6.destinations.found() {
            let (packet, entry) = (&*packets[position], view.adjacencies().get(hop));
            let ip = Ipv6Packet::new_unchecked(&packet.head()[ETHERNET..]);
            let fits = ip.total_len() <= usize::from(entry.mtu6);
            if ip.hop_limit() > 1 && fits {
                let source = IpAddr::V6(ip.source().into());
                record_one(candidates, view, (packet, hop), source, || is_translated(position));
            }
        }
    }
}

/// Copies a packet that will be forwarded, if it is a candidate.
fn record_one(
    candidates: &mut Vec<RedirectCandidate>,
    view: &View,
    (packet, next_hop): (&Slot, NextHop),
    source: IpAddr,
    is_translated: impl FnOnce() -> bool,
) {
    let entry = view.adjacencies().get(next_hop);
    let is_full = candidates.len() == MAX_CANDIDATES;
    if is_full || entry.kind != AdjacencyKind::Neighbor || entry.interface != packet.interface {
        return;
    }
    let interface = view.interface(packet.interface).filter(|interface| interface.redirects);
    if interface.is_some_and(|interface| interface.is_on_link(source)) && !is_translated() {
        let frame = FrameCopy::of(packet);
        candidates.push(RedirectCandidate { interface: packet.interface, next_hop, frame });
    }
}
