//! The fast parser: header checks of plain packets, and their destinations.
//!
//! Straight-line code checks the headers at constant offsets of the first 64 bytes and joins the results by `&` instead
//! of `&&`, so that a correct packet meets one branch and not seven. Every packet that fails a check goes to
//! `slow_parse.rs`, which finds the reason and lets rare but correct packets through (VLAN tags, IPv4 options, addresses
//! near special blocks).

use std::ops::Range;

use super::keys::{BurstPositions, Destination, LookupBatch};
use super::martian;
use super::stage_state::StageState;
use crate::burst::{Packet, Slot};
use crate::counters::Traffic;
use crate::view::{PortIngress, View};
use crate::wire::ethernet::{EtherType, Frame, HEADER as ETHERNET};
use crate::wire::ipv4::{self, Ipv4Packet};
use crate::wire::ipv6::Ipv6Packet;
use crate::wire::{Field, checksum};

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
        let (read, plain) = gather(ingress, packets, position, batches, &mut state.exceptions);
        state.counters.add_received(ingress.interface, plain);
        table.prefetch_added();
        position += read;
    }
}

/// Adds the destinations of plain packets from the port of the first packet, up to the first packet from another port;
/// `first` is the position of the first one. Returns how many packets were read, and the traffic of the plain ones.
///
/// Other packets are put off as exceptions, so that this loop calls no function. It is a function of its own, so that
/// the compiler knows that packets and batches do not overlap, and keeps the lengths of the batches in registers.
#[inline(never)]
fn gather(
    ingress: &PortIngress,
    packets: &mut [Packet<'_>],
    first: usize,
    (inet, inet6): (&mut LookupBatch<u32>, &mut LookupBatch<u128>),
    exceptions: &mut BurstPositions,
) -> (usize, Traffic) {
    let (mut read, mut plain, port) = (0, Traffic::default(), packets.first().map(|packet| packet.port));
    for packet in packets {
        if Some(packet.port) != port {
            break;
        }
        packet.interface = ingress.interface;
        match destination(packet, ingress) {
            Some(Destination::Inet(addr)) => inet.push(addr, first + read),
            Some(Destination::Inet6(addr)) => inet6.push(addr, first + read),
            None => {
                exceptions.push(first + read);
                read += 1;
                continue;
            }
        }
        plain.count(packet.frame_len());
        read += 1;
    }
    (read, plain)
}

/// The destination of a plain, correct packet; `None` for a packet that the slow parser has to examine.
#[inline(always)]
fn destination(packet: &Slot, ingress: &PortIngress) -> Option<Destination> {
    let len = packet.frame_len();
    let head = packet.head();
    let frame = Frame::new_unchecked(head);
    let ours = frame.destination() == ingress.mac;
    match frame.outer_ethertype() {
        EtherType::IPV4 => inet(head, len, ours & ingress.inet).map(Destination::Inet),
        EtherType::IPV6 => inet6(head, len, ours & ingress.inet6).map(Destination::Inet6),
        _ => None,
    }
}

/// The destination of a correct IPv4 packet without options (RFC 1812, section 5.2.2). In a short frame the code reads
/// stale bytes and then rejects the packet, because header and total length have to lie inside the frame.
#[inline(always)]
fn inet(head: &[u8; 64], frame_len: usize, ours: bool) -> Option<u32> {
    let ip = Ipv4Packet::new_unchecked(&head[ETHERNET..]);
    let (total, room) = (usize::from(ip.total_len()), frame_len.wrapping_sub(ETHERNET));
    let lengths = (total >= ipv4::HEADER) & (total <= room) & (frame_len >= ETHERNET);
    let intact = checksum::header_verifies(&INET_HEADER.get(head));
    let plain = !martian::inet_suspect(ip.source(), ip.destination());
    (ours & (ip.version_ihl() == 0x45) & lengths & intact & plain).then(|| ip.destination())
}

/// The destination of a correct IPv6 packet (RFC 8200, section 3).
#[inline(always)]
fn inet6(head: &[u8; 64], frame_len: usize, ours: bool) -> Option<u128> {
    let ip = Ipv6Packet::new_unchecked(&head[ETHERNET..]);
    let whole = ip.total_len() + ETHERNET <= frame_len;
    let plain = !martian::inet6_suspect(ip.source(), ip.destination());
    (ours & (ip.version() == 6) & whole & plain).then(|| ip.destination())
}
