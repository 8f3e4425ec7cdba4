use super::protocol::{self, has_ports};
use crate::address::{Address, Family};

/// Which way a packet passes an interface. A forwarded packet is filtered twice: in, then out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Direction {
    In,
    Out,
}

impl Direction {
    #[inline]
    pub const fn opposite(self) -> Self {
        match self {
            Direction::In => Direction::Out,
            Direction::Out => Direction::In,
        }
    }
}

/// The number that stands for no interface.
pub const NO_INTERFACE: u16 = u16::MAX;

/// One of the two times at which a packet is filtered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    pub direction: Direction,
    /// The interface that the packet arrives at, or leaves by.
    pub interface: u16,
    /// The interface that it arrived at; [`NO_INTERFACE`] if this host made it.
    pub received_on: u16,
}

/// Which part of a datagram a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fragment {
    Whole,
    /// Offset zero, with more to follow: it has the transport header.
    First {
        id: u32,
    },
    /// No transport header.
    Later {
        id: u32,
    },
}

/// The header of a TCP segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpSegment {
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub window: u16,
    /// The bytes after the header.
    pub payload: u16,
    /// The window scale option of a segment with SYN (RFC 7323).
    pub scale: Option<u8>,
}

/// The header of an ICMP or ICMPv6 message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpMessage {
    pub kind: u8,
    pub code: u8,
    /// The identifier of a query or its answer, else zero.
    pub id: u16,
    /// Whether it is a request or an answer with an identifier.
    pub is_query: bool,
}

/// The part of the header that depends on the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Tcp(TcpSegment),
    Icmp(IcmpMessage),
    /// UDP and all other protocols, and fragments without a transport header.
    Other,
}

/// The packet that an ICMP error quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted {
    pub source: Address,
    pub destination: Address,
    pub source_port: u16,
    pub destination_port: u16,
    pub protocol: u8,
    /// The sequence number of a quoted TCP segment.
    pub seq: u32,
}

/// What a filter sees of a packet in one pass. What most packets need comes first, within 80 bytes, so that a burst of them
/// takes little of the nearest cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Packet {
    pub source: Address,
    pub destination: Address,
    /// Zero without ports.
    pub source_port: u16,
    pub destination_port: u16,
    pub pass: Pass,
    pub family: Family,
    pub protocol: u8,
    /// The length that the IP header states, with the header.
    pub length: u16,
    /// The tag that an earlier rule set, or zero; with ipfw the bits of all tags. The caller carries it from the pass in to
    /// the pass out.
    pub tag: u16,
    pub tos: u8,
    pub ttl: u8,
    /// IPv4 options, or a routing header of IPv6: what may lead a packet elsewhere than its destination says.
    pub has_options: bool,
    /// Other extension headers of IPv6 than those and a fragment header.
    pub has_extensions: bool,
    pub fragment: Fragment,
    pub transport: Transport,
    pub quoted: Option<Quoted>,
}

const _: () = assert!(std::mem::offset_of!(Packet, quoted) <= 80);

impl Packet {
    /// What packets are read into.
    pub const NOTHING: Packet = Packet {
        source: Address(0),
        destination: Address(0),
        source_port: 0,
        destination_port: 0,
        pass: Pass { direction: Direction::In, interface: NO_INTERFACE, received_on: NO_INTERFACE },
        family: Family::Inet,
        protocol: 0,
        length: 0,
        tag: 0,
        tos: 0,
        ttl: 0,
        has_options: false,
        has_extensions: false,
        fragment: Fragment::Whole,
        transport: Transport::Other,
        quoted: None,
    };

    /// What distinguishes flows between two addresses: the ports, or the identifier of an ICMP query at both ends.
    #[inline]
    pub fn flow_ports(&self) -> (u16, u16) {
        match self.transport {
            Transport::Icmp(message) => (message.id, message.id),
            _ => (self.source_port, self.destination_port),
        }
    }

    /// Whether the packet belongs to a protocol with ports and has them.
    #[inline]
    pub fn shows_ports(&self) -> bool {
        has_ports(self.protocol) && !matches!(self.fragment, Fragment::Later { .. })
    }

    /// The TCP header, if there is one.
    #[inline]
    pub fn tcp(&self) -> Option<&TcpSegment> {
        match &self.transport {
            Transport::Tcp(segment) => Some(segment),
            _ => None,
        }
    }

    /// The ICMP or ICMPv6 header, if there is one.
    #[inline]
    pub fn icmp(&self) -> Option<&IcmpMessage> {
        match &self.transport {
            Transport::Icmp(message) => Some(message),
            _ => None,
        }
    }

    /// Whether it is any fragment of a datagram.
    #[inline]
    pub fn is_fragment(&self) -> bool {
        self.fragment != Fragment::Whole
    }

    /// A UDP packet between two ends, from which examples and tests start.
    pub fn udp(pass: Pass, source: (Address, u16), destination: (Address, u16)) -> Self {
        Packet {
            pass,
            family: source.0.family(),
            protocol: protocol::UDP,
            source: source.0,
            destination: destination.0,
            source_port: source.1,
            destination_port: destination.1,
            length: 60,
            tos: 0,
            ttl: 64,
            has_options: false,
            has_extensions: false,
            fragment: Fragment::Whole,
            transport: Transport::Other,
            quoted: None,
            tag: 0,
        }
    }
}
