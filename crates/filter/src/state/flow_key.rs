use crate::address::Address;
use crate::packet::{Packet, Quoted};

/// What identifies a flow, as one of its packets shows it.
#[derive(Clone, Copy, Debug)]
pub struct FlowKey {
    pub source: Address,
    pub destination: Address,
    pub source_port: u16,
    pub destination_port: u16,
    pub protocol: u8,
}

/// Compares numbers and branches once: a derived comparison calls `memcmp`.
impl PartialEq for FlowKey {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        let addresses = (self.source.0 ^ other.source.0) | (self.destination.0 ^ other.destination.0);
        (addresses == 0) & (self.ends() == other.ends())
    }
}

impl Eq for FlowKey {}

impl FlowKey {
    /// All but the addresses.
    #[inline(always)]
    fn ends(&self) -> u64 {
        u64::from(self.source_port) | u64::from(self.destination_port) << 16 | u64::from(self.protocol) << 32
    }

    /// The key of a packet.
    #[inline]
    pub fn of(packet: &Packet) -> Self {
        let (source_port, destination_port) = packet.flow_ports();
        FlowKey {
            source: packet.source,
            destination: packet.destination,
            source_port,
            destination_port,
            protocol: packet.protocol,
        }
    }

    /// The key of the packet that an ICMP error quotes.
    pub fn quoted(quoted: &Quoted) -> Self {
        FlowKey {
            source: quoted.source,
            destination: quoted.destination,
            source_port: quoted.source_port,
            destination_port: quoted.destination_port,
            protocol: quoted.protocol,
        }
    }

    /// The key without addresses, ports and a protocol.
    pub(super) const NOTHING: FlowKey = FlowKey {
        source: Address(0),
        destination: Address(0),
        source_port: 0,
        destination_port: 0,
        protocol: 0,
    };

    /// The key of packets that go the other way.
    #[inline]
    pub const fn reversed(self) -> Self {
        FlowKey {
            source: self.destination,
            destination: self.source,
            source_port: self.destination_port,
            destination_port: self.source_port,
            protocol: self.protocol,
        }
    }
}
