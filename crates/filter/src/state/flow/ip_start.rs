//! The start of a packet of a known flow.

/// The first bytes of a packet, from its IP header on; behind a short packet there may be anything.
pub type IpStart = [u8; 50];

/// The length of an IPv4 header without options and of what shows both ports, as that of UDP does.
pub(super) const LEAST_INET: u16 = 28;
/// The payload of an IPv6 packet that shows both ports.
pub(super) const LEAST_INET6: u16 = 8;
/// All bits of the fragment word but the one that forbids fragments and the one that means nothing.
pub(super) const FRAGMENTED: [u8; 2] = [0x3f, 0xff];

/// Whether an IPv4 packet is whole, without options, with a hop left and room for ports. It has branches, as nearly all packets
/// are plain ones.
#[inline(always)]
pub fn is_plain_inet(start: &IpStart) -> bool {
    let [first, _, a, b, _, _, c, d, hops, ..] = *start;
    first == 0x45
        && u16::from_ne_bytes([c, d]) & u16::from_ne_bytes(FRAGMENTED) == 0
        && hops > 1
        && u16::from_be_bytes([a, b]) >= LEAST_INET
}

/// Whether an IPv6 packet has a hop left and room for ports. One with extension headers has another protocol than known flows.
#[inline(always)]
pub fn is_plain_inet6(start: &IpStart) -> bool {
    let [_, _, _, _, a, b, _, hops, ..] = *start;
    hops > 1 && u16::from_be_bytes([a, b]) >= LEAST_INET6
}
