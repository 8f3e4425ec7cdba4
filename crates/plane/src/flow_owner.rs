//! Which worker judges the packets of a flow, where several share a filter.
//!
//! It follows from the sum of both addresses, so that both directions of a flow have one owner, and so have its fragments, which
//! show no ports. An ICMP error belongs to the flow of the packet that it quotes. A packet socket's group computes the same
//! number within the kernel (`port/spread.rs`).

use fullview_filter::address::{Address, Family};
use fullview_filter::packet::{Direction, NO_INTERFACE, Packet, Pass, protocol};

use crate::burst::Slot;
use crate::wire::ethernet::{EtherType, Frame, HEADER, TAG};

/// Spreads sums over all bits: 2^32 divided by the golden ratio.
pub(crate) const MULTIPLIER: u32 = 0x9e37_79b1;
/// The upper bits of a product depend on all bits of the sum. Times the number of workers they have the owner in theirs.
pub(crate) const SHIFT: u32 = 16;

/// The pass does not matter to what is read.
const PASS: Pass = Pass { direction: Direction::In, interface: NO_INTERFACE, received_on: NO_INTERFACE };

/// The worker, of so many, that judges packets between two addresses, in both directions.
pub fn owner(source: Address, destination: Address, workers: usize) -> usize {
    owner_of_sum(words(source).wrapping_add(words(destination)), workers)
}

/// The worker, of so many, that judges a packet. `None` if it is no whole IP packet: any worker may reject it.
#[inline(always)]
pub(crate) fn owner_of(slot: &Slot, workers: usize) -> Option<usize> {
    const INET: EtherType = EtherType::IPV4;
    let (head, len) = (slot.head(), slot.frame_len());
    let sum = match EtherType(u16::from_be_bytes([head[12], head[13]])) {
        INET if head[HEADER] >> 4 == 4 && has_ports(head[23]) && len >= 34 => sum(&head[26..34]),
        EtherType::IPV6 if head[HEADER] >> 4 == 6 && has_ports(head[20]) && len >= 54 => sum(&head[22..54]),
        _ => return owner_of_frame(slot.frame(), workers),
    };
    Some(owner_of_sum(sum, workers))
}

fn has_ports(protocol: u8) -> bool {
    matches!(protocol, protocol::TCP | protocol::UDP)
}

/// As [`owner_of`], for any frame.
#[cold]
fn owner_of_frame(frame: &[u8], workers: usize) -> Option<usize> {
    let packet = payload(frame)?;
    let (sum, next) = match packet.first()? >> 4 {
        4 => (sum(packet.get(12..20)?), packet[9]),
        6 => (sum(packet.get(8..40)?), packet[6]),
        _ => return None,
    };
    let of_quoted = if has_ports(next) { None } else { owner_of_quoted(packet, workers) };
    of_quoted.or_else(|| Some(owner_of_sum(sum, workers)))
}

/// The owner of an ICMP error is that of the packet it quotes, which may stand behind extension headers.
fn owner_of_quoted(packet: &[u8], workers: usize) -> Option<usize> {
    let quoted = Packet::parse(packet, PASS).ok()?.quoted?;
    Some(owner(quoted.source, quoted.destination, workers))
}

#[inline(always)]
fn owner_of_sum(sum: u32, workers: usize) -> usize {
    let upper = sum.wrapping_mul(MULTIPLIER) >> SHIFT;
    (upper as usize * workers) >> (u32::BITS - SHIFT)
}

/// The IP packet of a frame with one tag at most.
fn payload(frame: &[u8]) -> Option<&[u8]> {
    let read = Frame::new_unchecked(frame.get(..HEADER)?);
    let is_tagged = read.outer_ethertype() == EtherType::VLAN;
    frame.get(HEADER + if is_tagged { TAG } else { 0 }..)
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

    use super::{owner, owner_of_frame};
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

    /// What both functions say about a frame, which is the same.
    fn owner_of(frame: &[u8], workers: usize) -> Option<usize> {
        let mut arena = Arena::new(1);
        let mut packets = arena.packets();
        let slot = packets.next().unwrap();
        slot.set_frame(&[0xff; 64]);
        slot.set_frame(frame);
        let owner = super::owner_of(slot, workers);
        assert_eq!(owner, owner_of_frame(frame, workers));
        owner
    }

    fn hosts(number: u8) -> (Ipv4Addr, Ipv4Addr) {
        (Ipv4Addr::new(10, 0, 0, number), Ipv4Addr::new(198, 51, 100, 7))
    }

    #[test]
    fn both_directions_fragments_and_tags_have_one_owner_and_all_workers_own_flows() {
        let mut owners = [0; WORKERS];
        for number in 0..=255 {
            let (from, to) = hosts(number);
            let there = owner_of(&framed(0x0800, &inet(from, to, 17, &[0; 40])), WORKERS);
            let mut later = inet(to, from, 17, &[9; 40]);
            later[7] = 5;
            let tagged =
                [&5u16.to_be_bytes(), &0x0800u16.to_be_bytes()[..], &inet(to, from, 6, &[0; 40])].concat();
            for back in [framed(0x0800, &later), framed(0x8100, &tagged)] {
                assert_eq!(owner_of(&back, WORKERS), there);
            }
            assert_eq!(there, Some(owner(from.into(), to.into(), WORKERS)));
            owners[there.unwrap()] += 1;
        }
        assert!(owners.iter().all(|flows| *flows > 256 / WORKERS / 2), "{owners:?}");
    }

    #[test]
    fn an_error_has_the_owner_of_the_packet_that_it_quotes() {
        for number in 0..32 {
            let (from, to) = hosts(number);
            let quoted = inet(from, to, 17, &[0; 8]);
            let error = [&[3, 3, 0, 0, 0, 0, 0, 0], &quoted[..]].concat();
            let error = inet(Ipv4Addr::new(203, 0, 113, 1), from, 1, &error);
            assert_eq!(
                owner_of(&framed(0x0800, &error), WORKERS),
                Some(owner(from.into(), to.into(), WORKERS))
            );
            let (from, to) = (Ipv6Addr::from([number; 16]), Ipv6Addr::from([0x3f; 16]));
            let quoted = inet6(from, to, 17, &[0; 8]);
            let error = [&[1, 4, 0, 0, 0, 0, 0, 0], &quoted[..]].concat();
            let behind_options = [&[58, 0, 1, 4, 0, 0, 0, 0], &error[..]].concat();
            for (next, payload) in [(58, &error), (0, &behind_options)] {
                let frame = framed(0x86dd, &inet6(Ipv6Addr::from([0x20; 16]), from, next, payload));
                assert_eq!(owner_of(&frame, WORKERS), Some(owner(from.into(), to.into(), WORKERS)), "{next}");
            }
        }
    }

    #[test]
    fn what_is_no_whole_packet_has_no_owner() {
        let (from, to) = hosts(1);
        let whole = framed(0x0800, &inet(from, to, 17, &[]));
        for len in 0..whole.len() {
            assert_eq!(owner_of(&whole[..len], WORKERS), None, "{len} bytes");
        }
        assert_eq!(owner_of(&framed(0x0806, &[0; 46]), WORKERS), None);
        // A query is of its own addresses.
        let query = framed(0x0800, &inet(from, to, 1, &[8, 0, 0, 0, 0, 1, 0, 1]));
        assert_eq!(owner_of(&query, WORKERS), Some(owner(from.into(), to.into(), WORKERS)));
    }
}
