//! Which worker judges the packets of a flow, where several share a filter.
//!
//! It follows from the sum of both addresses, so that both directions of a flow have one owner, and so have its fragments, which
//! show no ports. With pf an ICMP error belongs to the flow of the packet that it quotes; ipfw has states for errors themselves. A
//! packet socket's group computes the same number within the kernel (`port/spread.rs`).
//!
//! What no rule judges has no owner: neighbour discovery, link-local addresses, groups. It stays with the worker that receives it, so
//! that nothing else can crowd it out on the way to another one.

use fullview_filter::address::{Address, Family};
use fullview_filter::packet::{Direction, NO_INTERFACE, Packet, Pass, protocol};

use crate::burst::Slot;
use crate::wire::ethernet::{EtherType, HEADER, TAG};

/// Spreads sums over all bits: 2^32 divided by the golden ratio.
pub(crate) const MULTIPLIER: u32 = 0x9e37_79b1;
/// The upper bits of a product depend on all bits of the sum. Times the number of workers they have the owner in theirs.
pub(crate) const SHIFT: u32 = 16;

/// The pass does not matter to what is read.
const PASS: Pass = Pass { direction: Direction::In, interface: NO_INTERFACE, received_on: NO_INTERFACE };

/// The types of neighbour discovery (RFC 4861), from router solicitation to redirect.
const DISCOVERY: std::ops::RangeInclusive<u8> = 133..=137;

/// The worker, of so many, that judges packets between two addresses, in both directions.
pub fn owner(source: Address, destination: Address, workers: usize) -> usize {
    owner_of_sum(words(source).wrapping_add(words(destination)), workers)
}

/// How the flows of a filter are divided among workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowOwners {
    pub workers: usize,
    /// Whether an error passes by the state of the packet that it quotes, as in pf.
    pub follow_quotes: bool,
}

impl FlowOwners {
    /// The worker that judges a packet. `None` if any one may have it: no rule judges it, or it is no whole IP packet.
    #[inline(always)]
    pub(crate) fn of(self, slot: &Slot) -> Option<usize> {
        let head = slot.head();
        match EtherType(u16::from_be_bytes([head[12], head[13]])) {
            EtherType::VLAN => self.of_packet_at::<{ HEADER + TAG }>(slot),
            _ => self.of_packet_at::<HEADER>(slot),
        }
    }

    /// The owner of a packet that begins there, behind its type.
    #[inline(always)]
    fn of_packet_at<const AT: usize>(self, slot: &Slot) -> Option<usize> {
        let head = slot.head();
        let ethertype = EtherType(u16::from_be_bytes([head[AT - 2], head[AT - 1]]));
        let (sum, next, len) = match (ethertype, head[AT] >> 4) {
            (EtherType::IPV4, 4) => (sum(&head[AT + 12..AT + 20]), head[AT + 9], 20),
            (EtherType::IPV6, 6) if is_link_local::<AT>(head) => return None,
            (EtherType::IPV6, 6) => (sum(&head[AT + 8..AT + 40]), head[AT + 6], 40),
            _ => return None,
        };
        if head[0] & 1 != 0 || slot.frame_len() < AT + len {
            return None;
        }
        if may_be_icmp(next) {
            return self.of_icmp(slot.frame().get(AT..)?, sum);
        }
        Some(owner_of_sum(sum, self.workers))
    }

    /// The owner of an ICMP error is that of the packet it quotes, which may stand behind extension headers.
    #[cold]
    fn of_icmp(self, packet: &[u8], sum: u32) -> Option<usize> {
        let read = Packet::parse(packet, PASS).ok();
        let is_discovery = |packet: &Packet| {
            packet.protocol == protocol::ICMP6
                && packet.icmp().is_some_and(|icmp| DISCOVERY.contains(&icmp.kind))
        };
        if read.as_ref().is_some_and(is_discovery) {
            return None;
        }
        let quoted = read.and_then(|packet| packet.quoted).filter(|_| self.follow_quotes);
        let of_quoted = quoted.map(|quoted| owner(quoted.source, quoted.destination, self.workers));
        Some(of_quoted.unwrap_or_else(|| owner_of_sum(sum, self.workers)))
    }
}

/// Whether the IPv6 packet there has such an address (fe80::/10).
#[inline(always)]
fn is_link_local<const AT: usize>(head: &[u8; 64]) -> bool {
    let is_one = |at: usize| head[at] == 0xfe && head[at + 1] & 0xc0 == 0x80;
    is_one(AT + 8) || is_one(AT + 24)
}

/// Whether ICMP may follow, perhaps behind headers of IPv6: hop-by-hop options, routing, fragment, options for the destination.
#[inline(always)]
fn may_be_icmp(next: u8) -> bool {
    matches!(next, protocol::ICMP | protocol::ICMP6 | 0 | 43 | 44 | 60)
}

#[inline(always)]
fn owner_of_sum(sum: u32, workers: usize) -> usize {
    let upper = sum.wrapping_mul(MULTIPLIER) >> SHIFT;
    (upper as usize * workers) >> (u32::BITS - SHIFT)
}

/// The sum of an address's words of 32 bits.
fn words(address: Address) -> u32 {
    match address.family() {
        Family::Inet => address.0 as u32,
        Family::Inet6 => sum(&address.0.to_be_bytes()),
    }
}

#[inline(always)]
fn sum(bytes: &[u8]) -> u32 {
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().fold(0, |sum: u32, word| sum.wrapping_add(u32::from_be_bytes(*word)))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;
    use crate::burst::Arena;

    const WORKERS: usize = 7;

    fn inet(from: Ipv4Addr, to: Ipv4Addr, protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 20];
        (packet[0], packet[8], packet[9]) = (0x45, 64, protocol);
        packet[2..4].copy_from_slice(&(20 + payload.len() as u16).to_be_bytes());
        packet[12..16].copy_from_slice(&from.octets());
        packet[16..20].copy_from_slice(&to.octets());
        packet.extend_from_slice(payload);
        packet
    }

    fn inet6(from: Ipv6Addr, to: Ipv6Addr, next: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 40];
        (packet[0], packet[6], packet[7]) = (0x60, next, 64);
        packet[4..6].copy_from_slice(&(payload.len() as u16).to_be_bytes());
        packet[8..24].copy_from_slice(&from.octets());
        packet[24..40].copy_from_slice(&to.octets());
        packet.extend_from_slice(payload);
        packet
    }

    fn framed(ethertype: u16, packet: &[u8]) -> Vec<u8> {
        [&[2; 12], &ethertype.to_be_bytes()[..], packet].concat()
    }

    /// The owner of a frame in a slot that had another one before.
    fn owner_of(frame: &[u8], follow_quotes: bool) -> Option<usize> {
        let mut arena = Arena::new(1);
        let mut packets = arena.packets();
        let slot = packets.next().unwrap();
        slot.set_frame(&[0xff; 64]);
        slot.set_frame(frame);
        FlowOwners { workers: WORKERS, follow_quotes }.of(slot)
    }

    fn hosts(number: u8) -> (Ipv4Addr, Ipv4Addr) {
        (Ipv4Addr::new(10, 0, 0, number), Ipv4Addr::new(198, 51, 100, 7))
    }

    #[test]
    fn both_directions_fragments_and_tags_have_one_owner_and_all_workers_own_flows() {
        let mut owners = [0; WORKERS];
        for number in 0..=255 {
            let (from, to) = hosts(number);
            let there = owner_of(&framed(0x0800, &inet(from, to, 17, &[0; 40])), true);
            let mut later = inet(to, from, 17, &[9; 40]);
            later[7] = 5;
            let tagged =
                [&5u16.to_be_bytes(), &0x0800u16.to_be_bytes()[..], &inet(to, from, 6, &[0; 40])].concat();
            for back in [framed(0x0800, &later), framed(0x8100, &tagged)] {
                assert_eq!(owner_of(&back, true), there);
            }
            assert_eq!(there, Some(owner(from.into(), to.into(), WORKERS)));
            owners[there.unwrap()] += 1;
        }
        assert!(owners.iter().all(|flows| *flows > 256 / WORKERS / 2), "{owners:?}");
    }

    #[test]
    fn an_error_has_the_owner_of_the_packet_that_it_quotes_if_states_follow_quotes() {
        let reporter = Ipv4Addr::new(203, 0, 113, 1);
        for number in 0..32 {
            let (from, to) = hosts(number);
            let quoted = inet(from, to, 17, &[0; 8]);
            let error = [&[3, 3, 0, 0, 0, 0, 0, 0], &quoted[..]].concat();
            let error = framed(0x0800, &inet(reporter, from, 1, &error));
            assert_eq!(owner_of(&error, true), Some(owner(from.into(), to.into(), WORKERS)));
            assert_eq!(owner_of(&error, false), Some(owner(reporter.into(), from.into(), WORKERS)));
            let (from, to) = (Ipv6Addr::from([number; 16]), Ipv6Addr::from([0x3f; 16]));
            let quoted = inet6(from, to, 17, &[0; 8]);
            let error = [&[1, 4, 0, 0, 0, 0, 0, 0], &quoted[..]].concat();
            let behind_options = [&[58, 0, 1, 4, 0, 0, 0, 0], &error[..]].concat();
            for (next, payload) in [(58, &error), (0, &behind_options)] {
                let frame = framed(0x86dd, &inet6(Ipv6Addr::from([0x20; 16]), from, next, payload));
                assert_eq!(owner_of(&frame, true), Some(owner(from.into(), to.into(), WORKERS)), "{next}");
            }
        }
    }

    #[test]
    fn what_is_no_whole_packet_has_no_owner() {
        let (from, to) = hosts(1);
        let whole = framed(0x0800, &inet(from, to, 17, &[]));
        for len in 0..whole.len() {
            assert_eq!(owner_of(&whole[..len], true), None, "{len} bytes");
        }
        assert_eq!(owner_of(&framed(0x0806, &[0; 46]), true), None);
        assert_eq!(owner_of(&framed(0x86dd, &whole[14..]), true), None, "of another version");
        // A query is of its own addresses.
        let query = framed(0x0800, &inet(from, to, 1, &[8, 0, 0, 0, 0, 1, 0, 1]));
        assert_eq!(owner_of(&query, true), Some(owner(from.into(), to.into(), WORKERS)));
    }

    #[test]
    fn what_no_rule_judges_has_no_owner() {
        let (near, far) = (Ipv6Addr::from([0x20; 16]), Ipv6Addr::from([0x3f; 16]));
        let link_local: Ipv6Addr = "fe80::1".parse().unwrap();
        let solicitation =
            |from, to| framed(0x86dd, &inet6(from, to, 58, &[&[135, 0], &[0; 22][..]].concat()));
        assert_eq!(owner_of(&solicitation(near, far), true), None);
        for (from, to) in [(link_local, near), (near, link_local)] {
            assert_eq!(owner_of(&framed(0x86dd, &inet6(from, to, 6, &[0; 20])), true), None);
        }
        let mut group = framed(0x86dd, &inet6(near, far, 17, &[0; 8]));
        assert!(owner_of(&group, true).is_some());
        group[0] = 0x33;
        assert_eq!(owner_of(&group, true), None);
    }
}
