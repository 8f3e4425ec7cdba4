//! Sends messages of neighbour discovery, whose hop limit proves that they come from the link (RFC 4861, section 3.1).

use std::net::Ipv6Addr;

use super::output::Output;
use super::packet;
use fullview_plane::interface::Interface;
use fullview_plane::wire::ethernet::{EtherType, Mac};
use fullview_plane::wire::{icmpv6, ndp};

/// Sends to a group, or to one neighbour if its link address is given.
pub(super) fn send(
    link: &Interface,
    (source, destination): (Ipv6Addr, Ipv6Addr),
    mac: Option<Mac>,
    message: Vec<u8>,
    out: &mut Output,
) {
    debug_assert!(message.len() >= icmpv6::HEADER);
    let packet = packet::with_hop_limit(packet::icmpv6((source, destination), 0, message), ndp::HOP_LIMIT);
    let mac = mac.unwrap_or_else(|| ndp::group_mac(destination.to_bits()));
    out.send(link, mac, EtherType::IPV6, &packet);
}
