/// Why bytes are no packet that a filter can judge. Such a packet is dropped: what cannot be read cannot be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum PacketError {
    #[error("the packet ends before the end of its headers")]
    TooShort,
    #[error("the version is neither 4 nor 6")]
    Version,
    #[error("a length field contradicts the packet")]
    Length,
    #[error("more extension headers than a filter follows")]
    Extensions,
    #[error("a fragment that could overwrite the TCP header (RFC 1858, RFC 3128)")]
    TinyFragment,
    #[error("an IPv4-mapped address in an IPv6 packet (RFC 4038, section 4.2)")]
    MappedAddress,
}
