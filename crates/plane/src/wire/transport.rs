//! What the transport protocols over IP have in common.

use super::{Field, ipv4};

/// Source and destination port, `header_len` bytes into an IP packet, of a protocol whose header begins with them; `None`
/// if the packet does not hold them.
#[inline]
pub fn ports(packet: &[u8], protocol: u8, header_len: usize) -> Option<(u16, u16)> {
    const DCCP: u8 = 33;
    const SCTP: u8 = 132;
    const UDP_LITE: u8 = 136;
    let has_ports = matches!(protocol, ipv4::protocol::TCP | ipv4::protocol::UDP | DCCP | SCTP | UDP_LITE);
    let bytes = packet.get(header_len..header_len + 4).filter(|_| has_ports)?;
    Some((Field::<2>(0).number(bytes), Field::<2>(2).number(bytes)))
}
