//! ARP for IPv4 over Ethernet, RFC 826.

use super::ethernet::Mac;
use super::{Field, Malformed, check_len};

/// Bytes of a message.
pub const LEN: usize = 28;

/// Hardware type Ethernet, protocol type IPv4, and the lengths of their addresses.
const KIND: Field<6> = Field(0);
const ETHERNET_AND_IPV4: [u8; 6] = [0, 1, 8, 0, 6, 4];
const OPERATION: Field<2> = Field(6);
const SENDER_MAC: Field<6> = Field(8);
const SENDER: Field<4> = Field(14);
const TARGET_MAC: Field<6> = Field(18);
const TARGET: Field<4> = Field(24);

/// What a message wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArpOperation {
    /// Who has the target address?
    Request,
    /// The sender has its address.
    Reply,
}

/// A message about IPv4 over Ethernet. Addresses are in host byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArpPacket {
    /// What it wants.
    pub operation: ArpOperation,
    /// From which station.
    pub sender_mac: Mac,
    /// From whom; 0 from a station that only asks whether an address is free (RFC 5227).
    pub sender: u32,
    /// To which station: of no meaning in a request.
    pub target_mac: Mac,
    /// About whom.
    pub target: u32,
}

impl ArpPacket {
    /// Reads a message; `Ok(None)` if it speaks of other address families or wants something else.
    pub fn parse(bytes: &[u8]) -> Result<Option<ArpPacket>, Malformed> {
        check_len("ARP", bytes, LEN)?;
        let operation = match OPERATION.number(bytes) {
            1 => ArpOperation::Request,
            2 => ArpOperation::Reply,
            _ => return Ok(None),
        };
        Ok((KIND.get(bytes) == ETHERNET_AND_IPV4).then(|| ArpPacket {
            operation,
            sender_mac: Mac(SENDER_MAC.get(bytes)),
            sender: SENDER.number(bytes),
            target_mac: Mac(TARGET_MAC.get(bytes)),
            target: TARGET.number(bytes),
        }))
    }

    /// The message as it stands in a frame.
    pub fn bytes(&self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        KIND.set(&mut bytes, ETHERNET_AND_IPV4);
        OPERATION.set_number(&mut bytes, if self.operation == ArpOperation::Request { 1 } else { 2 });
        SENDER_MAC.set(&mut bytes, self.sender_mac.0);
        SENDER.set_number(&mut bytes, self.sender);
        TARGET_MAC.set(&mut bytes, self.target_mac.0);
        TARGET.set_number(&mut bytes, self.target);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_the_wire() {
        for operation in [ArpOperation::Request, ArpOperation::Reply] {
            let message = ArpPacket {
                operation,
                sender_mac: Mac([2; 6]),
                sender: 0xc000_0201,
                target_mac: Mac([4; 6]),
                target: 0xc000_0202,
            };
            assert_eq!(ArpPacket::parse(&message.bytes()), Ok(Some(message)));
        }
    }

    #[test]
    fn other_families_and_wishes_are_not_ours() {
        let bytes = ArpPacket {
            operation: ArpOperation::Request,
            sender_mac: Mac([2; 6]),
            sender: 1,
            target_mac: Mac([0; 6]),
            target: 2,
        }
        .bytes();
        for (at, value) in [(1, 6), (2, 0x86), (4, 8), (5, 16), (7, 3), (6, 1)] {
            let mut other = bytes;
            other[at] = value;
            assert_eq!(ArpPacket::parse(&other), Ok(None), "byte {at}");
        }
        assert!(ArpPacket::parse(&bytes[..27]).is_err());
    }
}
