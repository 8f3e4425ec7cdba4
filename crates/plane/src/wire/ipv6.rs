//! The fixed IPv6 header, RFC 8200. Extension headers are payload to a router.

use super::{Field, Malformed, check_len};

/// Bytes of the fixed header.
pub const HEADER: usize = 40;
/// Where the payload length is in the header.
pub const PAYLOAD_LENGTH_AT: usize = 4;

const VERSION_CLASS_FLOW: Field<4> = Field(0);
const PAYLOAD_LENGTH: Field<2> = Field(PAYLOAD_LENGTH_AT);
const NEXT_HEADER: Field<1> = Field(6);
const HOP_LIMIT: Field<1> = Field(7);
const SOURCE: Field<16> = Field(8);
const DESTINATION: Field<16> = Field(24);

/// A view of a packet from its header on. Addresses and lengths are in host byte order.
#[derive(Clone, Copy, Debug)]
pub struct Ipv6Packet<T>(T);

impl<T: AsRef<[u8]>> Ipv6Packet<T> {
    /// A view whose accessors panic where `bytes` is too short.
    #[inline(always)]
    pub const fn new_unchecked(bytes: T) -> Ipv6Packet<T> {
        Ipv6Packet(bytes)
    }

    /// A view none of whose accessors can panic: version and payload length are correct.
    pub fn new_checked(bytes: T) -> Result<Ipv6Packet<T>, Malformed> {
        let header = "IPv6";
        check_len(header, bytes.as_ref(), HEADER)?;
        let have = bytes.as_ref().len();
        let packet = Ipv6Packet(bytes);
        if packet.version() != 6 {
            return Err(Malformed::Version { header, found: packet.version() });
        }
        let found = packet.total_len();
        if found > have {
            return Err(Malformed::TotalLength { header, found, have });
        }
        Ok(packet)
    }

    /// The version field: 6 in a correct header.
    #[inline(always)]
    pub fn version(&self) -> u8 {
        self.0.as_ref()[0] >> 4
    }

    /// Differentiated services and congestion bits.
    pub fn traffic_class(&self) -> u8 {
        (VERSION_CLASS_FLOW.number(self.0.as_ref()) >> 20) as u8
    }

    /// The flow label, 20 bits.
    pub fn flow_label(&self) -> u32 {
        VERSION_CLASS_FLOW.number(self.0.as_ref()) & 0x000f_ffff
    }

    /// Bytes after the fixed header.
    #[inline(always)]
    pub fn payload_len(&self) -> u16 {
        PAYLOAD_LENGTH.number(self.0.as_ref())
    }

    /// Bytes of fixed header and payload together.
    #[inline(always)]
    pub fn total_len(&self) -> usize {
        HEADER + usize::from(self.payload_len())
    }

    /// The first header of the payload: see [`super::ipv4::protocol`].
    #[inline(always)]
    pub fn next_header(&self) -> u8 {
        NEXT_HEADER.number(self.0.as_ref())
    }

    /// The hops left.
    #[inline(always)]
    pub fn hop_limit(&self) -> u8 {
        HOP_LIMIT.number(self.0.as_ref())
    }

    /// The source address.
    #[inline(always)]
    pub fn source(&self) -> u128 {
        SOURCE.number(self.0.as_ref())
    }

    /// The destination address.
    #[inline(always)]
    pub fn destination(&self) -> u128 {
        DESTINATION.number(self.0.as_ref())
    }

    /// All bytes of the view.
    pub fn bytes(&self) -> &[u8] {
        self.0.as_ref()
    }

    /// The payload, up to the payload length.
    pub fn payload(&self) -> &[u8] {
        &self.0.as_ref()[HEADER..self.total_len()]
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Ipv6Packet<T> {
    /// Sets version 6, traffic class and flow label (20 bits).
    pub fn set_class_and_flow(&mut self, traffic_class: u8, flow_label: u32) {
        let word = 6 << 28 | u32::from(traffic_class) << 20 | flow_label & 0x000f_ffff;
        VERSION_CLASS_FLOW.set_number(self.0.as_mut(), word);
    }

    /// Sets the bytes after the fixed header.
    pub fn set_payload_len(&mut self, len: u16) {
        PAYLOAD_LENGTH.set_number(self.0.as_mut(), len);
    }

    /// Sets the first header of the payload.
    pub fn set_next_header(&mut self, next_header: u8) {
        NEXT_HEADER.set_number(self.0.as_mut(), next_header);
    }

    /// Sets the hops left.
    #[inline(always)]
    pub fn set_hop_limit(&mut self, hops: u8) {
        HOP_LIMIT.set_number(self.0.as_mut(), hops);
    }

    /// Decrements the hop limit, which must not be 0.
    #[inline(always)]
    pub fn decrement_hop_limit(&mut self) {
        self.set_hop_limit(self.hop_limit().wrapping_sub(1));
    }

    /// Sets the source address.
    #[inline(always)]
    pub fn set_source(&mut self, addr: u128) {
        SOURCE.set_number(self.0.as_mut(), addr);
    }

    /// Sets the destination address.
    #[inline(always)]
    pub fn set_destination(&mut self, addr: u128) {
        DESTINATION.set_number(self.0.as_mut(), addr);
    }
}

#[cfg(test)]
mod tests {
    use super::super::ipv4::protocol;
    use super::*;

    fn sample() -> [u8; 48] {
        let mut bytes = [0; 48];
        let mut packet = Ipv6Packet::new_unchecked(&mut bytes);
        packet.set_class_and_flow(0xb8, 0x12345);
        packet.set_payload_len(8);
        packet.set_next_header(protocol::UDP);
        packet.set_hop_limit(64);
        packet.set_source(0x2001_0002 << 96 | 1);
        packet.set_destination(0x2001_0002 << 96 | 2);
        bytes
    }

    #[test]
    fn what_is_set_is_read_back() {
        let mut bytes = sample();
        let mut packet = Ipv6Packet::new_checked(&mut bytes).unwrap();
        assert_eq!((packet.version(), packet.traffic_class(), packet.flow_label()), (6, 0xb8, 0x12345));
        assert_eq!((packet.payload_len(), packet.payload().len()), (8, 8));
        assert_eq!((packet.source(), packet.destination()), (0x2001_0002 << 96 | 1, 0x2001_0002 << 96 | 2));
        packet.decrement_hop_limit();
        assert_eq!((packet.hop_limit(), packet.next_header()), (63, protocol::UDP));
    }

    #[test]
    fn lengths_beyond_the_bytes_are_refused() {
        let bytes = sample();
        assert!(matches!(Ipv6Packet::new_checked(&bytes[..39]), Err(Malformed::TooShort { need: 40, .. })));
        assert!(matches!(
            Ipv6Packet::new_checked(&bytes[..47]),
            Err(Malformed::TotalLength { found: 48, have: 47, .. })
        ));
        let mut other = bytes;
        other[0] = 0x45;
        assert!(matches!(Ipv6Packet::new_checked(&other), Err(Malformed::Version { found: 4, .. })));
    }
}
