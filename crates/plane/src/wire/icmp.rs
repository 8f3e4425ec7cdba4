//! ICMP for IPv4, RFC 792 and RFC 1191.

use super::checksum::{self, Sum};
pub use super::icmp_message::HEADER;
use super::icmp_message::{self, IcmpKind};

/// The messages that a router sends or answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Icmpv4Kind {
    /// The answer to an echo request.
    EchoReply,
    /// No route to the destination's network.
    NetUnreachable,
    /// The neighbour on the destination's link does not answer.
    HostUnreachable,
    /// The destination does not handle the protocol.
    ProtocolUnreachable,
    /// No program listens on the port.
    PortUnreachable,
    /// The packet is too big for the next link and must not be fragmented.
    FragmentationNeeded,
    /// A source route could not be followed.
    SourceRouteFailed,
    /// A filter prohibits the packet (RFC 1812, section 5.2.7.1).
    Prohibited,
    /// A better first router to this host is on the sender's link.
    Redirect,
    /// Asks for an echo reply.
    EchoRequest,
    /// The TTL was used up in transit.
    TimeExceeded,
    /// The header is not understood.
    ParameterProblem,
    /// Any other message: type, code.
    Other(u8, u8),
}

impl IcmpKind for Icmpv4Kind {
    const PROTOCOL: &'static str = "ICMP";
    const NAMED: &'static [(Icmpv4Kind, u8, u8)] = &[
        (Icmpv4Kind::EchoReply, 0, 0),
        (Icmpv4Kind::NetUnreachable, 3, 0),
        (Icmpv4Kind::HostUnreachable, 3, 1),
        (Icmpv4Kind::ProtocolUnreachable, 3, 2),
        (Icmpv4Kind::PortUnreachable, 3, 3),
        (Icmpv4Kind::FragmentationNeeded, 3, 4),
        (Icmpv4Kind::SourceRouteFailed, 3, 5),
        (Icmpv4Kind::Prohibited, 3, 13),
        (Icmpv4Kind::Redirect, 5, 1),
        (Icmpv4Kind::EchoRequest, 8, 0),
        (Icmpv4Kind::TimeExceeded, 11, 0),
        (Icmpv4Kind::ParameterProblem, 12, 0),
    ];

    fn other(kind: u8, code: u8) -> Icmpv4Kind {
        Icmpv4Kind::Other(kind, code)
    }

    fn other_numbers(self) -> (u8, u8) {
        if let Icmpv4Kind::Other(kind, code) = self { (kind, code) } else { (0, 0) }
    }
}

impl Icmpv4Kind {
    /// Whether no error may answer it, because it is an error itself or of an unknown type (RFC 1122, section 3.2.2; RFC
    /// 1812, section 4.3.2.7).
    pub fn is_error(self) -> bool {
        !matches!(self.type_and_code().0, 0 | 8 | 9 | 10 | 13..=18)
    }
}

/// A view of an ICMP message from its header on.
pub type Icmpv4Message<T> = icmp_message::IcmpMessage<T, Icmpv4Kind>;

impl<T: AsRef<[u8]>> Icmpv4Message<T> {
    /// Of "fragmentation needed": the MTU of the next link; 0 from routers older than RFC 1191.
    pub fn next_hop_mtu(&self) -> u16 {
        self.sequence()
    }

    /// Whether the checksum is correct; the bytes must end where the IPv4 packet ends, without padding.
    pub fn verify_checksum(&self) -> bool {
        Sum::ZERO.bytes(self.bytes.as_ref()).verifies()
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Icmpv4Message<T> {
    /// Clears the unused bytes of an error, and sets the MTU of the next hop (0 where it does not apply).
    pub fn set_next_hop_mtu(&mut self, mtu: u16) {
        self.set_rest(mtu.into());
    }

    /// Computes the checksum.
    pub fn fill_checksum(&mut self) {
        self.set_checksum(0);
        let value = checksum::checksum(self.bytes.as_ref());
        self.set_checksum(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_their_numbers_agree() {
        icmp_message::check_numbers::<Icmpv4Kind>();
        assert!(Icmpv4Kind::TimeExceeded.is_error() && !Icmpv4Kind::EchoRequest.is_error());
    }

    #[test]
    fn what_is_set_is_read_back() {
        let mut bytes = [0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3];
        let mut message = Icmpv4Message::new_checked(&mut bytes).unwrap();
        message.set_kind(Icmpv4Kind::EchoRequest);
        message.set_echo(77, 3);
        message.fill_checksum();
        assert_eq!(
            (message.kind(), message.identifier(), message.sequence()),
            (Icmpv4Kind::EchoRequest, 77, 3)
        );
        assert!(message.verify_checksum());
        message.set_kind(Icmpv4Kind::FragmentationNeeded);
        message.set_next_hop_mtu(1400);
        assert_eq!((message.next_hop_mtu(), message.payload()), (1400, &[1, 2, 3][..]));
        assert!(!message.verify_checksum());
        assert!(Icmpv4Message::new_checked(&[0; 7]).is_err());
    }
}
