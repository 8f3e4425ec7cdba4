//! From the flow of a packet to the memory of its entry.

use super::addresses::{FlowAddresses, Inet6Addresses, InetAddresses, WireFlow};
use super::ends::EndParts;
use super::entry::{CachedFlow, FlowSum};
use super::simd::{FlowIsa, FlowLoop, WireHasher};

/// Both places of a flow lie within so many entries: within a page, or two that follow each other.
const NEAR: usize = 64;

/// The hash of a flow, from which its two places follow.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowHash(u64);

impl FlowHash {
    /// The place that most flows have.
    #[inline(always)]
    pub(super) fn first(self, mask: usize) -> usize {
        self.0 as usize & mask
    }

    /// The other one.
    #[inline(always)]
    pub(super) fn second(self, mask: usize) -> usize {
        self.first(mask) ^ ((self.0 as usize >> 24 & (NEAR - 1) | 1) & mask)
    }
}

/// A packet whose flow is looked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct SoughtFlow<A> {
    /// The default, which no packet has, for a packet that is not just counted.
    pub flow: WireFlow<A>,
    pub hash: FlowHash,
    /// What is counted: nothing by default.
    pub(super) packet: FlowSum,
}

impl<A> SoughtFlow<A> {
    /// A packet of this length.
    #[inline(always)]
    pub fn new(flow: WireFlow<A>, hash: FlowHash, length: u16) -> Self {
        SoughtFlow { flow, hash, packet: FlowSum::packet(length) }
    }
}

/// Hashes flows and finds the memory of their entries. It is a copy of what that takes, since a compiler cannot know that what a
/// loop writes is not part of the cache.
#[derive(Clone, Copy)]
pub struct FlowFinder<'c, A> {
    pub(super) entries: &'c [CachedFlow<A>],
    pub(super) keys: [u64; 4],
    pub(super) isa: FlowIsa,
}

impl<'c, A: FlowAddresses> FlowFinder<'c, A> {
    /// The instruction set whose hash the cache uses.
    #[inline(always)]
    pub fn isa(&self) -> FlowIsa {
        self.isa
    }

    /// The hash of a flow, by the hasher of [`Self::isa`].
    #[inline(always)]
    pub fn hash(&self, flow: &WireFlow<A>, hasher: impl WireHasher) -> FlowHash {
        FlowHash(flow.hash(&self.keys, hasher))
    }

    /// Whether there are no entries.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entry that a flow with this hash most often has, for a prefetch.
    #[inline(always)]
    pub fn memory(&self, hash: FlowHash) -> Option<&'c impl Sized> {
        self.entries.get(hash.first(self.entries.len().wrapping_sub(1)))
    }
}

impl FlowFinder<'_, InetAddresses> {
    /// The flow of an IPv4 packet and its hash, by the hasher of [`Self::isa`]: see [`WireHasher::inet`].
    #[inline(always)]
    pub fn inet(
        &self,
        bytes: [u8; 16],
        interface: u16,
        hasher: impl WireHasher,
    ) -> (WireFlow<InetAddresses>, FlowHash) {
        let (addresses, ends, hash) = hasher.inet(&self.keys, bytes, interface);
        (WireFlow { addresses: InetAddresses::of_word(addresses), ends }, FlowHash(hash))
    }
}

impl FlowFinder<'_, Inet6Addresses> {
    /// The flow of an IPv6 packet and its hash, by the hasher of [`Self::isa`]: see [`WireHasher::inet6`].
    #[inline(always)]
    pub fn inet6(
        &self,
        addresses: [u8; 32],
        ends: EndParts,
        hasher: impl WireHasher,
    ) -> (WireFlow<Inet6Addresses>, FlowHash) {
        let (ends, hash) = hasher.inet6(&self.keys, addresses, ends);
        (WireFlow { addresses: Inet6Addresses::from_wire(addresses), ends }, FlowHash(hash))
    }
}

/// Hashes one flow.
pub(super) struct HashOne<'c, A> {
    pub finder: FlowFinder<'c, A>,
    pub flow: &'c WireFlow<A>,
}

impl<A: FlowAddresses> FlowLoop for HashOne<'_, A> {
    type Output = FlowHash;

    #[inline(always)]
    fn run(self, hasher: impl WireHasher) -> FlowHash {
        self.finder.hash(self.flow, hasher)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEYS: [u64; 4] = [0x0123_4567, 0x89ab_cdef_0000, 0xfedc_ba98, 0x7654_3210_0000];

    fn finder<A>(isa: FlowIsa) -> FlowFinder<'static, A> {
        FlowFinder { entries: &[], keys: KEYS, isa }
    }

    /// Reads the header of an IPv4 packet, from the hop count to the ports.
    struct ReadInet([u8; 16], u16, FlowIsa);

    impl FlowLoop for ReadInet {
        type Output = (WireFlow<InetAddresses>, FlowHash);

        #[inline(always)]
        fn run(self, hasher: impl WireHasher) -> Self::Output {
            finder(self.2).inet(self.0, self.1, hasher)
        }
    }

    struct ReadInet6([u8; 32], EndParts, FlowIsa);

    impl FlowLoop for ReadInet6 {
        type Output = (WireFlow<Inet6Addresses>, FlowHash);

        #[inline(always)]
        fn run(self, hasher: impl WireHasher) -> Self::Output {
            finder(self.2).inet6(self.0, self.1, hasher)
        }
    }

    proptest! {
        #[test]
        fn each_instruction_set_reads_the_flow_of_a_header_and_hashes_it(
            (hops, protocol, checksum) in any::<(u8, u8, [u8; 2])>(),
            addresses in any::<[u8; 8]>(),
            ports in any::<[u8; 4]>(),
            interface in any::<u16>(),
        ) {
            let header = [&[hops, protocol][..], &checksum, &addresses, &ports].concat().try_into().unwrap();
            let flow = WireFlow::new(InetAddresses::from_wire(addresses), ports, protocol, interface);
            for isa in FlowIsa::available() {
                let (read, hash) = isa.run(ReadInet(header, interface, isa));
                let expected = isa.run(HashOne { finder: finder(isa), flow: &flow });
                prop_assert_eq!((read, hash.0), (flow, expected.0), "{:?}", isa);
            }
        }

        #[test]
        fn each_instruction_set_reads_the_flow_of_an_ipv6_header_and_hashes_it(
            addresses in any::<[u8; 32]>(),
            (ports, protocol, interface) in any::<([u8; 4], u8, u16)>(),
        ) {
            let flow = WireFlow::new(Inet6Addresses::from_wire(addresses), ports, protocol, interface);
            for isa in FlowIsa::available() {
                let (read, hash) = isa.run(ReadInet6(addresses, EndParts { ports, protocol, interface }, isa));
                let expected = isa.run(HashOne { finder: finder(isa), flow: &flow });
                prop_assert_eq!((read, hash.0), (flow, expected.0), "{:?}", isa);
            }
        }
    }
}
