//! The flow of a packet, read at constant offsets of its first 64 bytes.

use fullview_filter::address::{Address as FilterAddress, Family};
use fullview_filter::packet::protocol::{ICMP, ICMP6, TCP, UDP};
use fullview_filter::packet::{TcpSegment, is_icmp_query, plain_segment};
use fullview_filter::state::flow::{
    EndParts, FamilyFlows, FlowFinder, Inet6Addresses, InetAddresses, IpStart, SoughtEntry, SoughtFlow,
    WireFlow, WireHasher, is_plain_inet, is_plain_inet6,
};
use fullview_table::Address;

use super::keys::Destination;
use crate::burst::Slot;
use crate::wire::Field;
use crate::wire::ethernet::HEADER as ETHERNET;
use crate::wire::ipv4::{self, Ipv4Packet};
use crate::wire::ipv6::{self, Ipv6Packet};

/// A packet whose headers the parser has checked.
pub(super) struct FlowPacket<A> {
    pub flow: WireFlow<A>,
    /// The length that the filter counts.
    pub length: u16,
    /// Whether it is what all packets of a known flow are: whole, without options, with a hop left.
    pub is_plain: bool,
    /// Whether it is of TCP, so that the states of its flow have to follow it.
    pub is_segment: bool,
}

/// A family whose packets show their flow.
pub(super) trait WireFamily: FamilyFlows {
    /// What is looked up.
    type Key: Address;
    /// The length of the header that all packets of known flows have.
    const HEADER: usize;

    /// The key of an address of this family.
    fn key(address: FilterAddress) -> Self::Key;

    /// The same as a destination of either family.
    fn destination(address: FilterAddress) -> Destination;

    fn read(slot: &Slot) -> FlowPacket<Self>;

    /// The flow of a packet whose entry may count it: as [`Self::read`], for a loop over packets. No entry is of a protocol that
    /// has no known flows, so that is no question here.
    fn seek(slot: &Slot, finder: &FlowFinder<'_, Self>, hasher: impl WireHasher) -> Option<SoughtFlow<Self>>;

    /// The same for four packets, if each has such a flow and four are read at once. Says whether they were.
    fn seek_four(
        slots: [&Slot; 4],
        finder: &FlowFinder<'_, Self>,
        hasher: impl WireHasher,
        sought: (&mut [WireFlow<Self>; 4], &mut [SoughtEntry; 4]),
    ) -> bool;

    /// Which flow a packet that the rules judge may belong to.
    fn judged(slot: &Slot) -> Judged;

    /// The segment in a packet of this length that is of a known flow of TCP, if it is a plain one.
    #[inline(always)]
    fn segment(slot: &Slot, length: u16) -> Option<TcpSegment> {
        let whole = ETHERNET + Self::HEADER..ETHERNET + usize::from(length);
        slot.frame().get(whole).and_then(plain_segment)
    }
}

/// The known flows to which a packet may belong.
pub(super) enum Judged {
    /// The flow of its addresses and ports.
    Flow,
    /// It may not show its ports, or be an ICMP error with options.
    AnyOfAddresses,
    /// It is an ICMP error, which is compared with the windows of the connection that it is about.
    AnyConnection,
    /// It is of a protocol of which no flow is known.
    NoKnownFlow,
}

const INET_LENGTH: Field<2> = Field(ETHERNET + 2);
const INET6_PAYLOAD: Field<2> = Field(ETHERNET + 4);
const INET6_ADDRESSES: Field<32> = Field(ETHERNET + 8);

/// Whether known flows may be of this protocol.
fn has_flow(protocol: u8) -> bool {
    matches!(protocol, UDP | TCP)
}

/// The packet from its IP header on.
#[inline(always)]
fn ip_start(slot: &Slot) -> &IpStart {
    const { assert!(ETHERNET + size_of::<IpStart>() == 64) };
    #[allow(clippy::expect_used)] // the array is longer, asserted above
    slot.head().last_chunk().expect("a head is longer than what begins with the IP header")
}

#[inline(always)]
fn inet6_length(head: &[u8; 64]) -> u16 {
    INET6_PAYLOAD.number(head).wrapping_add(ipv6::HEADER as u16)
}

#[inline(always)]
fn inet6_ends(slot: &Slot) -> EndParts {
    const PORTS: Field<4> = Field(ETHERNET + ipv6::HEADER);
    let head = slot.head();
    EndParts { ports: PORTS.get(head), protocol: head[ETHERNET + 6], interface: slot.interface }
}

impl WireFamily for InetAddresses {
    type Key = u32;
    const HEADER: usize = ipv4::HEADER;

    fn key(address: FilterAddress) -> u32 {
        address.0 as u32
    }

    fn destination(address: FilterAddress) -> Destination {
        Destination::Inet(Self::key(address))
    }

    #[inline(always)]
    fn read(slot: &Slot) -> FlowPacket<InetAddresses> {
        const ADDRESSES: Field<8> = Field(ETHERNET + 12);
        const PORTS: Field<4> = Field(ETHERNET + ipv4::HEADER);
        let head = slot.head();
        let (length, protocol) = (INET_LENGTH.number(head), head[ETHERNET + 9]);
        let is_plain = is_plain_inet(ip_start(slot)) && has_flow(protocol);
        let addresses = InetAddresses::from_wire(ADDRESSES.get(head));
        let flow = WireFlow::new(addresses, PORTS.get(head), protocol, slot.interface);
        FlowPacket { flow, length, is_plain, is_segment: protocol == TCP }
    }

    #[inline(always)]
    fn seek(slot: &Slot, finder: &FlowFinder<'_, Self>, hasher: impl WireHasher) -> Option<SoughtFlow<Self>> {
        /// Hops, protocol, checksum, addresses, ports.
        const FLOW: Field<16> = Field(ETHERNET + 8);
        let head = slot.head();
        if !is_plain_inet(ip_start(slot)) {
            return None;
        }
        let (flow, hash) = finder.inet(FLOW.get(head), slot.interface, hasher);
        Some((flow, SoughtEntry::new(hash, INET_LENGTH.number(head))))
    }

    #[inline(always)]
    fn seek_four(
        slots: [&Slot; 4],
        finder: &FlowFinder<'_, Self>,
        hasher: impl WireHasher,
        sought: (&mut [WireFlow<Self>; 4], &mut [SoughtEntry; 4]),
    ) -> bool {
        let [a, b, c, d] = slots;
        let starts = [ip_start(a), ip_start(b), ip_start(c), ip_start(d)];
        finder.four_inet(starts, [a.interface, b.interface, c.interface, d.interface], hasher, sought)
    }

    fn judged(slot: &Slot) -> Judged {
        let ip = Ipv4Packet::new_unchecked(&slot.head()[ETHERNET..]);
        let kind = slot.head()[ETHERNET + ipv4::HEADER];
        let is_whole = ip.fragment_offset() == 0 && !ip.more_fragments();
        match (is_whole && ip.version_ihl() == 0x45, ip.protocol()) {
            (true, UDP | TCP) => Judged::Flow,
            (true, ICMP) if !is_icmp_query(Family::Inet, kind) => Judged::AnyConnection,
            (true, _) => Judged::NoKnownFlow,
            (false, _) => Judged::AnyOfAddresses,
        }
    }
}

impl WireFamily for Inet6Addresses {
    type Key = u128;
    const HEADER: usize = ipv6::HEADER;

    fn key(address: FilterAddress) -> u128 {
        address.0
    }

    fn destination(address: FilterAddress) -> Destination {
        Destination::Inet6(Self::key(address))
    }

    #[inline(always)]
    fn read(slot: &Slot) -> FlowPacket<Inet6Addresses> {
        let head = slot.head();
        let addresses = Inet6Addresses::from_wire(INET6_ADDRESSES.get(head));
        let EndParts { ports, protocol, interface } = inet6_ends(slot);
        let flow = WireFlow::new(addresses, ports, protocol, interface);
        let is_plain = is_plain_inet6(ip_start(slot)) && has_flow(protocol);
        FlowPacket { flow, length: inet6_length(head), is_plain, is_segment: protocol == TCP }
    }

    #[inline(always)]
    fn seek(slot: &Slot, finder: &FlowFinder<'_, Self>, hasher: impl WireHasher) -> Option<SoughtFlow<Self>> {
        let head = slot.head();
        if !is_plain_inet6(ip_start(slot)) {
            return None;
        }
        let (flow, hash) = finder.inet6(INET6_ADDRESSES.get(head), inet6_ends(slot), hasher);
        Some((flow, SoughtEntry::new(hash, inet6_length(head))))
    }

    #[inline(always)]
    fn seek_four(
        slots: [&Slot; 4],
        finder: &FlowFinder<'_, Self>,
        hasher: impl WireHasher,
        sought: (&mut [WireFlow<Self>; 4], &mut [SoughtEntry; 4]),
    ) -> bool {
        let [a, b, c, d] = slots;
        let starts = [ip_start(a), ip_start(b), ip_start(c), ip_start(d)];
        finder.four_inet6(starts, [a.interface, b.interface, c.interface, d.interface], hasher, sought)
    }

    fn judged(slot: &Slot) -> Judged {
        let kind = slot.head()[ETHERNET + ipv6::HEADER];
        match Ipv6Packet::new_unchecked(&slot.head()[ETHERNET..]).next_header() {
            UDP | TCP => Judged::Flow,
            ICMP6 if !is_icmp_query(Family::Inet6, kind) => Judged::AnyConnection,
            ICMP6 => Judged::NoKnownFlow,
            _ => Judged::AnyOfAddresses,
        }
    }
}
