//! ARP for IPv4 over Ethernet, RFC 826.

use super::ethernet::Mac;
use super::{Field, Malformed, check_len};

/// Bytes of a packet.
pub const LEN: usize = 28;

/// Hardware type Ethernet, protocol type IPv4, and the lengths of their addresses.
const KIND: Field<6> = Field(0);
const ETHERNET_AND_IPV4: [u8; 6] = [0, 1, 8, 0, 6, 4];
const OPERATION: Field<2> = Field(6);
const SENDER_MAC: Field<6> = Field(8);
const SENDER: Field<4> = Field(14);
const TARGET_MAC: Field<6> = Field(18);
const TARGET: Field<4> = Field(24);

/// The operation of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArpOperation {
    /// Asks for the MAC address of the target.
    Request,
    /// Answers with the MAC address of the sender.
    Reply,
}

/// An ARP packet for IPv4 over Ethernet. Addresses are in host byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArpPacket {
    /// Request or reply.
    pub operation: ArpOperation,
    /// The MAC address of the sender.
    pub sender_mac: Mac,
    /// The address of the sender; 0 in a probe whether an address is free (RFC 5227).
    pub sender: u32,
    /// The MAC address of the target; meaningless in a request.
    pub target_mac: Mac,
    /// The address of the target.
    pub target: u32,
}

impl ArpPacket {
    /// Reads a packet; `Ok(None)` if it has other address families or another operation.
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

    /// The bytes of the packet.
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
    fn packets_are_read_back() {
        for operation in [ArpOperation::Request, ArpOperation::Reply] {
            let packet = ArpPacket {
                operation,
                sender_mac: Mac([2; 6]),
                sender: 0xc000_0201,
                target_mac: Mac([4; 6]),
                target: 0xc000_0202,
            };
            assert_eq!(ArpPacket::parse(&packet.bytes()), Ok(Some(packet)));
        }
    }

    #[test]
    fn other_families_and_operations_are_ignored() {
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
