//! ICMP for IPv4, RFC 792 and RFC 1191.

use super::{Field, Malformed, check_len, checksum};

/// Bytes of the header.
pub const HEADER: usize = 8;

pub(super) const TYPE: Field<1> = Field(0);
pub(super) const CODE: Field<1> = Field(1);
pub(super) const CHECKSUM: Field<2> = Field(2);
pub(super) const IDENTIFIER: Field<2> = Field(4);
pub(super) const SEQUENCE: Field<2> = Field(6);
/// The next hop's MTU in "fragmentation needed" (RFC 1191, section 4).
const NEXT_HOP_MTU: Field<2> = Field(6);

/// The messages a router sends or answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Answer to an echo request.
    EchoReply,
    /// No route to the destination's network.
    NetUnreachable,
    /// No answer from the destination's link.
    HostUnreachable,
    /// Nobody listens on that port.
    PortUnreachable,
    /// Too big for the next link, and not to be fragmented.
    FragmentationNeeded,
    /// Forbidden by a filter (RFC 1812, section 5.2.7.1).
    Prohibited,
    /// A better first router exists on the sender's link.
    Redirect,
    /// Asks for an answer.
    EchoRequest,
    /// TTL used up in transit.
    TimeExceeded,
    /// The header is not understood.
    ParameterProblem,
    /// Any other message: type, code.
    Other(u8, u8),
}

impl Kind {
    /// The type and code fields.
    pub const fn type_and_code(self) -> (u8, u8) {
        match self {
            Kind::EchoReply => (0, 0),
            Kind::NetUnreachable => (3, 0),
            Kind::HostUnreachable => (3, 1),
            Kind::PortUnreachable => (3, 3),
            Kind::FragmentationNeeded => (3, 4),
            Kind::Prohibited => (3, 13),
            Kind::Redirect => (5, 1),
            Kind::EchoRequest => (8, 0),
            Kind::TimeExceeded => (11, 0),
            Kind::ParameterProblem => (12, 0),
            Kind::Other(kind, code) => (kind, code),
        }
    }

    /// What type and code fields stand for.
    pub const fn from_type_and_code(kind: u8, code: u8) -> Kind {
        match (kind, code) {
            (0, 0) => Kind::EchoReply,
            (3, 0) => Kind::NetUnreachable,
            (3, 1) => Kind::HostUnreachable,
            (3, 3) => Kind::PortUnreachable,
            (3, 4) => Kind::FragmentationNeeded,
            (3, 13) => Kind::Prohibited,
            (5, 1) => Kind::Redirect,
            (8, 0) => Kind::EchoRequest,
            (11, 0) => Kind::TimeExceeded,
            (12, 0) => Kind::ParameterProblem,
            _ => Kind::Other(kind, code),
        }
    }

    /// Whether this reports an error: no error message may answer it (RFC 1122, section 3.2.2).
    pub const fn is_error(self) -> bool {
        matches!(self.type_and_code().0, 3 | 4 | 5 | 11 | 12)
    }
}

/// A message from its header on.
#[derive(Clone, Copy, Debug)]
pub struct Message<T>(T);

impl<T: AsRef<[u8]>> Message<T> {
    /// A view whose accessors panic where `bytes` is too short.
    pub const fn new_unchecked(bytes: T) -> Message<T> {
        Message(bytes)
    }

    /// A view none of whose accessors can panic.
    pub fn new_checked(bytes: T) -> Result<Message<T>, Malformed> {
        check_len("ICMP", bytes.as_ref(), HEADER)?;
        Ok(Message(bytes))
    }

    /// What it says.
    pub fn kind(&self) -> Kind {
        let bytes = self.0.as_ref();
        Kind::from_type_and_code(TYPE.number(bytes), CODE.number(bytes))
    }

    /// Of an echo: which sender asks.
    pub fn identifier(&self) -> u16 {
        IDENTIFIER.number(self.0.as_ref())
    }

    /// Of an echo: which question.
    pub fn sequence(&self) -> u16 {
        SEQUENCE.number(self.0.as_ref())
    }

    /// Of "fragmentation needed": the longest IPv4 packet the next link takes; 0 from routers older than RFC 1191.
    pub fn next_hop_mtu(&self) -> u16 {
        NEXT_HOP_MTU.number(self.0.as_ref())
    }

    /// An echo's data, or the start of the packet an error is about.
    pub fn payload(&self) -> &[u8] {
        &self.0.as_ref()[HEADER..]
    }

    /// Whether the message is undamaged; `bytes` must end where the IPv4 packet ends, without padding.
    pub fn verify_checksum(&self) -> bool {
        checksum::Sum::ZERO.bytes(self.0.as_ref()).verifies()
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Message<T> {
    /// Sets type and code.
    pub fn set_kind(&mut self, kind: Kind) {
        let (kind, code) = kind.type_and_code();
        TYPE.set_number(self.0.as_mut(), kind);
        CODE.set_number(self.0.as_mut(), code);
    }

    /// Sets identifier and sequence number of an echo.
    pub fn set_echo(&mut self, identifier: u16, sequence: u16) {
        IDENTIFIER.set_number(self.0.as_mut(), identifier);
        SEQUENCE.set_number(self.0.as_mut(), sequence);
    }

    /// Clears what an error leaves unused, and sets the next hop's MTU (0 where it does not apply).
    pub fn set_next_hop_mtu(&mut self, mtu: u16) {
        IDENTIFIER.set_number(self.0.as_mut(), 0);
        NEXT_HOP_MTU.set_number(self.0.as_mut(), mtu);
    }

    /// Sums the message up anew.
    pub fn fill_checksum(&mut self) {
        CHECKSUM.set_number(self.0.as_mut(), 0);
        let value = checksum::checksum(self.0.as_ref());
        CHECKSUM.set_number(self.0.as_mut(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_their_numbers_agree() {
        for kind in 0..=u8::MAX {
            for code in 0..=u8::MAX {
                assert_eq!(Kind::from_type_and_code(kind, code).type_and_code(), (kind, code));
            }
        }
        assert!(Kind::TimeExceeded.is_error() && !Kind::EchoRequest.is_error());
    }

    #[test]
    fn what_is_set_is_read_back() {
        let mut bytes = [0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3];
        let mut message = Message::new_checked(&mut bytes).unwrap();
        message.set_kind(Kind::EchoRequest);
        message.set_echo(77, 3);
        message.fill_checksum();
        assert_eq!((message.kind(), message.identifier(), message.sequence()), (Kind::EchoRequest, 77, 3));
        assert!(message.verify_checksum());
        message.set_kind(Kind::FragmentationNeeded);
        message.set_next_hop_mtu(1400);
        assert_eq!((message.next_hop_mtu(), message.payload()), (1400, &[1, 2, 3][..]));
        assert!(!message.verify_checksum());
        assert!(Message::new_checked(&[0; 7]).is_err());
    }
}
