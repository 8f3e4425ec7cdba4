//! The fast parser: header checks of plain packets, and their destinations.
//!
//! Straight-line code checks the headers at constant offsets of the first 64 bytes and joins the results by `&` instead
//! of `&&`, so that a correct packet meets few branches, none of which depends on it. Every packet that fails a check goes
//! to `slow_parse.rs`, which finds the reason and lets rare but correct packets through (VLAN tags, IPv4 options, addresses
//! near special blocks).
//!
//! Each family has a loop of its own for packets that follow each other: with both families in one loop the processor has
//! too few registers, and moves values between them and the stack for each packet.

use std::ops::Range;

use super::keys::{BurstPositions, LookupBatch};
use super::martian;
use super::plain_packet::{FrameKind, Ours, PLAIN_INET, PLAIN_INET6};
use super::simd::{FourHeaders, HeaderLoop, ParserIsa};
use super::stage_state::StageState;
use crate::burst::{Packet, Slot};
use crate::counters::Traffic;
use crate::view::{PortIngress, View};
use crate::wire::ethernet::HEADER as ETHERNET;
use crate::wire::ipv4::{self, Ipv4Packet};
use crate::wire::ipv6::Ipv6Packet;
use crate::wire::{Field, checksum};
use fullview_table::Address;

const INET_HEADER: Field<{ ipv4::HEADER }> = Field(ETHERNET);

/// Packets read between two prefetch calls: enough that a call costs each packet little, few enough that most of a burst
/// is prefetched before the first lookup.
const PREFETCH_DISTANCE: usize = 32;

/// Reads the packets at these positions.
#[inline]
pub(super) fn read(state: &mut StageState, view: &View, packets: &mut [Packet<'_>], positions: Range<usize>) {
    let mut position = positions.start;
    while position < positions.end {
        let ingress = view.ingress(packets[position].port);
        let end = positions.end.min(position + PREFETCH_DISTANCE);
        let table = &mut state.tables[usize::from(ingress.table)];
        let batches = (&mut *table.inet.destinations, &mut *table.inet6.destinations);
        let packets = &mut packets[position..end];
        let gather = if state.isa == ParserIsa::SCALAR { gather::<false> } else { gather::<true> };
        let (read, plain) = gather((ingress, state.isa), packets, position, batches, &mut state.exceptions);
        state.counters.add_received(ingress.interface, plain);
        if state.prefetches {
            table.prefetch_added();
        }
        position += read;
    }
}

/// Adds the destinations of plain packets from the port of the first packet, up to the first packet from another port;
/// `first` is the position of the first one. Returns how many packets were read, and the traffic of the plain ones.
///
/// Other packets are put off as exceptions, so that the loops call no function. It is a function of its own, so that
/// the compiler knows that packets and batches do not overlap; and another one with `FOURS`, since the loops of plain code are
/// slower beside those that read four packets at once.
#[inline(never)]
fn gather<const FOURS: bool>(
    (ingress, isa): (&PortIngress, ParserIsa),
    packets: &mut [Packet<'_>],
    first: usize,
    (inet, inet6): (&mut LookupBatch<u32>, &mut LookupBatch<u128>),
    exceptions: &mut BurstPositions,
) -> (usize, Traffic) {
    let (mut read, mut plain) = (0, Traffic::default());
    let Some(port) = packets.first().map(|packet| packet.port) else { return (0, plain) };
    let ours = Ours::of(ingress, port);
    while let [packet, ..] = &mut packets[read..] {
        if packet.port != port {
            break;
        }
        let is_inet6 = PLAIN_INET6.is_of(packet);
        let (rest, at) = (&mut packets[read..], first + read);
        let run = match is_inet6 {
            true => run::<FOURS, _>(rest, at, (&ours, isa), inet6),
            false => run::<FOURS, _>(rest, at, (&ours, isa), inet),
        };
        if run.packets == 0 {
            packets[read].interface = ours.interface;
            exceptions.push(at);
            read += 1;
        }
        read += run.packets as usize;
        plain.add(run);
    }
    (read, plain)
}

/// Adds the destinations of the first packets as long as they are plain ones of one family, so that the loop needs few
/// registers. Returns their traffic.
#[inline(always)]
fn run<const FOURS: bool, A: PlainDestination>(
    packets: &mut [Packet<'_>],
    first: usize,
    (ours, isa): (&Ours, ParserIsa),
    batch: &mut LookupBatch<A>,
) -> Traffic {
    let (before, mut bytes) = (batch.len(), 0);
    // Where the family changes often, to try four at once would cost more than it gains.
    let are_alike = |four: &[Packet<'_>; 4]| four.iter().all(|packet| A::KIND.is_of(packet));
    if FOURS && packets.first_chunk().is_some_and(are_alike) {
        bytes = isa.run(Fours { packets: &mut *packets, first, ours: *ours, batch: &mut *batch });
    }
    let read = batch.len() - before;
    for (position, packet) in (first + read..).zip(&mut packets[read..]) {
        let Some(addr) = A::of(packet, ours).filter(|_| packet.port == ours.port) else { break };
        packet.interface = ours.interface;
        batch.push(addr, position);
        bytes += packet.frame_len() as u64;
    }
    Traffic { packets: (batch.len() - before) as u64, bytes }
}

/// The first packets, which are read four at a time as long as all four are plain ones.
struct Fours<'r, 'p, A> {
    packets: &'r mut [Packet<'p>],
    first: usize,
    ours: Ours,
    batch: &'r mut LookupBatch<A>,
}

impl<A: PlainDestination> HeaderLoop for Fours<'_, '_, A> {
    /// The bytes of the packets.
    type Output = u64;

    #[inline(always)]
    fn run(self, headers: impl FourHeaders) -> u64 {
        let Fours { packets, first, ours, batch } = self;
        let (mut read, mut bytes) = (0, 0);
        if !A::is_forwarded(&ours) {
            return 0;
        }
        for (four, (positions, addrs)) in packets.as_chunks_mut().0.iter_mut().zip(batch.room()) {
            let [a, b, c, d] = four.each_mut().map(|packet| &mut **packet);
            let Some(found) = A::of_four(headers, [a, b, c, d], &ours) else { break };
            *addrs = found;
            *positions = four_from(first + read);
            for packet in [a, b, c, d] {
                packet.interface = ours.interface;
                bytes += packet.frame_len() as u64;
            }
            read += 4;
        }
        batch.added(read);
        bytes
    }
}

/// Four positions from this one on, by one addition.
#[inline(always)]
fn four_from(first: usize) -> [u8; 4] {
    (first as u32).wrapping_mul(0x0101_0101).wrapping_add(0x0302_0100).to_le_bytes()
}

/// A destination of plain packets.
trait PlainDestination: Address {
    /// What plain packets of its family say that they are.
    const KIND: FrameKind;

    /// Whether packets of its family are forwarded.
    fn is_forwarded(ours: &Ours) -> bool;

    /// The destination of a plain packet; `None` for a packet that the slow parser has to examine. In a short frame the code reads
    /// stale bytes and then rejects the packet, because the lengths in the header have to fit into the frame.
    fn of(packet: &Slot, ours: &Ours) -> Option<Self>;

    /// The same for four packets from this port, if each is a plain one.
    fn of_four(headers: impl FourHeaders, packets: [&Slot; 4], ours: &Ours) -> Option<[Self; 4]>;
}

/// Of correct packets without options (RFC 1812, section 5.2.2).
impl PlainDestination for u32 {
    const KIND: FrameKind = PLAIN_INET;

    #[inline(always)]
    fn is_forwarded(ours: &Ours) -> bool {
        ours.inet
    }

    #[inline(always)]
    fn of(packet: &Slot, ours: &Ours) -> Option<u32> {
        let head = packet.head();
        let ip = Ipv4Packet::new_unchecked(&head[ETHERNET..]);
        let (total, room) = (i32::from(ip.total_len()), packet.frame_len() as i32 - ETHERNET as i32);
        let lengths = (total >= ipv4::HEADER as i32) & (total <= room);
        let intact = checksum::header_verifies(&INET_HEADER.get(head));
        let plain = !martian::inet_suspect(ip.source(), ip.destination());
        let is_inet = Self::KIND.is_of(packet);
        (ours.inet & ours.is_to(head) & is_inet & lengths & intact & plain).then(|| ip.destination())
    }

    #[inline(always)]
    fn of_four(headers: impl FourHeaders, packets: [&Slot; 4], ours: &Ours) -> Option<[u32; 4]> {
        headers.inet(packets, ours)
    }
}

/// Of correct packets (RFC 8200, section 3).
impl PlainDestination for u128 {
    const KIND: FrameKind = PLAIN_INET6;

    #[inline(always)]
    fn is_forwarded(ours: &Ours) -> bool {
        ours.inet6
    }

    #[inline(always)]
    fn of(packet: &Slot, ours: &Ours) -> Option<u128> {
        let head = packet.head();
        let ip = Ipv6Packet::new_unchecked(&head[ETHERNET..]);
        let whole = ip.total_len() + ETHERNET <= packet.frame_len();
        let plain = !martian::inet6_suspect(ip.source(), ip.destination());
        let is_inet6 = Self::KIND.is_of(packet);
        (ours.inet6 & ours.is_to(head) & is_inet6 & whole & plain).then(|| ip.destination())
    }

    #[inline(always)]
    fn of_four(headers: impl FourHeaders, packets: [&Slot; 4], ours: &Ours) -> Option<[u128; 4]> {
        headers.inet6(packets, ours)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::ethernet::Mac;

    const PORT: u16 = 3;
    const MAC: Mac = Mac([2, 0, 0, 0, 0, 7]);

    /// A correct frame of the smallest packet from this port, with these addresses.
    fn frame<A: PlainDestination>([source, destination]: [A; 2]) -> Vec<u8> {
        let is_inet = A::BITS == 32;
        let mut frame = [&MAC.0[..], &[2, 0, 0, 0, 0, 9]].concat();
        let bytes = |addr: A| addr.to_u128().unwrap().to_be_bytes()[16 - A::BITS as usize / 8..].to_vec();
        if is_inet {
            frame.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0x40, 0, 64, 17, 0, 0]);
        } else {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, 17, 64]);
        }
        frame.extend([bytes(source), bytes(destination), vec![0; 8]].concat());
        if is_inet {
            let sum = checksum::checksum(&frame[ETHERNET..ETHERNET + ipv4::HEADER]);
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
        }
        frame
    }

    fn slot(frame: &[u8], port: u16) -> Slot {
        let mut slot = Slot::EMPTY;
        slot.set_frame(frame);
        slot.port = port;
        slot
    }

    /// Reads four packets at once.
    struct ReadFour<'r, A>([&'r Slot; 4], Ours, std::marker::PhantomData<A>);

    impl<A: PlainDestination> HeaderLoop for ReadFour<'_, A> {
        type Output = Option<[A; 4]>;

        #[inline(always)]
        fn run(self, headers: impl FourHeaders) -> Self::Output {
            A::of_four(headers, self.0, &self.1)
        }
    }

    /// What may be wrong with one of four packets: a bit at a place of its first 64 bytes, its length, its port.
    type Fault = (usize, (usize, u8), i16, bool);

    /// Compares four packets, one of which may be changed, read at once and one by one.
    fn compare<A: PlainDestination>(addrs: [[A; 2]; 4], fault: Option<Fault>) {
        let mut slots = addrs.map(|addrs| slot(&frame(addrs), PORT));
        if let Some((of, (at, bits), longer, is_of_other_port)) = fault {
            let length = slots[of].frame_len().saturating_add_signed(longer.into());
            slots[of].set_frame_len(length);
            slots[of].head_mut()[at] ^= bits;
            slots[of].port += u16::from(is_of_other_port);
        }
        compare_slots::<A>(&slots);
    }

    fn compare_slots<A: PlainDestination>(slots: &[Slot; 4]) {
        let mut ours = Ours::to(MAC, PORT);
        (ours.inet, ours.inet6) = (true, true);
        let one_by_one = slots.each_ref().map(|slot| A::of(slot, &ours).filter(|_| slot.port == PORT));
        let all = one_by_one.iter().all(Option::is_some).then(|| one_by_one.map(Option::unwrap));
        for isa in ParserIsa::available() {
            let read = isa.run(ReadFour(slots.each_ref(), ours, std::marker::PhantomData::<A>));
            assert_eq!(read, all.filter(|_| isa != ParserIsa::SCALAR), "{isa:?}");
        }
    }

    fn fault() -> impl Strategy<Value = Option<Fault>> {
        let lengths = prop_oneof![4 => Just(0), 1 => -60_i16..20];
        prop::option::of((0..4_usize, (0..64_usize, any::<u8>()), lengths, prop::bool::weighted(0.1)))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn four_inet_packets_are_read_as_one_by_one(addrs in any::<[[u32; 2]; 4]>(), fault in fault()) {
            compare(addrs, fault);
        }

        #[test]
        fn four_inet6_packets_are_read_as_one_by_one(addrs in any::<[[u128; 2]; 4]>(), fault in fault()) {
            compare(addrs, fault);
        }
    }

    /// The checksum is right, so only the length is wrong.
    #[test]
    fn four_packets_with_any_total_length_are_read_as_one_by_one() {
        for total in [0, 19, 20, 27, 28, 29, 46, 47, 0x7fff, 0x8000, 0xffff_u16] {
            for (of, length) in [(0, 42), (1, 60), (2, 61), (3, 33)] {
                let mut slots = [(); 4].map(|()| slot(&frame([0x0a00_0001_u32; 2]), PORT));
                let header = &mut slots[of].frame_mut()[ETHERNET..ETHERNET + ipv4::HEADER];
                header[2..4].copy_from_slice(&total.to_be_bytes());
                header[10..12].fill(0);
                let sum = checksum::checksum(header);
                header[10..12].copy_from_slice(&sum.to_be_bytes());
                slots[of].set_frame_len(length);
                compare_slots::<u32>(&slots);
            }
        }
    }

    #[test]
    fn four_packets_with_any_first_byte_are_read_as_one_by_one() {
        for first in 0..=255_u32 {
            for side in 0..2 {
                let (mut addrs, mut addrs6) =
                    ([[0x0a00_0001_u32; 2]; 4], [[0x2001_0db8 << 96 | 1_u128; 2]; 4]);
                addrs[first as usize % 4][side] = first << 24 | 1;
                addrs6[first as usize % 4][side] = u128::from(first) << 120 | 1;
                compare(addrs, None);
                compare(addrs6, None);
            }
        }
    }
}
