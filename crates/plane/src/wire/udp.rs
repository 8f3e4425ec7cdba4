//! UDP, RFC 768.

use super::checksum::Sum;
use super::{Field, Malformed, check_len};

/// Bytes of the header.
pub const HEADER: usize = 8;

const SOURCE_PORT: Field<2> = Field(0);
const DESTINATION_PORT: Field<2> = Field(2);
const LENGTH: Field<2> = Field(4);
const CHECKSUM: Field<2> = Field(6);

/// A view of a datagram from its header on.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<T>(T);

impl<T: AsRef<[u8]>> Datagram<T> {
    /// A view whose accessors panic where `bytes` is too short.
    #[inline(always)]
    pub const fn new_unchecked(bytes: T) -> Datagram<T> {
        Datagram(bytes)
    }

    /// A view none of whose accessors can panic: the length is correct.
    pub fn new_checked(bytes: T) -> Result<Datagram<T>, Malformed> {
        let header = "UDP";
        check_len(header, bytes.as_ref(), HEADER)?;
        let have = bytes.as_ref().len();
        let datagram = Datagram(bytes);
        let found = usize::from(datagram.length());
        if found < HEADER || found > have {
            return Err(Malformed::TotalLength { header, found, have });
        }
        Ok(datagram)
    }

    /// The sender's port.
    #[inline(always)]
    pub fn source_port(&self) -> u16 {
        SOURCE_PORT.number(self.0.as_ref())
    }

    /// The receiver's port.
    #[inline(always)]
    pub fn destination_port(&self) -> u16 {
        DESTINATION_PORT.number(self.0.as_ref())
    }

    /// Bytes of header and payload.
    #[inline(always)]
    pub fn length(&self) -> u16 {
        LENGTH.number(self.0.as_ref())
    }

    /// The checksum field; 0 means no checksum.
    #[inline(always)]
    pub fn checksum(&self) -> u16 {
        CHECKSUM.number(self.0.as_ref())
    }

    /// The payload.
    pub fn payload(&self) -> &[u8] {
        &self.0.as_ref()[HEADER..usize::from(self.length())]
    }

    /// Whether the checksum is correct, given the sum of the pseudo header. A datagram without a checksum counts as
    /// correct; over IPv6 the caller has to refuse it (RFC 8200, section 8.1).
    pub fn verify_checksum(&self, pseudo: Sum) -> bool {
        self.checksum() == 0 || self.sum(pseudo).verifies()
    }

    fn sum(&self, pseudo: Sum) -> Sum {
        pseudo.bytes(&self.0.as_ref()[..usize::from(self.length())])
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Datagram<T> {
    /// Sets the sender's port.
    #[inline(always)]
    pub fn set_source_port(&mut self, port: u16) {
        SOURCE_PORT.set_number(self.0.as_mut(), port);
    }

    /// Sets the receiver's port.
    #[inline(always)]
    pub fn set_destination_port(&mut self, port: u16) {
        DESTINATION_PORT.set_number(self.0.as_mut(), port);
    }

    /// Sets the bytes of header and payload.
    pub fn set_length(&mut self, length: u16) {
        LENGTH.set_number(self.0.as_mut(), length);
    }

    /// Sets the checksum field.
    #[inline(always)]
    pub fn set_checksum(&mut self, value: u16) {
        CHECKSUM.set_number(self.0.as_mut(), value);
    }

    /// Computes the checksum. A sum of 0 is sent as 0xffff, because 0 means no checksum.
    pub fn fill_checksum(&mut self, pseudo: Sum) {
        self.set_checksum(0);
        let value = self.sum(pseudo).checksum();
        self.set_checksum(if value == 0 { 0xffff } else { value });
    }
}

#[cfg(test)]
mod tests {
    use super::super::checksum::{pseudo_ipv4, pseudo_ipv6};
    use super::*;

    fn sample() -> [u8; 11] {
        let mut bytes = [0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3];
        let mut datagram = Datagram::new_unchecked(&mut bytes);
        datagram.set_source_port(2000);
        datagram.set_destination_port(2001);
        datagram.set_length(11);
        bytes
    }

    #[test]
    fn what_is_set_is_read_back() {
        let bytes = sample();
        let datagram = Datagram::new_checked(&bytes).unwrap();
        assert_eq!(
            (datagram.source_port(), datagram.destination_port(), datagram.payload()),
            (2000, 2001, &[1, 2, 3][..])
        );
        assert!(datagram.verify_checksum(Sum::ZERO), "0 means no checksum");
        assert!(Datagram::new_checked(&bytes[..10]).is_err());
        assert!(Datagram::new_checked(&[0; 8]).is_err());
    }

    #[test]
    fn checksums_cover_the_pseudo_header_of_either_family() {
        for pseudo in [pseudo_ipv4(0xc612_0001, 0xc613_0001, 17, 11), pseudo_ipv6(1 << 125, 1 << 124, 17, 11)]
        {
            let mut bytes = sample();
            Datagram::new_unchecked(&mut bytes).fill_checksum(pseudo);
            assert!(Datagram::new_unchecked(&bytes).verify_checksum(pseudo));
            assert!(!Datagram::new_unchecked(&bytes).verify_checksum(pseudo.word(1)));
        }
    }

    #[test]
    fn a_sum_of_zero_is_sent_as_all_ones() {
        let mut bytes = sample();
        Datagram::new_unchecked(&mut bytes).fill_checksum(Sum::ZERO);
        let rest = Datagram::new_unchecked(&bytes).checksum();
        Datagram::new_unchecked(&mut bytes).fill_checksum(Sum::ZERO.word(rest));
        assert_eq!(Datagram::new_unchecked(&bytes).checksum(), 0xffff);
    }
}
