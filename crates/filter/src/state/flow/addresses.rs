//! What identifies a flow in the bytes of its packets, in the order of the wire: reading it takes a few loads.

use std::cmp::Ordering;

use super::ends::{EndParts, WireEnds};
use super::ip_start::IpStart;
use super::simd::WireHasher;
use crate::address::{Address, Family};
use crate::packet::protocol::TCP;
use crate::rule::Side;
use crate::state::flow_key::FlowKey;

/// The addresses of a flow, as they stand in the header.
pub trait FlowAddresses: Copy + Eq + Default {
    /// The family that they are of.
    const FAMILY: Family;

    /// The addresses of a flow, if it is of this family.
    fn of(key: &FlowKey) -> Option<Self>;

    /// A number that is the same for both directions.
    fn sum(&self) -> u64;

    /// Whether the source is a higher number than the destination, or a lower one.
    fn order(&self) -> Ordering;

    /// Nonzero if others are not the same.
    fn differ(&self, other: &Self) -> u64;

    /// Their hash with another word.
    fn hash(&self, word: u64, keys: &[u64; 4], hasher: impl WireHasher) -> u64;

    /// Their bytes in order, as little-endian words; those of a short family are followed by zeros.
    fn words(&self) -> [u64; 4];

    /// The address of one end.
    fn address(&self, side: Side) -> Address;

    /// This source, and the destination of others.
    fn with_destination_of(self, other: Self) -> Self;
}

/// Source and destination of an IPv4 header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InetAddresses(u64);

impl InetAddresses {
    /// The addresses from their eight bytes.
    #[inline(always)]
    pub const fn from_wire(bytes: [u8; 8]) -> Self {
        InetAddresses(u64::from_le_bytes(bytes))
    }

    /// The addresses from their eight bytes as a little-endian word.
    #[inline(always)]
    pub(super) const fn of_word(word: u64) -> Self {
        InetAddresses(word)
    }
}

impl FlowAddresses for InetAddresses {
    const FAMILY: Family = Family::Inet;

    fn of(key: &FlowKey) -> Option<Self> {
        let bits = |address: Address| u64::from((address.0 as u32).swap_bytes());
        let is_inet = key.source.family() == Family::Inet;
        is_inet.then(|| InetAddresses(bits(key.source) | bits(key.destination) << 32))
    }

    fn sum(&self) -> u64 {
        (self.0 & 0xffff_ffff) + (self.0 >> 32)
    }

    fn order(&self) -> Ordering {
        (self.0 & 0xffff_ffff).cmp(&(self.0 >> 32))
    }

    #[inline(always)]
    fn differ(&self, other: &Self) -> u64 {
        self.0 ^ other.0
    }

    #[inline(always)]
    fn hash(&self, word: u64, keys: &[u64; 4], hasher: impl WireHasher) -> u64 {
        hasher.of_two(keys, [self.0, word])
    }

    fn words(&self) -> [u64; 4] {
        [self.0, 0, 0, 0]
    }

    fn address(&self, side: Side) -> Address {
        let word = side.of((self.0, self.0 >> 32));
        Address::inet((word as u32).swap_bytes())
    }

    fn with_destination_of(self, other: Self) -> Self {
        const SOURCE: u64 = 0xffff_ffff;
        InetAddresses(self.0 & SOURCE | other.0 & !SOURCE)
    }
}

/// Source and destination of an IPv6 header.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inet6Addresses([u64; 4]);

impl Inet6Addresses {
    /// The addresses of a packet.
    #[inline(always)]
    pub(super) fn of_start(start: &IpStart) -> Self {
        let [_, _, _, _, _, _, _, _, rest @ ..] = start;
        rest.first_chunk().map_or(Self::default(), |bytes| Self::from_wire(*bytes))
    }

    /// The addresses from their 32 bytes.
    #[inline(always)]
    pub fn from_wire(bytes: [u8; 32]) -> Self {
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        Inet6Addresses(words)
    }
}

/// Compares numbers and branches once: a derived comparison calls `memcmp`.
impl PartialEq for Inet6Addresses {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        self.differ(other) == 0
    }
}

impl Eq for Inet6Addresses {}

impl FlowAddresses for Inet6Addresses {
    const FAMILY: Family = Family::Inet6;

    fn of(key: &FlowKey) -> Option<Self> {
        let is_inet6 = key.source.family() == Family::Inet6;
        is_inet6.then(|| {
            let (source, destination) = (key.source.0.swap_bytes(), key.destination.0.swap_bytes());
            let halves = |address: u128| [address as u64, (address >> 64) as u64];
            let ([a, b], [c, d]) = (halves(source), halves(destination));
            Inet6Addresses([a, b, c, d])
        })
    }

    fn sum(&self) -> u64 {
        let [a, b, c, d] = self.0;
        a.wrapping_add(c) ^ b.wrapping_add(d).rotate_left(32)
    }

    fn order(&self) -> Ordering {
        let [a, b, c, d] = self.0;
        (a, b).cmp(&(c, d))
    }

    #[inline(always)]
    fn differ(&self, other: &Self) -> u64 {
        let differ = |word: usize| self.0[word] ^ other.0[word];
        differ(0) | differ(1) | differ(2) | differ(3)
    }

    #[inline(always)]
    fn hash(&self, word: u64, keys: &[u64; 4], hasher: impl WireHasher) -> u64 {
        hasher.of_five(keys, self.0, word)
    }

    fn words(&self) -> [u64; 4] {
        self.0
    }

    fn address(&self, side: Side) -> Address {
        let [a, b, c, d] = self.0;
        let (low, high) = match side {
            Side::Source => (a, b),
            Side::Destination => (c, d),
        };
        Address((u128::from(low) | u128::from(high) << 64).swap_bytes())
    }

    fn with_destination_of(self, other: Self) -> Self {
        let ([a, b, ..], [.., c, d]) = (self.0, other.0);
        Inet6Addresses([a, b, c, d])
    }
}

/// A flow and the interface that its packets come in by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireFlow<A> {
    pub(super) addresses: A,
    pub(super) ends: WireEnds,
}

/// A flow in parts, for a reader of packets that compares them one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowWords {
    pub family: Family,
    /// See [`FlowAddresses::words`].
    pub addresses: [u64; 4],
    /// Both ports in order, as a little-endian word.
    pub ports: u32,
    pub protocol: u8,
    /// The interface that the packets come in by.
    pub interface: u16,
}

/// What both directions of a flow have in common, which other flows may have too, and in which they differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowMarks {
    /// Of the addresses, the ports and the protocol.
    pub flow: u32,
    /// Of the addresses alone.
    pub addresses: u32,
    /// Which of both directions it is.
    pub is_descending: bool,
}

impl<A: FlowAddresses> WireFlow<A> {
    /// A flow by what its packets show.
    #[inline(always)]
    pub fn new(addresses: A, ports: [u8; 4], protocol: u8, interface: u16) -> Self {
        WireFlow { addresses, ends: WireEnds::new(EndParts { ports, protocol, interface }) }
    }

    /// Marks by which both directions of a flow are recognized.
    #[inline]
    pub fn marks(&self) -> FlowMarks {
        let mark = |sum: u64| (sum.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32;
        let ports = u64::from(self.ends.ports());
        let (source, destination) = (ports & 0xffff, ports >> 16);
        let (addresses, ports) = (self.addresses.sum(), source + destination);
        let protocol = u64::from(self.ends.protocol());
        FlowMarks {
            flow: mark(addresses.wrapping_add(ports << 20 | protocol << 40)),
            addresses: mark(addresses),
            is_descending: self.addresses.order().then(source.cmp(&destination)).is_gt(),
        }
    }

    /// Nonzero if another one is not the same.
    #[inline(always)]
    pub(super) fn differs(&self, other: &Self) -> u64 {
        self.addresses.differ(&other.addresses) | self.ends.differs(other.ends)
    }

    /// Whether states follow each of its packets.
    pub(super) fn is_of_tcp(&self) -> bool {
        self.ends.protocol() == TCP
    }

    /// The flow in parts.
    pub fn words(&self) -> FlowWords {
        FlowWords {
            family: A::FAMILY,
            addresses: self.addresses.words(),
            ports: self.ends.ports(),
            protocol: self.ends.protocol(),
            interface: self.ends.interface(),
        }
    }

    /// The key of its packets.
    pub fn key(&self) -> FlowKey {
        let [(source, source_port), (destination, destination_port)] =
            [Side::Source, Side::Destination].map(|side| self.end(side));
        FlowKey { source, destination, source_port, destination_port, protocol: self.ends.protocol() }
    }

    /// The flow with this key, if it is of the family.
    pub(crate) fn of(key: &FlowKey, interface: u16) -> Option<Self> {
        let ([a, b], [c, d]) = (key.source_port.to_be_bytes(), key.destination_port.to_be_bytes());
        Some(WireFlow::new(A::of(key)?, [a, b, c, d], key.protocol, interface))
    }

    /// The address and the port of one end.
    pub fn end(&self, side: Side) -> (Address, u16) {
        (self.addresses.address(side), self.ends.port(side))
    }

    /// The flow with the destination of another one.
    pub(super) fn with_destination_of(&self, other: &Self) -> Self {
        let addresses = self.addresses.with_destination_of(other.addresses);
        WireFlow { addresses, ends: self.ends.with_destination_of(other.ends) }
    }

    /// Whether both are one flow, whichever interface it comes in by.
    #[inline(always)]
    pub(super) fn is_same_flow(&self, other: &Self) -> bool {
        self.addresses == other.addresses && self.ends.without_interface() == other.ends.without_interface()
    }

    /// The hash, which does not depend on the interface.
    #[inline(always)]
    pub(super) fn hash(&self, keys: &[u64; 4], hasher: impl WireHasher) -> u64 {
        self.addresses.hash(self.ends.without_interface(), keys, hasher)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_gives_the_flow_that_the_wire_shows() {
        let ports = [0x12, 0x34, 0x56, 0x78];
        let key = FlowKey {
            source: Address::inet(0xc000_0201),
            destination: Address::inet(0xc633_6402),
            source_port: 0x1234,
            destination_port: 0x5678,
            protocol: 17,
        };
        let wire = InetAddresses::from_wire([192, 0, 2, 1, 198, 51, 100, 2]);
        assert_eq!(WireFlow::of(&key, 3), Some(WireFlow::new(wire, ports, 17, 3)));
        assert_eq!(WireFlow::<Inet6Addresses>::of(&key, 3), None);
        has_the_ends_of(WireFlow::new(wire, ports, 17, 3), &key);
        let bytes: [u8; 32] = std::array::from_fn(|place| place as u8 + 1);
        let address = |from: usize| Address(u128::from_be_bytes(bytes[from..from + 16].try_into().unwrap()));
        let key6 = FlowKey { source: address(0), destination: address(16), ..key };
        let wire = Inet6Addresses::from_wire(bytes);
        assert_eq!(WireFlow::of(&key6, 3), Some(WireFlow::new(wire, ports, 17, 3)));
        assert_eq!(WireFlow::<InetAddresses>::of(&key6, 3), None);
        has_the_ends_of(WireFlow::new(wire, ports, 17, 3), &key6);
    }

    fn has_the_ends_of<A: FlowAddresses + std::fmt::Debug>(flow: WireFlow<A>, key: &FlowKey) {
        assert_eq!(flow.key(), *key);
        let back = WireFlow::<A>::of(&key.reversed(), 4).unwrap();
        let loops = FlowKey { destination: key.source, destination_port: 0x1234, ..*key };
        assert_eq!(Some(flow.with_destination_of(&back)), WireFlow::of(&loops, 3));
    }
}
