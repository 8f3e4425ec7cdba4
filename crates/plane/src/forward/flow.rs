//! The hash of a packet's flow: a next-hop group picks a member by it, so that all packets of a flow take the same path.

use fullview_table::group::flow_hash;

use crate::burst::Slot;
use crate::wire::ethernet::HEADER as ETHERNET;
use crate::wire::ipv4::Ipv4Packet;
use crate::wire::ipv6::{self, Ipv6Packet};
use crate::wire::transport::ports;

/// The hash of addresses, protocol and ports; for a fragment of the addresses only, because all but the first fragment of
/// a packet lack the ports. The packet has passed the parser and has no tag.
pub(super) fn inet(packet: &Slot, seed: u64) -> u32 {
    inet_in(&packet.head()[ETHERNET..], &packet.frame()[ETHERNET..], seed)
}

/// The hash of addresses and flow label (RFC 6438), or of addresses and ports if there is no label and the ports follow the
/// header.
pub(super) fn inet6(packet: &Slot, seed: u64) -> u32 {
    inet6_in(&packet.head()[ETHERNET..], &packet.frame()[ETHERNET..], seed)
}

/// The hash of an IP packet without its frame; `None` if the packet is malformed.
pub fn flow_hash_of(packet: &[u8], seed: u64) -> Option<u32> {
    const VERSION_6: u8 = 6;
    let version = packet.first()? >> 4;
    let is_whole = match version {
        VERSION_6 => Ipv6Packet::new_checked(packet).is_ok(),
        _ => Ipv4Packet::new_checked(packet).is_ok(),
    };
    let of = if version == VERSION_6 { inet6_in } else { inet_in };
    is_whole.then(|| of(packet, packet, seed))
}

/// `head` holds the whole header; in the loop it is an array of constant length.
#[inline(always)]
fn inet_in(head: &[u8], packet: &[u8], seed: u64) -> u32 {
    let ip = Ipv4Packet::new_unchecked(head);
    let is_fragment = ip.more_fragments() || ip.fragment_offset() != 0;
    let ports = ports(packet, ip.protocol(), ip.header_len()).filter(|_| !is_fragment);
    let (protocol, ports) = ports.map_or((0, (0, 0)), |ports| (ip.protocol(), ports));
    flow_hash(seed, ip.source().into(), ip.destination().into(), protocol, ports)
}

/// As [`inet_in`].
#[inline(always)]
fn inet6_in(head: &[u8], packet: &[u8], seed: u64) -> u32 {
    let ip = Ipv6Packet::new_unchecked(head);
    let (protocol, ports) = match ip.flow_label() {
        0 => ports(packet, ip.next_header(), ipv6::HEADER)
            .map_or((0, (0, 0)), |ports| (ip.next_header(), ports)),
        label => (0, ((label >> 16) as u16, label as u16)),
    };
    flow_hash(seed, ip.source(), ip.destination(), protocol, ports)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::burst::Arena;

    #[test]
    fn a_packet_without_its_frame_has_the_hash_of_the_frame() {
        let mut arena = Arena::new(1);
        let slot = arena.packets().next().unwrap();
        let mut inet = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2];
        inet.extend([0x12, 0x34, 0x56, 0x78, 0, 8, 0, 0]);
        let mut inet6 = vec![0x60, 0, 0, 0, 0, 8, 17, 64];
        inet6.extend((0..32).chain([0x12, 0x34, 0x56, 0x78, 0, 8, 0, 0]));
        for (packet, hash) in [(inet, inet_hash as fn(&Slot) -> u32), (inet6, inet6_hash)] {
            assert!(slot.set_frame(&[&[2; ETHERNET][..], &packet].concat()));
            assert_eq!(flow_hash_of(&packet, 7), Some(hash(slot)));
            let len = packet.len();
            let other = [&packet[..len - 8], &[0x12, 0x35], &packet[len - 6..]].concat();
            assert_ne!(flow_hash_of(&other, 7), Some(hash(slot)), "the hash covers the ports");
        }
        assert_eq!(flow_hash_of(&[], 7), None);
        assert_eq!(flow_hash_of(&[0x45; 19], 7), None);
    }

    fn inet_hash(packet: &Slot) -> u32 {
        inet(packet, 7)
    }

    fn inet6_hash(packet: &Slot) -> u32 {
        inet6(packet, 7)
    }
}
