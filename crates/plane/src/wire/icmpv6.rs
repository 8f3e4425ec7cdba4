//! ICMPv6, RFC 4443, and the message types of neighbour discovery, RFC 4861.

use super::checksum::Sum;
use super::icmp::{CHECKSUM, CODE, IDENTIFIER, SEQUENCE, TYPE};
use super::{Field, Malformed, check_len};

/// Bytes of the header.
pub const HEADER: usize = 8;

/// The MTU in "packet too big".
const MTU: Field<4> = Field(4);

/// The messages a router sends or answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No route to the destination.
    NoRoute,
    /// Forbidden by a filter.
    Prohibited,
    /// No answer from the destination's link.
    AddressUnreachable,
    /// Nobody listens on that port.
    PortUnreachable,
    /// Too big for the next link.
    PacketTooBig,
    /// Hop limit used up in transit.
    TimeExceeded,
    /// The header is not understood.
    ParameterProblem,
    /// Asks for an answer.
    EchoRequest,
    /// Answer to an echo request.
    EchoReply,
    /// A host looks for routers.
    RouterSolicitation,
    /// A router announces itself.
    RouterAdvertisement,
    /// Asks for a neighbour's MAC address.
    NeighborSolicitation,
    /// Tells one's own MAC address.
    NeighborAdvertisement,
    /// A better first router exists on the sender's link.
    Redirect,
    /// Any other message: type, code.
    Other(u8, u8),
}

impl Kind {
    /// The type and code fields.
    pub const fn type_and_code(self) -> (u8, u8) {
        match self {
            Kind::NoRoute => (1, 0),
            Kind::Prohibited => (1, 1),
            Kind::AddressUnreachable => (1, 3),
            Kind::PortUnreachable => (1, 4),
            Kind::PacketTooBig => (2, 0),
            Kind::TimeExceeded => (3, 0),
            Kind::ParameterProblem => (4, 0),
            Kind::EchoRequest => (128, 0),
            Kind::EchoReply => (129, 0),
            Kind::RouterSolicitation => (133, 0),
            Kind::RouterAdvertisement => (134, 0),
            Kind::NeighborSolicitation => (135, 0),
            Kind::NeighborAdvertisement => (136, 0),
            Kind::Redirect => (137, 0),
            Kind::Other(kind, code) => (kind, code),
        }
    }

    /// What type and code fields stand for.
    pub const fn from_type_and_code(kind: u8, code: u8) -> Kind {
        match (kind, code) {
            (1, 0) => Kind::NoRoute,
            (1, 1) => Kind::Prohibited,
            (1, 3) => Kind::AddressUnreachable,
            (1, 4) => Kind::PortUnreachable,
            (2, 0) => Kind::PacketTooBig,
            (3, 0) => Kind::TimeExceeded,
            (4, 0) => Kind::ParameterProblem,
            (128, 0) => Kind::EchoRequest,
            (129, 0) => Kind::EchoReply,
            (133, 0) => Kind::RouterSolicitation,
            (134, 0) => Kind::RouterAdvertisement,
            (135, 0) => Kind::NeighborSolicitation,
            (136, 0) => Kind::NeighborAdvertisement,
            (137, 0) => Kind::Redirect,
            _ => Kind::Other(kind, code),
        }
    }

    /// Whether this reports an error: no error message may answer it (RFC 4443, section 2.4 e). Redirects count.
    pub const fn is_error(self) -> bool {
        matches!(self.type_and_code().0, 0..128 | 137)
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
        check_len("ICMPv6", bytes.as_ref(), HEADER)?;
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

    /// Of "packet too big": the longest packet the next link takes.
    pub fn mtu(&self) -> u32 {
        MTU.number(self.0.as_ref())
    }

    /// An echo's data, or the start of the packet an error is about.
    pub fn payload(&self) -> &[u8] {
        &self.0.as_ref()[HEADER..]
    }

    /// Whether the message is undamaged, `pseudo` being the sum of its pseudo header.
    pub fn verify_checksum(&self, pseudo: Sum) -> bool {
        pseudo.bytes(self.0.as_ref()).verifies()
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

    /// Sets the MTU of "packet too big"; 0 where it does not apply, which is what other errors carry there.
    pub fn set_mtu(&mut self, mtu: u32) {
        MTU.set_number(self.0.as_mut(), mtu);
    }

    /// Sums the message up anew, `pseudo` being the sum of its pseudo header.
    pub fn fill_checksum(&mut self, pseudo: Sum) {
        CHECKSUM.set_number(self.0.as_mut(), 0);
        let value = pseudo.bytes(self.0.as_ref()).checksum();
        CHECKSUM.set_number(self.0.as_mut(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::super::checksum::pseudo_ipv6;
    use super::*;

    #[test]
    fn kinds_and_their_numbers_agree() {
        for kind in 0..=u8::MAX {
            for code in 0..=u8::MAX {
                assert_eq!(Kind::from_type_and_code(kind, code).type_and_code(), (kind, code));
            }
        }
        assert!(Kind::PacketTooBig.is_error() && !Kind::NeighborSolicitation.is_error());
    }

    #[test]
    fn what_is_set_is_read_back() {
        let mut bytes = [0; 12];
        let pseudo = pseudo_ipv6(1, 2, 58, 12);
        let mut message = Message::new_checked(&mut bytes).unwrap();
        message.set_kind(Kind::EchoReply);
        message.set_echo(9, 1);
        message.fill_checksum(pseudo);
        assert_eq!((message.kind(), message.identifier(), message.sequence()), (Kind::EchoReply, 9, 1));
        assert!(message.verify_checksum(pseudo) && !message.verify_checksum(Sum::ZERO));
        message.set_kind(Kind::PacketTooBig);
        message.set_mtu(1280);
        assert_eq!((message.mtu(), message.payload().len()), (1280, 4));
        assert!(Message::new_checked(&[0; 7]).is_err());
    }
}
