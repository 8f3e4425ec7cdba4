//! What a packet of a known flow reads and writes: one cache line, in which one comparison says whether the entry is true, and one
//! addition counts.

use super::addresses::{FlowAddresses, Inet6Addresses, WireFlow};

/// The stamp of an entry that is no longer valid, older than all others; and its moment.
pub(super) const NEVER: u64 = 0;

/// What every packet of the flow reads and writes.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct CachedFlow<A> {
    pub flow: WireFlow<A>,
    pub mark: FlowMark,
    /// What the states have not counted yet.
    pub sum: FlowSum,
    pub next_hop: u16,
}

const _: () = assert!(size_of::<CachedFlow<Inet6Addresses>>() == 64);

impl<A: FlowAddresses> CachedFlow<A> {
    /// Whether it is of this flow and has this mark.
    #[inline(always)]
    pub fn is_of(&self, flow: &WireFlow<A>, mark: FlowMark) -> bool {
        self.flow.differs(flow) | (self.mark.0 ^ mark.0) == 0
    }
}

/// The moment up to which the states are known to live, and the number of the list of rules that count: one comparison. If more
/// is to be done for each packet of the flow, the mark differs from that of flows whose packets are just counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlowMark(u64);

const FOLLOWED: u64 = 1 << 63;
const TRANSLATED: u64 = 1 << 62;

impl FlowMark {
    pub fn new(moment: u64, rules: u16) -> FlowMark {
        FlowMark(moment << 16 | u64::from(rules))
    }

    /// The same for an entry whose states follow each packet.
    pub fn followed(self) -> FlowMark {
        FlowMark(self.0 | FOLLOWED)
    }

    /// The same for an entry whose packets are translated.
    pub fn translated(self) -> FlowMark {
        FlowMark(self.0 | TRANSLATED)
    }

    /// Whether the entry is valid at this moment, and its states follow each packet.
    #[inline(always)]
    pub fn is_followed_at(self, moment: u64) -> bool {
        (self.0 & !TRANSLATED) >> 16 == FOLLOWED >> 16 | moment
    }

    pub fn moment(self) -> u64 {
        (self.0 & !(FOLLOWED | TRANSLATED)) >> 16
    }

    pub fn rules(self) -> u16 {
        self.0 as u16
    }
}

/// Packets, and their bytes: one addition counts both, and overflows before there are too many of either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowSum(u64);

/// The lowest bit of the number of packets.
const PACKETS: u32 = 49;
/// So many packets are counted before the states are.
pub(super) const MOST_PACKETS: u64 = u64::MAX >> PACKETS;

const _: () = assert!(MOST_PACKETS * (u16::MAX as u64) < 1 << PACKETS);

impl FlowSum {
    /// One packet of this length.
    #[inline(always)]
    pub(super) fn packet(length: u16) -> FlowSum {
        FlowSum(1 << PACKETS | u64::from(length))
    }

    /// The number to which one packet's length is added.
    #[inline(always)]
    pub(super) fn word(self) -> u64 {
        self.0
    }

    /// The sum with this number.
    #[inline(always)]
    pub(super) fn of_word(word: u64) -> FlowSum {
        FlowSum(word)
    }

    /// Both together, if there is room.
    #[inline(always)]
    pub(super) fn plus(self, more: FlowSum) -> Option<FlowSum> {
        self.0.checked_add(more.0).map(FlowSum)
    }

    /// What is left without these packets, if they may be among them.
    pub(super) fn minus(self, less: FlowSum) -> Option<FlowSum> {
        let (packets, bytes) =
            (self.packets().checked_sub(less.packets())?, self.bytes().checked_sub(less.bytes())?);
        let is_possible = (packets == 0) == (bytes == 0);
        is_possible.then_some(FlowSum(packets << PACKETS | bytes))
    }

    /// How many packets.
    #[inline(always)]
    pub fn packets(self) -> u64 {
        self.0 >> PACKETS
    }

    /// How many bytes.
    #[inline(always)]
    pub fn bytes(self) -> u64 {
        self.0 & ((1 << PACKETS) - 1)
    }

    /// Whether it is of no packet.
    #[inline(always)]
    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Adds packets of a burst, for which there is room.
    #[inline(always)]
    pub(super) fn add(&mut self, more: FlowSum) {
        self.0 = self.0.wrapping_add(more.0);
    }

    pub(super) fn has_room(self) -> bool {
        self.packets() < MOST_PACKETS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sum that is full within a burst begins anew.
    #[test]
    fn packets_are_taken_from_a_sum_only_if_they_can_be_in_it() {
        let sum = |lengths: &[u16]| {
            let packets = lengths.iter().map(|length| FlowSum::packet(*length));
            packets.fold(FlowSum::default(), |sum, packet| sum.plus(packet).unwrap())
        };
        let left = |lengths: &[u16], length| {
            sum(lengths).minus(FlowSum::packet(length)).map(|sum| (sum.packets(), sum.bytes()))
        };
        assert_eq!(left(&[60, 1500], 60), Some((1, 1500)));
        assert_eq!(left(&[60], 60), Some((0, 0)));
        assert_eq!(left(&[60], 1500), None);
        assert_eq!(left(&[1500], 60), None);
        assert_eq!(left(&[60, 60], 120), None);
        assert_eq!(left(&[], 60), None);
        assert_eq!(left(&[60, 60, 60], 1500), None);
    }
}
