//! Removes the differences that two correct routers may have; nothing else is changed.
//!
//! 1. The identification of the IPv4 packets that a router originates is any number. It is set to zero, and the checksum
//!    of the header, which depends on it, is corrected if it was right before.
//! 2. A router sends a redirect before or after it forwards the packet, and the header that the redirect quotes has lost
//!    its hop or not (RFC 1812, section 4.3.2.3).
//! 3. Where redirects are off, those of IPv6 are removed. Linux sends them nevertheless, unless it has sent a message to
//!    the same host within the last second or so.

use fullview_plane::wire::ethernet::{EtherType, Frame};
use fullview_plane::wire::icmp::{self, Icmpv4Kind, Icmpv4Message};
use fullview_plane::wire::icmpv6::{Icmpv6Kind, Icmpv6Message};
use fullview_plane::wire::ipv4::protocol;
use fullview_plane::wire::ipv4::{self, Ipv4Packet};
use fullview_plane::wire::ipv6::Ipv6Packet;

use crate::catalogue::Catalogue;
use crate::dut::Output;
use crate::topology::{LINK_LOCAL, ROUTER, SIDES, inet};

pub fn outputs(catalogue: Catalogue, outputs: &[Output]) -> Vec<Output> {
    let mut outputs: Vec<_> = outputs.iter().cloned().map(output).collect();
    let all = outputs.iter_mut().flat_map(|output| &mut output.0);
    if catalogue.redirects() {
        all.for_each(|frames| frames.sort());
    } else {
        all.for_each(|frames| frames.retain(|frame| !is_redirect6(frame)));
    }
    outputs
}

/// Returns whether the router has sent a redirect of IPv6.
pub fn has_redirect6(output: &Output) -> bool {
    output.0.iter().flatten().any(|frame| is_redirect6(frame))
}

fn is_redirect6(frame: &[u8]) -> bool {
    let Ok(frame) = Frame::new_checked(frame) else { return false };
    let packet = (frame.ethertype() == EtherType::IPV6).then(|| Ipv6Packet::new_checked(frame.payload()));
    let Some(Ok(packet)) = packet else { return false };
    let is_own = packet.next_header() == protocol::ICMPV6 && packet.source() == LINK_LOCAL.to_bits();
    let message = Icmpv6Message::new_checked(packet.payload());
    is_own && message.is_ok_and(|message| message.kind() == Icmpv6Kind::Redirect)
}

fn output(mut output: Output) -> Output {
    output.0.iter_mut().flatten().for_each(|frame| normalize(frame));
    output
}

fn normalize(frame: &mut [u8]) {
    let Ok(mut frame) = Frame::new_checked(frame) else { return };
    if frame.ethertype() != EtherType::IPV4 {
        return;
    }
    let Ok(mut packet) = Ipv4Packet::new_checked(frame.payload_mut()) else { return };
    let is_own = (0..SIDES.len()).any(|side| inet(side, ROUTER).to_bits() == packet.source());
    if is_own && packet.verify_checksum() {
        packet.set_identification(0);
        packet.fill_checksum();
        let (start, end) = (packet.header_len(), usize::from(packet.total_len()));
        forget_hop(&mut frame.payload_mut()[start..end]);
    }
}

/// Sets the TTL that a valid redirect quotes to zero.
fn forget_hop(message: &mut [u8]) {
    let is_redirect = Icmpv4Message::new_checked(&*message)
        .is_ok_and(|message| message.kind() == Icmpv4Kind::Redirect && message.verify_checksum());
    let quoted = message.get_mut(icmp::HEADER..).filter(|quoted| is_redirect && quoted.len() >= ipv4::HEADER);
    let Some(mut quoted) = quoted.map(Ipv4Packet::new_unchecked) else { return };
    if quoted.header_len() <= quoted.bytes().len() && quoted.verify_checksum() {
        quoted.set_ttl(0);
        quoted.fill_checksum();
        Icmpv4Message::new_unchecked(message).fill_checksum();
    }
}
