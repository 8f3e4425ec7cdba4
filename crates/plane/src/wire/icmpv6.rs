//! ICMPv6, RFC 4443, and the message types of neighbour discovery, RFC 4861.

use super::checksum::Sum;
pub use super::icmp_message::HEADER;
use super::icmp_message::{self, IcmpKind};

/// The messages that a router sends or answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Icmpv6Kind {
    /// No route to the destination.
    NoRoute,
    /// A filter prohibits the packet.
    Prohibited,
    /// The destination is beyond the scope of the source address.
    BeyondScope,
    /// The neighbour on the destination's link does not answer.
    AddressUnreachable,
    /// No program listens on the port.
    PortUnreachable,
    /// The packet is too big for the next link.
    PacketTooBig,
    /// The hop limit was used up in transit.
    TimeExceeded,
    /// A field of the header is wrong.
    ParameterProblem,
    /// The next header is of an unknown type.
    UnknownNextHeader,
    /// An option of an unknown type demands this error.
    UnknownOption,
    /// Asks for an echo reply.
    EchoRequest,
    /// The answer to an echo request.
    EchoReply,
    /// A host asks for router advertisements.
    RouterSolicitation,
    /// A router advertises itself.
    RouterAdvertisement,
    /// Asks for a neighbour's MAC address.
    NeighborSolicitation,
    /// Gives the sender's own MAC address.
    NeighborAdvertisement,
    /// A better first router is on the sender's link.
    Redirect,
    /// Any other message: type, code.
    Other(u8, u8),
}

impl IcmpKind for Icmpv6Kind {
    const PROTOCOL: &'static str = "ICMPv6";
    const NAMED: &'static [(Icmpv6Kind, u8, u8)] = &[
        (Icmpv6Kind::NoRoute, 1, 0),
        (Icmpv6Kind::Prohibited, 1, 1),
        (Icmpv6Kind::BeyondScope, 1, 2),
        (Icmpv6Kind::AddressUnreachable, 1, 3),
        (Icmpv6Kind::PortUnreachable, 1, 4),
        (Icmpv6Kind::PacketTooBig, 2, 0),
        (Icmpv6Kind::TimeExceeded, 3, 0),
        (Icmpv6Kind::ParameterProblem, 4, 0),
        (Icmpv6Kind::UnknownNextHeader, 4, 1),
        (Icmpv6Kind::UnknownOption, 4, 2),
        (Icmpv6Kind::EchoRequest, 128, 0),
        (Icmpv6Kind::EchoReply, 129, 0),
        (Icmpv6Kind::RouterSolicitation, 133, 0),
        (Icmpv6Kind::RouterAdvertisement, 134, 0),
        (Icmpv6Kind::NeighborSolicitation, 135, 0),
        (Icmpv6Kind::NeighborAdvertisement, 136, 0),
        (Icmpv6Kind::Redirect, 137, 0),
    ];

    fn other(kind: u8, code: u8) -> Icmpv6Kind {
        Icmpv6Kind::Other(kind, code)
    }

    fn other_numbers(self) -> (u8, u8) {
        if let Icmpv6Kind::Other(kind, code) = self { (kind, code) } else { (0, 0) }
    }
}

impl Icmpv6Kind {
    /// Whether this reports an error: no error message may answer it (RFC 4443, section 2.4 e). Redirects count.
    pub fn is_error(self) -> bool {
        matches!(self.type_and_code().0, 0..128 | 137)
    }
}

/// A view of an ICMPv6 message from its header on.
pub type Icmpv6Message<T> = icmp_message::IcmpMessage<T, Icmpv6Kind>;

impl<T: AsRef<[u8]>> Icmpv6Message<T> {
    /// Of "packet too big": the MTU of the next link.
    pub fn mtu(&self) -> u32 {
        self.rest()
    }

    /// Whether the checksum is correct, given the sum of the pseudo header.
    pub fn verify_checksum(&self, pseudo: Sum) -> bool {
        pseudo.bytes(self.bytes.as_ref()).verifies()
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Icmpv6Message<T> {
    /// Sets the MTU of "packet too big"; 0 in other errors.
    pub fn set_mtu(&mut self, mtu: u32) {
        self.set_rest(mtu);
    }

    /// Computes the checksum, given the sum of the pseudo header.
    pub fn fill_checksum(&mut self, pseudo: Sum) {
        self.set_checksum(0);
        let value = pseudo.bytes(self.bytes.as_ref()).checksum();
        self.set_checksum(value);
    }
}

#[cfg(test)]
mod tests {
    use super::super::checksum::pseudo_ipv6;
    use super::*;

    #[test]
    fn kinds_and_their_numbers_agree() {
        icmp_message::check_numbers::<Icmpv6Kind>();
        assert!(Icmpv6Kind::PacketTooBig.is_error() && !Icmpv6Kind::NeighborSolicitation.is_error());
    }

    #[test]
    fn what_is_set_is_read_back() {
        let mut bytes = [0; 12];
        let pseudo = pseudo_ipv6(1, 2, 58, 12);
        let mut message = Icmpv6Message::new_checked(&mut bytes).unwrap();
        message.set_kind(Icmpv6Kind::EchoReply);
        message.set_echo(9, 1);
        message.fill_checksum(pseudo);
        assert_eq!((message.kind(), message.identifier(), message.sequence()), (Icmpv6Kind::EchoReply, 9, 1));
        assert!(message.verify_checksum(pseudo) && !message.verify_checksum(Sum::ZERO));
        message.set_kind(Icmpv6Kind::PacketTooBig);
        message.set_mtu(1280);
        assert_eq!((message.mtu(), message.payload().len()), (1280, 4));
        assert!(Icmpv6Message::new_checked(&[0; 7]).is_err());
    }
}
