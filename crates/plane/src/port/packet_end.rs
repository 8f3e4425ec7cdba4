//! Where the packet in a frame ends: bytes may stand behind it.

use crate::wire::ethernet::{EtherType, Frame};
use crate::wire::ipv4::Ipv4Packet;
use crate::wire::ipv6::Ipv6Packet;

/// The end of the IP packet in a frame, by its length field; `None` in frames of other protocols and malformed ones.
pub(super) fn packet_end(frame: &[u8]) -> Option<usize> {
    let frame = Frame::new_checked(frame).ok()?;
    let payload = frame.payload();
    let len = match frame.ethertype() {
        EtherType::IPV4 => Ipv4Packet::new_checked(payload).ok()?.total_len().into(),
        EtherType::IPV6 => Ipv6Packet::new_checked(payload).ok()?.total_len(),
        _ => return None,
    };
    Some(frame.header_len() + len)
}
