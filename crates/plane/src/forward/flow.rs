//! The hash of a packet's flow: a next-hop group picks a member by it, so that all packets of a flow take the same path.

use fullview_table::group::flow_hash;

use crate::burst::Slot;
use crate::flow_hash::{FlowFields, FlowHash};
use crate::wire::ethernet::HEADER as ETHERNET;
use crate::wire::ipv4::Ipv4Packet;
use crate::wire::ipv6::{self, Ipv6Packet};
use crate::wire::transport::ports;

/// The hash of an IPv4 packet that has passed the parser and has no tag.
pub(super) fn inet(packet: &Slot, hash: FlowHash) -> u32 {
    inet_in(&packet.head()[ETHERNET..], &packet.frame()[ETHERNET..], hash)
}

/// The same of an IPv6 packet.
pub(super) fn inet6(packet: &Slot, hash: FlowHash) -> u32 {
    inet6_in(&packet.head()[ETHERNET..], &packet.frame()[ETHERNET..], hash)
}

/// The hash of an IP packet without its frame; `None` if the packet is malformed.
pub fn flow_hash_of(packet: &[u8], hash: FlowHash) -> Option<u32> {
    const VERSION_6: u8 = 6;
    let version = packet.first()? >> 4;
    let is_whole = match version {
        VERSION_6 => Ipv6Packet::new_checked(packet).is_ok(),
        _ => Ipv4Packet::new_checked(packet).is_ok(),
    };
    let of = if version == VERSION_6 { inet6_in } else { inet_in };
    is_whole.then(|| of(packet, packet, hash))
}

/// What a hash covers besides the addresses: a protocol, and ports or a label.
type Rest = (u8, (u16, u16));

const ADDRESSES_ONLY: Rest = (0, (0, 0));

/// `head` holds the whole header; in the loop it is an array of constant length.
#[inline(always)]
fn inet_in(head: &[u8], packet: &[u8], hash: FlowHash) -> u32 {
    let ip = Ipv4Packet::new_unchecked(head);
    let is_fragment = ip.more_fragments() || ip.fragment_offset() != 0;
    let (protocol, ports) = match hash.inet {
        FlowFields::Layer3 => ADDRESSES_ONLY,
        // All but the first fragment of a packet lack the ports.
        _ if is_fragment => ADDRESSES_ONLY,
        FlowFields::Layer4 | FlowFields::LabelOrLayer4 => with_ports(packet, ip.protocol(), ip.header_len()),
    };
    flow_hash(hash.seed, ip.source().into(), ip.destination().into(), protocol, ports)
}

/// As [`inet_in`].
#[inline(always)]
fn inet6_in(head: &[u8], packet: &[u8], hash: FlowHash) -> u32 {
    let ip = Ipv6Packet::new_unchecked(head);
    let (next, label) = (ip.next_header(), ip.flow_label());
    let halves = ((label >> 16) as u16, label as u16);
    let (protocol, ports) = match hash.inet6 {
        FlowFields::Layer3 => (next, halves),
        FlowFields::LabelOrLayer4 if label != 0 => (0, halves),
        FlowFields::Layer4 | FlowFields::LabelOrLayer4 => with_ports(packet, next, ipv6::HEADER),
    };
    flow_hash(hash.seed, ip.source(), ip.destination(), protocol, ports)
}

#[inline(always)]
fn with_ports(packet: &[u8], protocol: u8, header_len: usize) -> Rest {
    ports(packet, protocol, header_len).map_or(ADDRESSES_ONLY, |ports| (protocol, ports))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::burst::Arena;

    const HASHES: [FlowHash; 3] =
        [with(FlowFields::Layer3), with(FlowFields::Layer4), with(FlowFields::LabelOrLayer4)];

    const fn with(fields: FlowFields) -> FlowHash {
        FlowHash { seed: 7, inet: fields, inet6: fields }
    }

    const UDP: [u8; 8] = [0x12, 0x34, 0x56, 0x78, 0, 8, 0, 0];

    fn inet_packet() -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2];
        packet.extend(UDP);
        packet
    }

    fn inet6_packet() -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, 8, 17, 64];
        packet.extend((0..32).chain(UDP));
        packet
    }

    /// For each of [`HASHES`], whether the hash is another one if the byte at this place of the packet is.
    fn covers(packet: &[u8], at: usize) -> [bool; 3] {
        let mut other = packet.to_vec();
        other[at] ^= 1;
        HASHES.map(|hash| flow_hash_of(packet, hash).unwrap() != flow_hash_of(&other, hash).unwrap())
    }

    #[test]
    fn nothing_but_the_chosen_fields_has_an_influence() {
        let inet = inet_packet();
        [15, 19].into_iter().for_each(|address| assert_eq!(covers(&inet, address), [true; 3]));
        [1, 5, 8].into_iter().for_each(|other| assert_eq!(covers(&inet, other), [false; 3]));
        [9, 21, 23].into_iter().for_each(|flow| assert_eq!(covers(&inet, flow), [false, true, true]));
        let mut fragment = inet;
        fragment[6] = 0x20;
        [9, 21, 23].into_iter().for_each(|flow| assert_eq!(covers(&fragment, flow), [false; 3]));
    }

    #[test]
    fn the_label_of_an_ipv6_packet_counts_where_it_is_chosen() {
        const LABEL: usize = 3;
        let mut inet6 = inet6_packet();
        [23, 39].into_iter().for_each(|address| assert_eq!(covers(&inet6, address), [true; 3]));
        [41, 43].into_iter().for_each(|port| assert_eq!(covers(&inet6, port), [false, true, true]));
        assert_eq!(covers(&inet6, 6), [true; 3], "the next header");
        inet6[LABEL] = 2;
        assert_eq!(covers(&inet6, LABEL), [true, false, true]);
        [41, 43].into_iter().for_each(|port| assert_eq!(covers(&inet6, port), [false, true, false]));
        assert_eq!(covers(&inet6, 6), [true, true, false], "the next header");
        assert_eq!(covers(&inet6, 7), [false; 3], "the hop limit");
    }

    #[test]
    fn a_packet_without_its_frame_has_the_hash_of_the_frame() {
        let mut arena = Arena::new(1);
        let slot = arena.packets().next().unwrap();
        for hash in HASHES {
            for (packet, of_slot) in
                [(inet_packet(), inet as fn(&Slot, FlowHash) -> u32), (inet6_packet(), inet6)]
            {
                assert!(slot.set_frame(&[&[2; ETHERNET][..], &packet].concat()));
                assert_eq!(flow_hash_of(&packet, hash), Some(of_slot(slot, hash)));
            }
        }
        assert_eq!(flow_hash_of(&[], HASHES[0]), None);
        assert_eq!(flow_hash_of(&[0x45; 19], HASHES[0]), None);
    }
}
