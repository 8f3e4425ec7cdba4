//! The header of TCP (RFC 9293), as far as a router writes it.

use super::checksum::Sum;
use super::{Field, Malformed, check_len};

/// Bytes of a header without options.
pub const HEADER: usize = 20;

const SOURCE_PORT: Field<2> = Field(0);
const DESTINATION_PORT: Field<2> = Field(2);
const SEQUENCE: Field<4> = Field(4);
const ACKNOWLEDGEMENT: Field<4> = Field(8);
const DATA_OFFSET: Field<1> = Field(12);
const FLAGS: Field<1> = Field(13);
const CHECKSUM: Field<2> = Field(16);

/// A view of a segment from its header on.
#[derive(Clone, Copy, Debug)]
pub struct Segment<T>(T);

impl<T: AsRef<[u8]>> Segment<T> {
    /// A view whose accessors panic where `bytes` is too short.
    pub const fn new_unchecked(bytes: T) -> Segment<T> {
        Segment(bytes)
    }

    /// A view none of whose accessors can panic: the header lies within the bytes.
    pub fn new_checked(bytes: T) -> Result<Segment<T>, Malformed> {
        let header = "TCP";
        check_len(header, bytes.as_ref(), HEADER)?;
        let have = bytes.as_ref().len();
        let segment = Segment(bytes);
        let found = segment.header_len();
        if found < HEADER || found > have {
            return Err(Malformed::HeaderLength { header, found, have });
        }
        Ok(segment)
    }

    /// Bytes of the header with its options.
    pub fn header_len(&self) -> usize {
        usize::from(DATA_OFFSET.number(self.0.as_ref()) >> 4) * 4
    }

    /// The sequence number.
    pub fn seq(&self) -> u32 {
        SEQUENCE.number(self.0.as_ref())
    }

    /// The control bits.
    pub fn flags(&self) -> u8 {
        FLAGS.number(self.0.as_ref())
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Segment<T> {
    /// Sets the sequence number.
    pub fn set_seq(&mut self, seq: u32) {
        SEQUENCE.set_number(self.0.as_mut(), seq);
    }

    /// Sets the control bits.
    pub fn set_flags(&mut self, flags: u8) {
        FLAGS.set_number(self.0.as_mut(), flags);
    }

    /// Computes the checksum.
    pub fn fill_checksum(&mut self, pseudo: Sum) {
        CHECKSUM.set_number(self.0.as_mut(), 0);
        let value = pseudo.bytes(self.0.as_ref()).checksum();
        CHECKSUM.set_number(self.0.as_mut(), value);
    }
}

/// A segment without options, payload and window, which is what a reset is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BareSegment {
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// The sequence number.
    pub seq: u32,
    /// The acknowledgement number.
    pub ack: u32,
    /// The control bits.
    pub flags: u8,
}

impl BareSegment {
    /// The bytes, with the checksum that the sum of the pseudo header asks for.
    pub fn bytes(&self, pseudo: Sum) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        SOURCE_PORT.set_number(&mut bytes, self.source_port);
        DESTINATION_PORT.set_number(&mut bytes, self.destination_port);
        SEQUENCE.set_number(&mut bytes, self.seq);
        ACKNOWLEDGEMENT.set_number(&mut bytes, self.ack);
        DATA_OFFSET.set_number(&mut bytes, (HEADER / 4) as u8 * 16);
        FLAGS.set_number(&mut bytes, self.flags);
        Segment::new_unchecked(&mut bytes).fill_checksum(pseudo);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::super::checksum::pseudo_ipv4;
    use super::*;

    #[test]
    fn a_segment_has_its_fields_and_a_correct_checksum() {
        let segment =
            BareSegment { source_port: 80, destination_port: 5000, seq: 1, ack: 0x0102_0304, flags: 0x14 };
        let pseudo = pseudo_ipv4(0xc000_0201, 0xc000_0202, 6, HEADER as u16);
        let bytes = segment.bytes(pseudo);
        assert_eq!(bytes[..16], [0, 80, 0x13, 0x88, 0, 0, 0, 1, 1, 2, 3, 4, 0x50, 0x14, 0, 0]);
        assert!(pseudo.bytes(&bytes).verifies());
    }
}
