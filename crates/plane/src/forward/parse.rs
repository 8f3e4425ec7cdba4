//! First stage: which packets are in order, and where they want to go.
//!
//! The headers of a packet in order are checked by straight-line code at constant offsets of the first 64 bytes; the
//! results are joined by `&` rather than `&&`, so that a good packet meets one branch and not seven. Whatever fails
//! goes to [`Stages::examine`], which takes its time: it finds the reason, and it lets through what is right but rare
//! (VLAN tags, IPv4 options, addresses near martian ones).

use std::ops::Range;

use super::lookup::{BurstPositions, LookupBatch};
use super::{Stages, martian, short_burst};
use crate::burst::{Packet, Slot};
use crate::counters::Traffic;
use crate::view::{PortIngress, View};
use crate::wire::ethernet::{EtherType, Frame, HEADER as ETHERNET};
use crate::wire::ipv4::{self, Ipv4Packet};
use crate::wire::ipv6::Ipv6Packet;
use crate::wire::{Field, checksum};

/// Where a packet wants to go.
pub(super) enum Destination {
    Inet(u32),
    Inet6(u128),
}

const INET_HEADER: Field<{ ipv4::HEADER }> = Field(ETHERNET);

/// Packets read between two calls that ask for the table's memory: enough that a call costs each of them little, few
/// enough that most of a burst is asked for before the first one is looked up.
const AHEAD: usize = 32;

impl Stages {
    #[inline]
    pub(super) fn parse(&mut self, view: &View, packets: &mut [Packet<'_>]) {
        match packets.first() {
            Some(first) if short_burst::pays(first, packets.len()) => self.read_short(view, packets),
            _ => self.read(view, packets, 0..packets.len()),
        }
        for at in 0..self.late.len() {
            let place = self.late.get(at);
            self.examine(view, place, packets[place]);
        }
    }

    /// Reads the packets at these places.
    #[inline]
    pub(super) fn read(&mut self, view: &View, packets: &mut [Packet<'_>], places: Range<usize>) {
        let mut place = places.start;
        while place < places.end {
            let ingress = view.ingress(packets[place].port);
            let end = places.end.min(place + AHEAD);
            let table = &mut self.tables[usize::from(ingress.table)];
            let batches = (&mut *table.inet.destinations, &mut *table.inet6.destinations);
            let (read, plain) = gather(ingress, &mut packets[place..end], place, batches, &mut self.late);
            self.counters.add_received(ingress.interface, plain);
            table.ask_ahead();
            place += read;
        }
    }
}

/// Adds the destinations of plain packets that came in by the port of the first one, up to one of another port; `first`
/// is the place of the first one. Returns how many packets were read, and what the plain ones amount to.
///
/// What is not plain is put off, so that nothing is called in this loop. And it is a function of its own, so that the
/// compiler knows packets to lie elsewhere than batches, and keeps their lengths in registers.
#[inline(never)]
fn gather(
    ingress: &PortIngress,
    packets: &mut [Packet<'_>],
    first: usize,
    (inet, inet6): (&mut LookupBatch<u32>, &mut LookupBatch<u128>),
    late: &mut BurstPositions,
) -> (usize, Traffic) {
    let (mut read, mut plain, port) = (0, Traffic::default(), packets.first().map(|packet| packet.port));
    for packet in packets {
        if Some(packet.port) != port {
            break;
        }
        packet.interface = ingress.interface;
        match key(packet, ingress) {
            Some(Destination::Inet(addr)) => inet.push(addr, first + read),
            Some(Destination::Inet6(addr)) => inet6.push(addr, first + read),
            None => {
                late.push(first + read);
                read += 1;
                continue;
            }
        }
        plain.count(packet.frame_len());
        read += 1;
    }
    (read, plain)
}

/// The destination of a plain packet in order; `None` if something has to be looked at closer.
#[inline(always)]
fn key(packet: &Slot, ingress: &PortIngress) -> Option<Destination> {
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

/// The destination of an IPv4 packet without options that has nothing wrong with it (RFC 1812, section 5.2.2).
/// Of a short_burst frame it reads stale bytes, and then refuses: header and total length have to lie inside the frame.
#[inline(always)]
fn inet(head: &[u8; 64], frame_len: usize, ours: bool) -> Option<u32> {
    let ip = Ipv4Packet::new_unchecked(&head[ETHERNET..]);
    let (total, room) = (usize::from(ip.total_len()), frame_len.wrapping_sub(ETHERNET));
    let lengths = (total >= ipv4::HEADER) & (total <= room) & (frame_len >= ETHERNET);
    let intact = checksum::header_verifies(&INET_HEADER.get(head));
    let plain = !martian::inet_suspect(ip.source(), ip.destination());
    (ours & (ip.version_ihl() == 0x45) & lengths & intact & plain).then(|| ip.destination())
}

/// The destination of an IPv6 packet that has nothing wrong with it (RFC 8200, section 3).
#[inline(always)]
fn inet6(head: &[u8; 64], frame_len: usize, ours: bool) -> Option<u128> {
    let ip = Ipv6Packet::new_unchecked(&head[ETHERNET..]);
    let whole = ip.total_len() + ETHERNET <= frame_len;
    let plain = !martian::inet6_suspect(ip.source(), ip.destination());
    (ours & (ip.version() == 6) & whole & plain).then(|| ip.destination())
}
