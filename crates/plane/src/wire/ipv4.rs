//! The IPv4 header, RFC 791.

use super::{Field, Malformed, check_len, checksum};

/// Bytes of a header without options.
pub const HEADER: usize = 20;

const VERSION_IHL: Field<1> = Field(0);
const TYPE_OF_SERVICE: Field<1> = Field(1);
const TOTAL_LENGTH: Field<2> = Field(2);
const IDENTIFICATION: Field<2> = Field(4);
const FRAGMENT: Field<2> = Field(6);
const TTL: Field<1> = Field(8);
const PROTOCOL: Field<1> = Field(9);
const CHECKSUM: Field<2> = Field(10);
const SOURCE: Field<4> = Field(12);
const DESTINATION: Field<4> = Field(16);

/// IANA's protocol numbers, which IPv6 shares.
pub mod protocol {
    /// ICMP.
    pub const ICMP: u8 = 1;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// ICMPv6.
    pub const ICMPV6: u8 = 58;
}

/// A view of a packet from its header on. Addresses and lengths are in host byte order.
#[derive(Clone, Copy, Debug)]
pub struct Ipv4Packet<T>(T);

impl<T: AsRef<[u8]>> Ipv4Packet<T> {
    /// A view whose accessors panic where `bytes` is too short.
    #[inline(always)]
    pub const fn new_unchecked(bytes: T) -> Ipv4Packet<T> {
        Ipv4Packet(bytes)
    }

    /// A view none of whose accessors can panic: version, header length and total length are correct; the checksum is not
    /// verified.
    pub fn new_checked(bytes: T) -> Result<Ipv4Packet<T>, Malformed> {
        let header = "IPv4";
        check_len(header, bytes.as_ref(), HEADER)?;
        let have = bytes.as_ref().len();
        let packet = Ipv4Packet(bytes);
        if packet.version() != 4 {
            return Err(Malformed::Version { header, found: packet.version() });
        }
        let len = packet.header_len();
        if len < HEADER || len > have {
            return Err(Malformed::HeaderLength { header, found: len, have });
        }
        let found = usize::from(packet.total_len());
        if found < len || found > have {
            return Err(Malformed::TotalLength { header, found, have });
        }
        Ok(packet)
    }

    /// The version field: 4 in a correct header.
    #[inline(always)]
    pub fn version(&self) -> u8 {
        self.version_ihl() >> 4
    }

    /// Version and header length together: 0x45 in a correct header without options.
    #[inline(always)]
    pub fn version_ihl(&self) -> u8 {
        VERSION_IHL.number(self.0.as_ref())
    }

    /// The header's length in bytes, options included.
    #[inline(always)]
    pub fn header_len(&self) -> usize {
        usize::from(self.version_ihl() & 0x0f) * 4
    }

    /// Differentiated services and congestion bits.
    pub fn type_of_service(&self) -> u8 {
        TYPE_OF_SERVICE.number(self.0.as_ref())
    }

    /// Length of header and payload in bytes.
    #[inline(always)]
    pub fn total_len(&self) -> u16 {
        TOTAL_LENGTH.number(self.0.as_ref())
    }

    /// The identification, which all fragments of a packet share.
    pub fn identification(&self) -> u16 {
        IDENTIFICATION.number(self.0.as_ref())
    }

    /// Whether routers may not fragment.
    pub fn dont_fragment(&self) -> bool {
        FRAGMENT.number(self.0.as_ref()) & 0x4000 != 0
    }

    /// Whether more fragments follow.
    pub fn more_fragments(&self) -> bool {
        FRAGMENT.number(self.0.as_ref()) & 0x2000 != 0
    }

    /// The offset of the payload in the whole packet, in bytes.
    pub fn fragment_offset(&self) -> usize {
        usize::from(FRAGMENT.number(self.0.as_ref()) & 0x1fff) * 8
    }

    /// The hops left.
    #[inline(always)]
    pub fn ttl(&self) -> u8 {
        TTL.number(self.0.as_ref())
    }

    /// The protocol of the payload: see [`protocol`].
    #[inline(always)]
    pub fn protocol(&self) -> u8 {
        PROTOCOL.number(self.0.as_ref())
    }

    /// The checksum field.
    #[inline(always)]
    pub fn checksum(&self) -> u16 {
        CHECKSUM.number(self.0.as_ref())
    }

    /// The source address.
    #[inline(always)]
    pub fn source(&self) -> u32 {
        SOURCE.number(self.0.as_ref())
    }

    /// The destination address.
    #[inline(always)]
    pub fn destination(&self) -> u32 {
        DESTINATION.number(self.0.as_ref())
    }

    /// The header, options included.
    pub fn header(&self) -> &[u8] {
        &self.0.as_ref()[..self.header_len()]
    }

    /// The options, padding included; empty in most packets.
    pub fn options(&self) -> &[u8] {
        &self.0.as_ref()[HEADER..self.header_len()]
    }

    /// All bytes of the view.
    pub fn bytes(&self) -> &[u8] {
        self.0.as_ref()
    }

    /// The payload, up to the total length.
    pub fn payload(&self) -> &[u8] {
        &self.0.as_ref()[self.header_len()..usize::from(self.total_len())]
    }

    /// Whether the checksum of the header is correct.
    pub fn verify_checksum(&self) -> bool {
        checksum::Sum::ZERO.bytes(self.header()).verifies()
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Ipv4Packet<T> {
    /// Sets version 4 and the header's length in bytes: a multiple of 4 from 20 to 60.
    pub fn set_header_len(&mut self, len: usize) {
        VERSION_IHL.set_number(self.0.as_mut(), 0x40 | (len / 4) as u8 & 0x0f);
    }

    /// Sets differentiated services and congestion bits.
    pub fn set_type_of_service(&mut self, value: u8) {
        TYPE_OF_SERVICE.set_number(self.0.as_mut(), value);
    }

    /// Sets the length of header and payload in bytes.
    pub fn set_total_len(&mut self, len: u16) {
        TOTAL_LENGTH.set_number(self.0.as_mut(), len);
    }

    /// Sets the identification.
    pub fn set_identification(&mut self, value: u16) {
        IDENTIFICATION.set_number(self.0.as_mut(), value);
    }

    /// Marks the packet as unfragmented, and sets whether routers may fragment it.
    pub fn set_unfragmented(&mut self, dont_fragment: bool) {
        FRAGMENT.set_number(self.0.as_mut(), if dont_fragment { 0x4000 } else { 0 });
    }

    /// Marks the packet as a fragment: its offset, a multiple of 8 bytes, and whether more fragments follow.
    pub fn set_fragment(&mut self, offset: usize, more: bool) {
        let flag = if more { 0x2000 } else { 0 };
        FRAGMENT.set_number(self.0.as_mut(), flag | (offset / 8) as u16 & 0x1fff);
    }

    /// Sets the hops left; the checksum is not touched.
    #[inline(always)]
    pub fn set_ttl(&mut self, ttl: u8) {
        TTL.set_number(self.0.as_mut(), ttl);
    }

    /// Sets the protocol of the payload.
    pub fn set_protocol(&mut self, protocol: u8) {
        PROTOCOL.set_number(self.0.as_mut(), protocol);
    }

    /// Sets the checksum field.
    #[inline(always)]
    pub fn set_checksum(&mut self, value: u16) {
        CHECKSUM.set_number(self.0.as_mut(), value);
    }

    /// Sets the source address.
    #[inline(always)]
    pub fn set_source(&mut self, addr: u32) {
        SOURCE.set_number(self.0.as_mut(), addr);
    }

    /// Sets the destination address.
    #[inline(always)]
    pub fn set_destination(&mut self, addr: u32) {
        DESTINATION.set_number(self.0.as_mut(), addr);
    }

    /// Computes the checksum of the header.
    pub fn fill_checksum(&mut self) {
        self.set_checksum(0);
        let value = checksum::checksum(self.header());
        self.set_checksum(value);
    }

    /// Decrements the TTL, which must not be 0, and updates the checksum (RFC 1624).
    #[inline(always)]
    pub fn decrement_ttl(&mut self) {
        let checksum = checksum::after_hop(self.checksum());
        self.set_ttl(self.ttl().wrapping_sub(1));
        self.set_checksum(checksum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample() -> [u8; 28] {
        let mut bytes = [0; 28];
        let mut packet = Ipv4Packet::new_unchecked(&mut bytes);
        packet.set_header_len(24);
        packet.set_total_len(28);
        packet.set_ttl(64);
        packet.set_protocol(protocol::UDP);
        packet.set_source(0xc612_0a01);
        packet.set_destination(0xc613_0a01);
        packet.fill_checksum();
        bytes
    }

    #[test]
    fn what_is_set_is_read_back() {
        let bytes = sample();
        let packet = Ipv4Packet::new_checked(&bytes).unwrap();
        assert_eq!((packet.version(), packet.header_len(), packet.total_len()), (4, 24, 28));
        assert_eq!((packet.ttl(), packet.protocol()), (64, protocol::UDP));
        assert_eq!((packet.source(), packet.destination()), (0xc612_0a01, 0xc613_0a01));
        assert_eq!((packet.options().len(), packet.payload().len()), (4, 4));
        assert!(packet.verify_checksum());
    }

    #[test]
    fn lengths_beyond_the_bytes_are_refused() {
        let refuse = |change: &dyn Fn(&mut [u8; 28]), have: usize| {
            let mut bytes = sample();
            change(&mut bytes);
            Ipv4Packet::new_checked(&bytes[..have]).map(|_| ()).unwrap_err()
        };
        assert!(matches!(refuse(&|_| (), 19), Malformed::TooShort { have: 19, need: 20, .. }));
        assert!(matches!(refuse(&|b| b[0] = 0x65, 28), Malformed::Version { found: 6, .. }));
        assert!(matches!(refuse(&|b| b[0] = 0x44, 28), Malformed::HeaderLength { found: 16, .. }));
        assert!(matches!(refuse(&|b| b[0] = 0x4f, 28), Malformed::HeaderLength { found: 60, .. }));
        assert!(matches!(refuse(&|b| b[3] = 23, 28), Malformed::TotalLength { found: 23, .. }));
        assert!(matches!(refuse(&|b| b[3] = 29, 28), Malformed::TotalLength { found: 29, .. }));
        assert!(matches!(refuse(&|_| (), 27), Malformed::TotalLength { found: 28, have: 27, .. }));
    }

    #[test]
    fn fragment_fields_are_read() {
        let mut bytes = sample();
        bytes[6..8].copy_from_slice(&0x2003u16.to_be_bytes());
        let packet = Ipv4Packet::new_checked(&bytes).unwrap();
        assert_eq!(
            (packet.dont_fragment(), packet.more_fragments(), packet.fragment_offset()),
            (false, true, 24)
        );
    }

    proptest! {
        #[test]
        fn decrementing_equals_recomputing(mut header in any::<[u8; 20]>(), ttl in 1u8..) {
            header[0] = 0x45;
            let mut packet = Ipv4Packet::new_unchecked(&mut header);
            packet.set_ttl(ttl);
            packet.fill_checksum();
            packet.decrement_ttl();
            let incremental = packet.checksum();
            packet.fill_checksum();
            prop_assert_eq!((packet.ttl(), packet.checksum()), (ttl - 1, incremental));
        }

        #[test]
        fn a_checked_view_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(packet) = Ipv4Packet::new_checked(&bytes) {
                prop_assert!(packet.options().len() + packet.payload().len() + HEADER <= bytes.len());
                packet.verify_checksum();
            }
        }
    }
}
