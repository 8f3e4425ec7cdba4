//! Numbers of protocols, TCP flags and ICMP messages that filters know (IANA's registries).

pub const ICMP: u8 = 1;
pub const TCP: u8 = 6;
pub const UDP: u8 = 17;
pub const ICMP6: u8 = 58;
pub const SCTP: u8 = 132;
pub const UDP_LITE: u8 = 136;

/// Flags of a TCP segment (RFC 9293, section 3.1).
pub mod tcp {
    pub const FIN: u8 = 0x01;
    pub const SYN: u8 = 0x02;
    pub const RST: u8 = 0x04;
    pub const PUSH: u8 = 0x08;
    pub const ACK: u8 = 0x10;
    pub const URG: u8 = 0x20;
    pub const ECE: u8 = 0x40;
    pub const CWR: u8 = 0x80;

    /// Whether a segment neither begins nor ends anything: it has data, or it acknowledges some.
    #[inline]
    pub const fn is_plain(flags: u8) -> bool {
        flags & !PUSH == ACK
    }
}

/// Whether source and destination port are the first four bytes of this protocol's header.
#[inline]
pub const fn has_ports(protocol: u8) -> bool {
    matches!(protocol, TCP | UDP | SCTP | UDP_LITE)
}
