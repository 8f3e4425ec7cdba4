//! Reassembles packets to the router from their fragments (RFC 791, section 3.2; RFC 8200, section 4.5).
//!
//! Memory is bounded, whatever other stations send: what does not fit replaces the oldest packet. A packet whose fragments
//! overlap is dropped with all of them (RFC 5722).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// How long fragments wait for the others of their packet.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The most packets that wait for fragments.
const MAX_PACKETS: usize = 64;
/// The most fragments of one packet: those of the longest one on a link with the smallest MTU of IPv6.
const MAX_FRAGMENTS: usize = 54;
/// The most bytes that wait, of all packets.
const MAX_BYTES: usize = 1 << 20;
/// The longest packet of either family, without the fixed header of IPv6.
const LONGEST: usize = u16::MAX as usize;

/// What the fragments of a packet have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FragmentId {
    pub interface: u16,
    pub source: IpAddr,
    pub destination: IpAddr,
    /// The protocol of IPv4; 0 for IPv6, whose fragments may differ in it.
    pub protocol: u8,
    pub identification: u32,
}

/// A fragment: the headers before the part that was split, and its share of that part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fragment<'a> {
    pub headers: &'a [u8],
    pub offset: usize,
    /// Whether it is not the last fragment.
    pub more: bool,
    pub bytes: &'a [u8],
}

/// Why a fragment can be part of no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FragmentFault {
    /// It has no bytes.
    Empty,
    /// It ends beyond the longest packet.
    BeyondLongest,
    /// Others follow, and its length is no multiple of 8.
    UnevenLength,
}

impl Fragment<'_> {
    fn end(&self) -> usize {
        self.offset + self.bytes.len()
    }

    /// The first fault, in the order of the kernel's checks.
    pub fn fault(&self) -> Option<FragmentFault> {
        if self.bytes.is_empty() {
            Some(FragmentFault::Empty)
        } else if self.end() > LONGEST {
            Some(FragmentFault::BeyondLongest)
        } else if self.more && !self.bytes.len().is_multiple_of(8) {
            Some(FragmentFault::UnevenLength)
        } else {
            None
        }
    }
}

/// A packet of which fragments are missing.
struct PartialPacket {
    id: FragmentId,
    began: Duration,
    /// The headers of the first fragment.
    headers: Option<Vec<u8>>,
    fragments: BTreeMap<usize, Vec<u8>>,
    bytes: usize,
    /// The length of the part that was split, once the last fragment is known.
    len: Option<usize>,
    /// Whether fragments contradicted each other, so that all that follow are dropped.
    rejected: bool,
}

#[derive(Default)]
pub(super) struct Reassembler {
    /// In the order in which their first fragments arrived.
    packets: Vec<PartialPacket>,
}

impl Reassembler {
    /// Adds a fragment. Returns the headers of the first fragment and the part that was split, if that is complete.
    pub fn add(
        &mut self,
        now: Duration,
        id: FragmentId,
        fragment: Fragment<'_>,
    ) -> Option<(Vec<u8>, Vec<u8>)> {
        if fragment.fault().is_some() {
            return None;
        }
        self.packets.retain(|packet| now.saturating_sub(packet.began) < TIMEOUT);
        let known = self.packets.iter().position(|packet| packet.id == id);
        let at = known.unwrap_or_else(|| self.begin(now, id));
        self.packets[at].add(fragment);
        if self.packets[at].is_complete() {
            return self.packets.remove(at).join();
        }
        while self.bytes() > MAX_BYTES {
            self.packets.remove(0);
        }
        None
    }

    fn begin(&mut self, began: Duration, id: FragmentId) -> usize {
        if self.packets.len() >= MAX_PACKETS {
            self.packets.remove(0);
        }
        let (headers, fragments) = (None, BTreeMap::new());
        self.packets.push(PartialPacket {
            id,
            began,
            headers,
            fragments,
            bytes: 0,
            len: None,
            rejected: false,
        });
        self.packets.len() - 1
    }

    fn bytes(&self) -> usize {
        self.packets.iter().map(|packet| packet.bytes).sum()
    }
}

impl PartialPacket {
    fn add(&mut self, fragment: Fragment<'_>) {
        let same = self.fragments.get(&fragment.offset);
        if self.rejected || same.is_some_and(|same| same[..] == *fragment.bytes) {
            return;
        }
        if self.contradicts(fragment) || self.fragments.len() >= MAX_FRAGMENTS {
            (self.rejected, self.headers, self.bytes) = (true, None, 0);
            return self.fragments.clear();
        }
        if !fragment.more {
            self.len = Some(fragment.end());
        }
        if fragment.offset == 0 {
            self.headers = Some(fragment.headers.to_vec());
        }
        self.bytes += fragment.bytes.len();
        self.fragments.insert(fragment.offset, fragment.bytes.to_vec());
    }

    /// Whether the fragment overlaps another one, or lies beyond the end of the packet.
    fn contradicts(&self, fragment: Fragment<'_>) -> bool {
        let end_of = |(offset, bytes): (&usize, &Vec<u8>)| offset + bytes.len();
        let before = self.fragments.range(..fragment.end()).next_back().map_or(0, end_of);
        let last = self.fragments.last_key_value().map_or(0, end_of);
        let is_beyond = self.len.is_some_and(|len| fragment.end() > len || !fragment.more);
        before > fragment.offset || is_beyond || !fragment.more && last > fragment.end()
    }

    /// Fragments do not overlap, so the packet is complete when there are as many bytes as it has.
    fn is_complete(&self) -> bool {
        self.headers.is_some() && self.len == Some(self.bytes)
    }

    fn join(self) -> Option<(Vec<u8>, Vec<u8>)> {
        Some((self.headers?, self.fragments.into_values().flatten().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(identification: u32) -> FragmentId {
        let [source, destination] = ["192.0.2.9", "192.0.2.1"].map(|ip| ip.parse().unwrap());
        FragmentId { interface: 0, source, destination, protocol: 1, identification }
    }

    fn fragment(offset: usize, more: bool, bytes: &[u8]) -> Fragment<'_> {
        Fragment { headers: &[4, 5], offset, more, bytes }
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn fragments_are_joined_in_any_order() {
        let parts = [fragment(0, true, &[1; 16]), fragment(16, true, &[2; 8]), fragment(24, false, &[3; 5])];
        let whole = [vec![1; 16], vec![2; 8], vec![3; 5]].concat();
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut reassembler = Reassembler::default();
            let [first, second, third] = order.map(|part| parts[part]);
            assert_eq!(reassembler.add(at(0), id(1), first), None);
            assert_eq!(reassembler.add(at(0), id(2), third), None, "another packet");
            assert_eq!(reassembler.add(at(1), id(1), second), None);
            assert_eq!(reassembler.add(at(1), id(1), first), None, "the same again");
            assert_eq!(reassembler.add(at(2), id(1), third), Some((vec![4, 5], whole.clone())));
        }
    }

    #[test]
    fn a_packet_whose_fragments_contradict_each_other_is_dropped() {
        let (first, last) = (fragment(0, true, &[1; 16]), fragment(16, false, &[2; 8]));
        let wrong = [
            fragment(8, true, &[3; 8]),
            fragment(8, true, &[3; 16]),
            fragment(0, true, &[3; 16]),
            fragment(24, true, &[3; 8]),
            fragment(24, false, &[3; 8]),
        ];
        for wrong in wrong {
            let mut reassembler = Reassembler::default();
            for part in [first, wrong, last, first] {
                assert_eq!(reassembler.add(at(0), id(1), part), None, "{wrong:?}");
            }
            assert_eq!(reassembler.bytes(), 0, "{wrong:?}");
        }
    }

    #[test]
    fn fragments_wait_for_a_limited_time() {
        let mut reassembler = Reassembler::default();
        reassembler.add(at(0), id(1), fragment(0, true, &[1; 8]));
        assert_eq!(reassembler.add(at(30), id(1), fragment(8, false, &[2; 8])), None);
        assert!(reassembler.add(at(31), id(1), fragment(0, true, &[1; 8])).is_some());
    }

    #[test]
    fn fragments_of_other_packets_replace_the_oldest() {
        let mut reassembler = Reassembler::default();
        let long = vec![0; 1480];
        for number in 0..2000 {
            (0..40).for_each(|part| {
                reassembler.add(at(0), id(number), fragment(part * 1480, true, &long));
            });
            assert!(reassembler.packets.len() <= MAX_PACKETS && reassembler.bytes() <= MAX_BYTES);
        }
        (0..9000).for_each(|part| _ = reassembler.add(at(0), id(9999), fragment(part * 8, true, &[1; 8])));
        assert!(reassembler.packets.iter().all(|packet| packet.fragments.len() <= MAX_FRAGMENTS));
        assert_eq!(reassembler.add(at(0), id(5000), fragment(0, true, &long)), None);
        assert!(reassembler.add(at(0), id(5000), fragment(1480, false, &[1])).is_some());
    }

    #[test]
    fn invalid_fragments_are_dropped() {
        let mut reassembler = Reassembler::default();
        let wrong = [
            (fragment(0, true, &[]), FragmentFault::Empty),
            (fragment(0, true, &[1; 9]), FragmentFault::UnevenLength),
            (fragment(65_528, false, &[1; 8]), FragmentFault::BeyondLongest),
            (fragment(65_528, true, &[1; 9]), FragmentFault::BeyondLongest),
        ];
        for (wrong, fault) in wrong {
            assert_eq!(wrong.fault(), Some(fault), "{wrong:?}");
            assert_eq!(reassembler.add(at(0), id(1), wrong), None, "{wrong:?}");
        }
        assert_eq!(fragment(65_528, false, &[1; 7]).fault(), None);
        assert!(reassembler.packets.is_empty());
    }
}
