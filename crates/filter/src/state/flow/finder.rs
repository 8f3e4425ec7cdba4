//! From the flow of a packet to the memory of its entry.

use super::addresses::{FlowAddresses, Inet6Addresses, InetAddresses, WireFlow};
use super::ends::{EndParts, WireEnds};
use super::entry::{CachedFlow, FlowSum};
use super::ip_start::IpStart;
use super::simd::{FlowIsa, FlowLoop, WireHasher};

/// Both places of a flow lie within so many entries: within a page, or two that follow each other.
const NEAR: usize = 64;

/// The hash of a flow, from which its two places follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

/// Where the entry of a packet's flow is looked for, and what is counted there: nothing by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SoughtEntry {
    pub hash: FlowHash,
    pub(super) packet: FlowSum,
}

impl SoughtEntry {
    /// For a packet of this length.
    #[inline(always)]
    pub fn new(hash: FlowHash, length: u16) -> Self {
        SoughtEntry { hash, packet: FlowSum::packet(length) }
    }
}

/// A packet whose flow is looked for. Where there are several, flows and entries have an array each, since those of four packets
/// leave the registers in that order. The default flow, which no packet has, is that of a packet that is not just counted.
pub type SoughtFlow<A> = (WireFlow<A>, SoughtEntry);

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

    /// Finds the flows of four packets from these interfaces, if each is a plain one and the hasher reads four. Says whether it did.
    #[inline(always)]
    pub fn four_inet(
        &self,
        starts: [&IpStart; 4],
        interfaces: [u16; 4],
        hasher: impl WireHasher,
        (flows, entries): (&mut [WireFlow<InetAddresses>; 4], &mut [SoughtEntry; 4]),
    ) -> bool {
        let read = hasher.four_inet(&self.keys, starts, interfaces, FlowSum::packet(0).word());
        let Some(read) = read else { return false };
        *flows = read.flows.map(|[addresses, ends]| WireFlow {
            addresses: InetAddresses::of_word(addresses),
            ends: WireEnds::of_word(ends),
        });
        *entries = read.counted.map(sought_entry);
        true
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

    /// As for IPv4.
    #[inline(always)]
    pub fn four_inet6(
        &self,
        starts: [&IpStart; 4],
        interfaces: [u16; 4],
        hasher: impl WireHasher,
        (flows, entries): (&mut [WireFlow<Inet6Addresses>; 4], &mut [SoughtEntry; 4]),
    ) -> bool {
        let read = hasher.four_inet6(&self.keys, starts, interfaces, FlowSum::packet(0).word());
        let Some(read) = read else { return false };
        for ((flow, start), ends) in flows.iter_mut().zip(starts).zip(read.ends) {
            *flow = WireFlow { addresses: Inet6Addresses::of_start(start), ends: WireEnds::of_word(ends) };
        }
        *entries = read.counted.map(sought_entry);
        true
    }
}

/// From the hash of a flow, and what is counted.
#[inline(always)]
fn sought_entry([hash, packet]: [u64; 2]) -> SoughtEntry {
    SoughtEntry { hash: FlowHash(hash), packet: FlowSum::of_word(packet) }
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

    use super::super::ip_start::{is_plain_inet, is_plain_inet6};
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

    /// Reads four headers at once.
    struct ReadFour<'s>([&'s IpStart; 4], [u16; 4], FlowIsa);

    impl FlowLoop for ReadFour<'_> {
        type Output = Option<([WireFlow<InetAddresses>; 4], [SoughtEntry; 4])>;

        #[inline(always)]
        fn run(self, hasher: impl WireHasher) -> Self::Output {
            let (mut flows, mut entries) = ([WireFlow::default(); 4], [SoughtEntry::default(); 4]);
            let are_read = finder(self.2).four_inet(self.0, self.1, hasher, (&mut flows, &mut entries));
            are_read.then_some((flows, entries))
        }
    }

    fn reads_four(isa: FlowIsa) -> bool {
        format!("{isa:?}").contains("Avx512")
    }

    /// The start of a packet whose header begins with these bytes, and has these ones at some places.
    fn start(random: [u8; 50], header: &[u8], fault: Option<(usize, u8)>) -> IpStart {
        let mut start = random;
        start[..header.len()].copy_from_slice(header);
        fault.into_iter().for_each(|(at, bits)| start[at] ^= bits);
        start
    }

    /// A byte of this range, or rarely any one.
    fn nearly_all(range: std::ops::RangeFrom<u8>) -> impl Strategy<Value = u8> {
        prop_oneof![15 => range, 1 => any::<u8>()]
    }

    /// Reads four IPv6 headers at once.
    struct ReadFour6<'s>([&'s IpStart; 4], [u16; 4], FlowIsa);

    impl FlowLoop for ReadFour6<'_> {
        type Output = Option<([WireFlow<Inet6Addresses>; 4], [SoughtEntry; 4])>;

        #[inline(always)]
        fn run(self, hasher: impl WireHasher) -> Self::Output {
            let (mut flows, mut entries) = ([WireFlow::default(); 4], [SoughtEntry::default(); 4]);
            let are_read = finder(self.2).four_inet6(self.0, self.1, hasher, (&mut flows, &mut entries));
            are_read.then_some((flows, entries))
        }
    }

    fn faults() -> impl Strategy<Value = [Option<(usize, u8)>; 4]> {
        let fault = || prop::option::weighted(0.1, (0..12_usize, any::<u8>()));
        [fault(), fault(), fault(), fault()]
    }

    fn random_starts() -> impl Strategy<Value = [[u8; 50]; 4]> {
        let start = || prop::collection::vec(any::<u8>(), 50).prop_map(|bytes| bytes.try_into().unwrap());
        [start(), start(), start(), start()]
    }

    proptest! {
        #[test]
        fn four_inet_headers_are_read_as_one_by_one(
            random in random_starts(),
            faults in faults(),
            lengths in [nearly_all(28..), nearly_all(28..), nearly_all(28..), nearly_all(28..)],
            hops in [nearly_all(2..), nearly_all(2..), nearly_all(2..), nearly_all(2..)],
            interfaces in any::<[u16; 4]>(),
        ) {
            let starts: [IpStart; 4] = std::array::from_fn(|of| {
                start(random[of], &[0x45, 0, 0, lengths[of], 1, 2, 0x40, 0, hops[of], 17], faults[of])
            });
            for isa in FlowIsa::available() {
                let one = |of: usize| {
                    let (start, interface) = (&starts[of], interfaces[of]);
                    let bytes = start[8..24].try_into().unwrap();
                    let (flow, hash) = isa.run(ReadInet(bytes, interface, isa));
                    is_plain_inet(start)
                        .then(|| (flow, SoughtEntry::new(hash, u16::from_be_bytes([start[2], start[3]]))))
                };
                let expected: Option<(Vec<_>, Vec<_>)> = (0..4).map(one).collect();
                let read = isa.run(ReadFour(starts.each_ref(), interfaces, isa));
                prop_assert_eq!(read.map(|(flows, entries)| (flows.into(), entries.into())), expected.filter(|_| reads_four(isa)), "{:?}", isa);
            }
        }

        #[test]
        fn four_inet6_headers_are_read_as_one_by_one(
            random in random_starts(),
            payloads in [nearly_all(8..), nearly_all(8..), nearly_all(8..), nearly_all(8..)],
            above in [any::<bool>(); 4],
            hops in [nearly_all(2..), nearly_all(2..), nearly_all(2..), nearly_all(2..)],
            interfaces in any::<[u16; 4]>(),
        ) {
            let starts: [IpStart; 4] = std::array::from_fn(|of| {
                let mut start = random[of];
                // Most payloads are short; of a long one the lower byte may be any.
                (start[4], start[5]) = if above[of] { (payloads[of], start[5]) } else { (0, payloads[of]) };
                start[7] = hops[of];
                start
            });
            for isa in FlowIsa::available() {
                let one = |of: usize| {
                    let (start, interface) = (&starts[of], interfaces[of]);
                    let parts = EndParts { ports: start[40..44].try_into().unwrap(), protocol: start[6], interface };
                    let (flow, hash) = isa.run(ReadInet6(start[8..40].try_into().unwrap(), parts, isa));
                    let length = u16::from_be_bytes([start[4], start[5]]).wrapping_add(40);
                    is_plain_inet6(start).then(|| (flow, SoughtEntry::new(hash, length)))
                };
                let expected: Option<(Vec<_>, Vec<_>)> = (0..4).map(one).collect();
                let read = isa.run(ReadFour6(starts.each_ref(), interfaces, isa));
                let read = read.map(|(flows, entries)| (flows.into(), entries.into()));
                prop_assert_eq!(read, expected.filter(|_| reads_four(isa)), "{:?}", isa);
            }
        }

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
