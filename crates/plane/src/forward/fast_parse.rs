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
use super::stage_state::StageState;
use crate::burst::{Packet, Slot};
use crate::counters::Traffic;
use crate::view::{PortIngress, View};
use crate::wire::ethernet::{EtherType, HEADER as ETHERNET};
use crate::wire::ipv4::{self, Ipv4Packet};
use crate::wire::ipv6::Ipv6Packet;
use crate::wire::{Field, checksum};
use fullview_table::Address;

const INET_HEADER: Field<{ ipv4::HEADER }> = Field(ETHERNET);

/// The type of a frame and the first two bytes of its IP header, which are compared at once.
const TYPE_AND_VERSION: Field<4> = Field(12);

/// What the plain packets of a family have there: the bits of a mask.
struct Kind {
    value: u32,
    mask: u32,
}

/// IPv4 with a header of five words.
const PLAIN_INET: Kind = Kind { value: (EtherType::IPV4.0 as u32) << 16 | 0x4500, mask: 0xffff_ff00 };
const PLAIN_INET6: Kind = Kind { value: (EtherType::IPV6.0 as u32) << 16 | 0x6000, mask: 0xffff_f000 };

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
/// the compiler knows that packets and batches do not overlap.
#[inline(never)]
fn gather(
    ingress: &PortIngress,
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
        let is_inet6 = is_kind(packet, PLAIN_INET6);
        let (rest, at) = (&mut packets[read..], first + read);
        let run = match is_inet6 {
            true => run(rest, at, &ours, inet6, inet6_destination),
            false => run(rest, at, &ours, inet, inet_destination),
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
fn run<A: Address>(
    packets: &mut [Packet<'_>],
    first: usize,
    ours: &Ours,
    batch: &mut LookupBatch<A>,
    destination: impl Fn(&Slot, &Ours) -> Option<A>,
) -> Traffic {
    let mut bytes = 0;
    let before = batch.len();
    for (position, packet) in (first..).zip(packets) {
        let Some(addr) = destination(packet, ours).filter(|_| packet.port == ours.port) else { break };
        packet.interface = ours.interface;
        batch.push(addr, position);
        bytes += packet.frame_len() as u64;
    }
    Traffic { packets: (batch.len() - before) as u64, bytes }
}

/// What the plain packets of a port have in common.
struct Ours {
    port: u16,
    interface: u16,
    /// The MAC address in the upper bytes.
    mac: u64,
    inet: bool,
    inet6: bool,
}

impl Ours {
    #[inline(always)]
    fn of(ingress: &PortIngress, port: u16) -> Ours {
        let mut mac = [0; 8];
        mac[2..].copy_from_slice(&ingress.mac.0);
        let mac = u64::from_le_bytes(mac);
        Ours { port, interface: ingress.interface, mac, inet: ingress.inet, inet6: ingress.inet6 }
    }

    /// Whether a frame is for this MAC address: one load and one comparison.
    #[inline(always)]
    fn is_to(&self, head: &[u8; 64]) -> bool {
        u64::from_le_bytes(Field::<8>(0).get(head)) << 16 == self.mac
    }
}

/// Whether the frame says that it is of this kind.
#[inline(always)]
fn is_kind(packet: &Slot, kind: Kind) -> bool {
    TYPE_AND_VERSION.number(packet.head()) & kind.mask == kind.value
}

/// The destination of a correct IPv4 packet without options (RFC 1812, section 5.2.2); `None` for a packet that the slow
/// parser has to examine. In a short frame the code reads stale bytes and then rejects the packet, because header and total
/// length have to lie inside the frame.
#[inline(always)]
fn inet_destination(packet: &Slot, ours: &Ours) -> Option<u32> {
    let head = packet.head();
    let ip = Ipv4Packet::new_unchecked(&head[ETHERNET..]);
    let (total, room) = (i32::from(ip.total_len()), packet.frame_len() as i32 - ETHERNET as i32);
    let lengths = (total >= ipv4::HEADER as i32) & (total <= room);
    let intact = checksum::header_verifies(&INET_HEADER.get(head));
    let plain = !martian::inet_suspect(ip.source(), ip.destination());
    let is_inet = is_kind(packet, PLAIN_INET);
    (ours.inet & ours.is_to(head) & is_inet & lengths & intact & plain).then(|| ip.destination())
}

/// The destination of a correct IPv6 packet (RFC 8200, section 3).
#[inline(always)]
fn inet6_destination(packet: &Slot, ours: &Ours) -> Option<u128> {
    let head = packet.head();
    let ip = Ipv6Packet::new_unchecked(&head[ETHERNET..]);
    let whole = ip.total_len() + ETHERNET <= packet.frame_len();
    let plain = !martian::inet6_suspect(ip.source(), ip.destination());
    let is_inet6 = is_kind(packet, PLAIN_INET6);
    (ours.inet6 & ours.is_to(head) & is_inet6 & whole & plain).then(|| ip.destination())
}
