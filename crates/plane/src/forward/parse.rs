//! First stage: which packets are in order, and where they want to go.
//!
//! The headers of a packet in order are checked by straight-line code at constant offsets of the first 64 bytes; the
//! results are joined by `&` rather than `&&`, so that a good packet meets one branch and not seven. Whatever fails
//! goes to [`Stages::examine`], which takes its time: it finds the reason, and it lets through what is right but rare
//! (VLAN tags, IPv4 options, addresses near martian ones).

use super::{Stages, martian};
use crate::burst::{Packet, Slot};
use crate::counters::Run;
use crate::view::{Ingress, View};
use crate::wire::ethernet::{EtherType, Frame, HEADER as ETHERNET};
use crate::wire::{Field, checksum, ipv4, ipv6};

/// Where a packet wants to go.
pub(super) enum Key {
    Inet(u32),
    Inet6(u128),
}

const INET_HEADER: Field<{ ipv4::HEADER }> = Field(ETHERNET);

impl Stages {
    #[inline]
    pub(super) fn parse(&mut self, view: &View, packets: &mut [Packet<'_>]) {
        self.tables.iter_mut().for_each(|table| table.clear());
        self.tags.clear();
        let mut run = Run::default();
        for (place, packet) in packets.iter_mut().enumerate() {
            let (ingress, len) = (view.ingress(packet.port), packet.frame_len());
            packet.interface = ingress.interface;
            match (key(packet, ingress), self.tables.get_mut(usize::from(ingress.table))) {
                (Some(Key::Inet(addr)), Some(table)) => table.inet.push(addr, place),
                (Some(Key::Inet6(addr)), Some(table)) => table.inet6.push(addr, place),
                _ => self.examine(view, place, packet),
            }
            let counters = &mut self.counters;
            run.count(packet.interface, len, |interface, traffic| counters.add_received(interface, traffic));
        }
        let (interface, traffic) = run.finish();
        self.counters.add_received(interface, traffic);
    }
}

/// The destination of a plain packet in order; `None` if something has to be looked at closer.
#[inline(always)]
fn key(packet: &Slot, ingress: &Ingress) -> Option<Key> {
    let len = packet.frame_len();
    let head = packet.head();
    let frame = Frame::new_unchecked(head);
    let ours = frame.destination() == ingress.mac;
    match frame.outer_ethertype() {
        EtherType::IPV4 => inet(head, len, ours & ingress.inet).map(Key::Inet),
        EtherType::IPV6 => inet6(head, len, ours & ingress.inet6).map(Key::Inet6),
        _ => None,
    }
}

/// The destination of an IPv4 packet without options that has nothing wrong with it (RFC 1812, section 5.2.2).
/// Of a short frame it reads stale bytes, and then refuses: header and total length have to lie inside the frame.
#[inline(always)]
fn inet(head: &[u8; 64], frame_len: usize, ours: bool) -> Option<u32> {
    let ip = ipv4::Packet::new_unchecked(&head[ETHERNET..]);
    let (total, room) = (usize::from(ip.total_len()), frame_len.wrapping_sub(ETHERNET));
    let lengths = (total >= ipv4::HEADER) & (total <= room) & (frame_len >= ETHERNET);
    let intact = checksum::header_verifies(&INET_HEADER.get(head));
    let plain = !martian::inet_suspect(ip.source(), ip.destination());
    (ours & (ip.version_ihl() == 0x45) & lengths & intact & plain).then(|| ip.destination())
}

/// The destination of an IPv6 packet that has nothing wrong with it (RFC 8200, section 3).
#[inline(always)]
fn inet6(head: &[u8; 64], frame_len: usize, ours: bool) -> Option<u128> {
    let ip = ipv6::Packet::new_unchecked(&head[ETHERNET..]);
    let whole = ip.total_len() + ETHERNET <= frame_len;
    let plain = !martian::inet6_suspect(ip.source(), ip.destination());
    (ours & (ip.version() == 6) & whole & plain).then(|| ip.destination())
}
