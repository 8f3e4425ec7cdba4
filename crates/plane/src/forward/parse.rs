//! First stage: which packets are in order, and where they want to go.
//!
//! The headers of a packet in order are checked by straight-line code at constant offsets of the first 64 bytes; the
//! results are joined by `&` rather than `&&`, so that a good packet meets one branch and not seven. Whatever fails
//! goes to [`diagnose`], which takes its time: it finds the reason, and it lets through what is right but rare (VLAN
//! tags, IPv4 options, addresses near martian ones).

use super::{Forwarder, Interface, martian, tag};
use crate::burst::{Packet, Slot};
use crate::counters::Run;
use crate::verdict::{Punt, Reason, Verdict};
use crate::wire::ethernet::{EtherType, Frame, HEADER as ETHERNET};
use crate::wire::{Field, Malformed, checksum, ipv4, ipv6};

/// Where a packet wants to go.
enum Key {
    Inet(u32),
    Inet6(u128),
}

const INET_HEADER: Field<{ ipv4::HEADER }> = Field(ETHERNET);

impl Forwarder {
    #[inline]
    pub(super) fn parse(&mut self, packets: &mut [Packet<'_>]) {
        self.inet_keys.clear();
        self.inet6_keys.clear();
        let mut run = Run::default();
        for (place, packet) in packets.iter_mut().enumerate() {
            let counters = &mut self.counters;
            run.count(packet.port, packet.frame_len(), |port, traffic| counters.add_received(port, traffic));
            match self.interfaces.get(usize::from(packet.port)).map(|interface| key(packet, interface)) {
                Some(Ok(Key::Inet(addr))) => self.inet_keys.push(addr, place, &*self.inet),
                Some(Ok(Key::Inet6(addr))) => self.inet6_keys.push(addr, place, &*self.inet6),
                Some(Err(verdict)) => packet.verdict = verdict,
                None => packet.verdict = Verdict::Drop(Reason::UnknownPort),
            }
        }
        let (port, traffic) = run.finish();
        self.counters.add_received(port, traffic);
    }
}

/// The destination of a packet in order; otherwise what becomes of it.
#[inline(always)]
fn key(packet: &mut Slot, interface: &Interface) -> Result<Key, Verdict> {
    let len = packet.frame_len();
    let head = packet.head();
    let frame = Frame::new_unchecked(head);
    let ours = (frame.destination() == interface.mac) & interface.vlan.is_none();
    let key = match frame.outer_ethertype() {
        EtherType::IPV4 => inet(head, len).map(Key::Inet),
        EtherType::IPV6 => inet6(head, len).map(Key::Inet6),
        _ => None,
    };
    match key {
        Some(key) if ours => Ok(key),
        _ => diagnose(packet, interface),
    }
}

/// The destination of an IPv4 packet without options that has nothing wrong with it (RFC 1812, section 5.2.2).
/// Of a short frame it reads stale bytes, and then refuses: header and total length have to lie inside the frame.
#[inline(always)]
fn inet(head: &[u8; 64], frame_len: usize) -> Option<u32> {
    let ip = ipv4::Packet::new_unchecked(&head[ETHERNET..]);
    let (total, room) = (usize::from(ip.total_len()), frame_len.wrapping_sub(ETHERNET));
    let lengths = (total >= ipv4::HEADER) & (total <= room) & (frame_len >= ETHERNET);
    let intact = checksum::header_verifies(&INET_HEADER.get(head));
    let plain = !martian::inet_suspect(ip.source(), ip.destination());
    ((ip.version_ihl() == 0x45) & lengths & intact & plain).then(|| ip.destination())
}

/// The destination of an IPv6 packet that has nothing wrong with it (RFC 8200, section 3).
#[inline(always)]
fn inet6(head: &[u8; 64], frame_len: usize) -> Option<u128> {
    let ip = ipv6::Packet::new_unchecked(&head[ETHERNET..]);
    let whole = ip.total_len() + ETHERNET <= frame_len;
    let plain = !martian::inet6_suspect(ip.source(), ip.destination());
    ((ip.version() == 6) & whole & plain).then(|| ip.destination())
}

/// The slow path of [`key`]: everything again, one thing after the other.
#[cold]
#[inline(never)]
fn diagnose(packet: &mut Slot, interface: &Interface) -> Result<Key, Verdict> {
    let frame = Frame::new_checked(packet.frame()).map_err(|_| Verdict::Drop(Reason::TooShort))?;
    let (destination, vlan) = (frame.destination(), frame.vlan().unwrap_or(0));
    if destination != interface.mac && !destination.is_group() {
        return Err(Verdict::Drop(Reason::NotOurMac));
    }
    if vlan != interface.vlan.unwrap_or(0) {
        return Err(Verdict::Drop(Reason::WrongVlan));
    }
    if frame.is_tagged() {
        tag::pop(packet);
    }
    let key = diagnose_payload(&Frame::new_unchecked(packet.frame()))?;
    if destination.is_group() { Err(Verdict::Drop(Reason::LinkBroadcast)) } else { Ok(key) }
}

fn diagnose_payload(frame: &Frame<&[u8]>) -> Result<Key, Verdict> {
    match frame.outer_ethertype() {
        EtherType::IPV4 => diagnose_inet(frame.payload()).map(Key::Inet),
        EtherType::IPV6 => diagnose_inet6(frame.payload()).map(Key::Inet6),
        EtherType::ARP => Err(Verdict::Punt(Punt::Arp)),
        _ => Err(Verdict::Drop(Reason::NotIp)),
    }
}

fn diagnose_inet(payload: &[u8]) -> Result<u32, Verdict> {
    let ip = ipv4::Packet::new_checked(payload).map_err(malformed)?;
    if !ip.verify_checksum() {
        return Err(Verdict::Drop(Reason::Checksum));
    }
    if is_source_routed(ip.options()) {
        return Err(Verdict::Drop(Reason::SourceRoute));
    }
    martian::inet(ip.source(), ip.destination()).map_or(Ok(ip.destination()), Err)
}

fn diagnose_inet6(payload: &[u8]) -> Result<u128, Verdict> {
    let ip = ipv6::Packet::new_checked(payload).map_err(malformed)?;
    martian::inet6(ip.source(), ip.destination()).map_or(Ok(ip.destination()), Err)
}

fn malformed(error: Malformed) -> Verdict {
    Verdict::Drop(match error {
        Malformed::TooShort { .. } => Reason::TooShort,
        Malformed::Version { .. } => Reason::BadVersion,
        Malformed::HeaderLength { .. } => Reason::HeaderLength,
        Malformed::TotalLength { .. } => Reason::TotalLength,
    })
}

/// Whether IPv4 options hold a loose or strict source route. Other options are the end hosts' business (RFC 7126).
fn is_source_routed(mut options: &[u8]) -> bool {
    const END: u8 = 0;
    const NO_OPERATION: u8 = 1;
    const LOOSE_SOURCE_ROUTE: u8 = 131;
    const STRICT_SOURCE_ROUTE: u8 = 137;
    loop {
        match *options {
            [] | [END, ..] => return false,
            [LOOSE_SOURCE_ROUTE | STRICT_SOURCE_ROUTE, ..] => return true,
            [NO_OPERATION, ..] => options = &options[1..],
            // A length below 2 or beyond the header is damage: what follows it means nothing.
            [_, len, ..] if len >= 2 => options = options.get(usize::from(len)..).unwrap_or(&[]),
            _ => return false,
        }
    }
}
