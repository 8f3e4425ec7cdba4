use super::translation::Side;
use crate::address::{Address, Family};
use crate::packet::Packet;

/// What is looked up in a table that is not the whole address of an end. Bits without ones in the mask are zero in what is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupKey {
    /// An address of packets of this family.
    Address(Side, Family, Address),
    /// A port, as a number.
    Port(Side, u32),
    /// The code point, as a number.
    Dscp(u32),
    /// A number that every packet has.
    Number(u32),
}

impl LookupKey {
    /// Among which addresses of a table it is looked up, numbers among those of IPv6: a mask may leave one that looks as if it was
    /// another family's.
    #[inline]
    pub fn family(self) -> Family {
        match self {
            LookupKey::Address(_, family, _) => family,
            _ => Family::Inet6,
        }
    }

    /// What is looked up for the packet; nothing for one that has no such thing.
    #[inline]
    pub fn of(self, packet: &Packet) -> Option<Address> {
        match self {
            LookupKey::Address(side, family, mask) => {
                let address = side.of((packet.source, packet.destination));
                (packet.family == family).then_some(Address(address.0 & mask.0))
            }
            LookupKey::Port(side, mask) => {
                let port = side.of((packet.source_port, packet.destination_port));
                packet.shows_ports().then_some(Address::number(u32::from(port) & mask))
            }
            LookupKey::Dscp(mask) => Some(Address::number(u32::from(packet.tos >> 2) & mask)),
            LookupKey::Number(number) => Some(Address::number(number)),
        }
    }
}
