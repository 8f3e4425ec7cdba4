//! Frames of several packets, which the kernel merged (GRO) or left to a card to cut (GSO): cuts them into frames of one packet
//! each, as the kernel does for a card that cannot (`net/ipv4/tcp_offload.c`, `net/ipv4/udp_offload.c` and their IPv6 ones). Each packet
//! of IPv4 has another identification; that it was the same in all packets that were merged the kernel does not say.

use std::ops::Range;

use fullview_filter::packet::protocol::tcp::{CWR, FIN, PUSH};

use super::offload::{SegmentKind, VirtioNetHeader, VlanTag};
use super::sys::VIRTIO_HEADER;
use crate::burst::{FRAME_CAPACITY, Slot};
use crate::wire::checksum::{pseudo_ipv4, pseudo_ipv6};
use crate::wire::ethernet::{EtherType, Frame, HEADER as ETHERNET, TAG};
use crate::wire::ipv4::{Ipv4Packet, protocol};
use crate::wire::ipv6::{self, Ipv6Packet};
use crate::wire::tcp::Segment;
use crate::wire::udp::{self, Datagram};

/// The longest frame, with a virtio-net header: a packet of 65,535 bytes. The kernel makes larger ones only where it is set to
/// (`gso_max_size`).
const CAPACITY: usize = VIRTIO_HEADER + ETHERNET + TAG + 65_535;

/// Why a frame cannot be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uncut {
    /// It is of a kind that is not known here, such as one in a tunnel, or not what its offload says.
    Unknown,
    /// Its packets are too long for a slot.
    TooLong,
}

/// Memory for one frame of several packets, which become those of slots one by one.
pub struct LargeFrame {
    bytes: Box<[u8]>,
    /// Where the frame begins.
    begin: usize,
    cut: Option<Cut>,
    tag: Option<VlanTag>,
}

/// How a frame is cut, and how far it has been.
#[derive(Clone, Copy, Debug)]
struct Cut {
    is_inet6: bool,
    is_tcp: bool,
    /// Where the transport header and the payload begin.
    transport: usize,
    payload: usize,
    /// Where the packet ends.
    end: usize,
    /// The payload of each packet, but the last.
    size: usize,
    /// Packets that were cut.
    number: usize,
}

impl LargeFrame {
    pub fn new() -> LargeFrame {
        LargeFrame { bytes: vec![0; CAPACITY].into(), begin: 0, cut: None, tag: None }
    }

    /// Where the kernel writes the next frame. What was left of the last one is gone.
    pub fn room(&mut self) -> &mut [u8] {
        self.cut = None;
        &mut self.bytes
    }

    /// Whether there are packets for [`Self::next`].
    pub fn has_packets(&self) -> bool {
        self.cut.is_some()
    }

    /// How many there are.
    pub fn packets(&self) -> usize {
        self.cut.map_or(0, |cut| (cut.end - cut.payload).div_ceil(cut.size).max(1) - cut.number)
    }

    /// Reads a frame in a part of the room, of which this is said.
    ///
    /// # Errors
    /// If it cannot be cut; then it has no packets.
    pub fn read(
        &mut self,
        frame: Range<usize>,
        offload: VirtioNetHeader,
        tag: Option<VlanTag>,
    ) -> Result<(), Uncut> {
        (self.cut, self.begin) = (None, frame.start);
        let cut = Cut::of(&self.bytes[frame], offload).ok_or(Uncut::Unknown)?;
        if cut.payload + cut.size + TAG > FRAME_CAPACITY {
            return Err(Uncut::TooLong);
        }
        (self.cut, self.tag) = (Some(cut), tag);
        Ok(())
    }

    /// Writes the next packet into a slot. `false` if there is none.
    pub fn next(&mut self, slot: &mut Slot) -> bool {
        let (Some(cut), whole) = (&mut self.cut, &self.bytes[self.begin..]) else { return false };
        let payload = cut.payload_of(cut.number);
        let (is_first, is_last) = (cut.number == 0, payload.end == cut.end);
        slot.set_frame_len(cut.payload + payload.len());
        let frame = slot.frame_mut();
        frame[..cut.payload].copy_from_slice(&whole[..cut.payload]);
        frame[cut.payload..].copy_from_slice(&whole[payload]);
        cut.write_headers(frame, [is_first, is_last]);
        cut.number += 1;
        if is_last {
            self.cut = None;
        }
        // There is room for it.
        self.tag.is_none_or(|tag| tag.insert(slot))
    }
}

/// Whether a frame has an IPv6 packet, the protocol above it, and where that is.
fn network(frame: &[u8]) -> Option<(bool, u8, Range<usize>)> {
    let packet = Frame::new_checked(frame).ok()?;
    match packet.outer_ethertype() {
        EtherType::IPV4 => {
            let ip = Ipv4Packet::new_checked(packet.payload()).ok()?;
            let is_whole = ip.fragment_offset() == 0 && !ip.more_fragments();
            let above = ETHERNET + ip.header_len()..ETHERNET + usize::from(ip.total_len());
            is_whole.then_some((false, ip.protocol(), above))
        }
        EtherType::IPV6 => {
            let ip = Ipv6Packet::new_checked(packet.payload()).ok()?;
            Some((true, ip.next_header(), ETHERNET + ipv6::HEADER..ETHERNET + ip.total_len()))
        }
        _ => None,
    }
}

impl Cut {
    /// How to cut this frame. Above UDP there may be a tunnel: then the checksum that is left to a card is in another place.
    fn of(frame: &[u8], offload: VirtioNetHeader) -> Option<Cut> {
        let (kind, size) = (offload.segment_kind()?, offload.segment_size());
        let (is_inet6, protocol, Range { start: transport, end }) = network(frame)?;
        let is_tcp = protocol == protocol::TCP;
        let is_kind = match kind {
            SegmentKind::Tcp4 => is_tcp && !is_inet6,
            SegmentKind::Tcp6 => is_tcp && is_inet6,
            SegmentKind::Udp => protocol == protocol::UDP,
        };
        let bytes = frame.get(transport..end)?;
        let header = if is_tcp { Segment::new_checked(bytes).ok()?.header_len() } else { udp::HEADER };
        let is_outer = offload.checksum_start().map_or(is_tcp, |start| start == transport);
        let is_right = is_kind && header <= bytes.len() && size > 0 && is_outer;
        let payload = transport + header;
        is_right.then_some(Cut { is_inet6, is_tcp, transport, payload, end, size, number: 0 })
    }

    fn payload_of(&self, number: usize) -> Range<usize> {
        let begin = self.payload + number * self.size;
        begin..(begin + self.size).min(self.end)
    }

    /// Makes the headers of the whole frame those of one packet.
    fn write_headers(&self, frame: &mut [u8], [is_first, is_last]: [bool; 2]) {
        let transport = frame.len() - self.transport;
        let pseudo = if self.is_inet6 {
            let mut ip = Ipv6Packet::new_unchecked(&mut frame[ETHERNET..]);
            ip.set_payload_len((self.transport - ETHERNET - ipv6::HEADER + transport) as u16);
            pseudo_ipv6(ip.source(), ip.destination(), ip.next_header(), transport as u32)
        } else {
            let mut ip = Ipv4Packet::new_unchecked(&mut frame[ETHERNET..]);
            ip.set_total_len((self.transport - ETHERNET + transport) as u16);
            ip.set_identification(ip.identification().wrapping_add(self.number as u16));
            ip.fill_checksum();
            pseudo_ipv4(ip.source(), ip.destination(), ip.protocol(), transport as u16)
        };
        let bytes = &mut frame[self.transport..];
        if self.is_tcp {
            let mut segment = Segment::new_unchecked(bytes);
            segment.set_seq(segment.seq().wrapping_add((self.number * self.size) as u32));
            let first_only = if is_first { 0 } else { CWR };
            let last_only = if is_last { 0 } else { FIN | PUSH };
            segment.set_flags(segment.flags() & !(first_only | last_only));
            segment.fill_checksum(pseudo);
        } else {
            let mut datagram = Datagram::new_unchecked(bytes);
            datagram.set_length(transport as u16);
            datagram.fill_checksum(pseudo);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::burst::Arena;
    use crate::wire::checksum::Sum;
    use crate::wire::tcp;
    use proptest::prelude::*;

    /// A frame of this kind, and what the kernel says of it.
    fn frame(kind: u8, payload: usize, options: usize) -> (Vec<u8>, VirtioNetHeader, usize) {
        let (is_inet6, is_tcp) = (kind == 4, kind != 5);
        let header = if is_tcp { tcp::HEADER + 4 * options } else { udp::HEADER };
        let ip = if is_inet6 { ipv6::HEADER } else { 20 };
        let mut frame: Vec<u8> = (0..ETHERNET + ip + header + payload).map(|at| at as u8).collect();
        let above = (header + payload) as u16;
        if is_inet6 {
            frame[12..20].copy_from_slice(&[0x86, 0xdd, 0x60, 0, 0, 0, 0, 0]);
            frame[18..20].copy_from_slice(&above.to_be_bytes());
            frame[20] = protocol::TCP;
        } else {
            frame[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 0, 0xff, 0xff, 0x40, 0, 64, 0]);
            frame[16..18].copy_from_slice(&(above + 20).to_be_bytes());
            frame[23] = if is_tcp { protocol::TCP } else { protocol::UDP };
        }
        let transport = ETHERNET + ip;
        if is_tcp {
            frame[transport + 12] = (header / 4 * 16) as u8;
            frame[transport + 13] = 0x99;
        }
        let mut offload = [1, kind, 0, 0, 0, 0, 0, 0, 0, 0];
        offload[4..6].copy_from_slice(&100_u16.to_ne_bytes());
        offload[6..8].copy_from_slice(&(transport as u16).to_ne_bytes());
        (frame, VirtioNetHeader(offload), transport + header)
    }

    fn packets(frame: &[u8], offload: VirtioNetHeader) -> Result<Vec<Vec<u8>>, Uncut> {
        let (mut large, mut arena) = (LargeFrame::new(), Arena::new(1));
        let slot = arena.packets().next().unwrap();
        large.room()[3..][..frame.len()].copy_from_slice(frame);
        large.read(3..3 + frame.len(), offload, None)?;
        let mut packets = Vec::new();
        while large.has_packets() {
            let left = large.packets();
            assert!(large.next(slot));
            assert_eq!(large.packets(), left - 1);
            packets.push(slot.frame().to_vec());
        }
        assert!(!large.next(slot));
        Ok(packets)
    }

    proptest! {
        #[test]
        fn packets_have_the_payload_and_right_checksums(
            kind in prop::sample::select(vec![1_u8, 4, 5]),
            payload in 0_usize..2000,
            options in 0_usize..11,
        ) {
            let (whole, offload, begin) = frame(kind, payload, options);
            let packets = packets(&whole, offload).unwrap();
            prop_assert_eq!(packets.len(), payload.div_ceil(100).max(1));
            prop_assert_eq!(packets.iter().flat_map(|packet| &packet[begin..]).collect::<Vec<_>>(), whole[begin..].iter().collect::<Vec<_>>());
            let last = packets.len() - 1;
            for (number, packet) in packets.iter().enumerate() {
                let (_, protocol, above) = network(packet).unwrap();
                let bytes = &packet[above.clone()];
                prop_assert_eq!(above.end, packet.len());
                let length = bytes.len() as u16;
                let pseudo = if kind == 4 {
                    Sum::ZERO.bytes(&packet[22..54]).word(protocol.into()).word(length)
                } else {
                    prop_assert!(Ipv4Packet::new_unchecked(&packet[ETHERNET..]).verify_checksum());
                    Sum::ZERO.bytes(&packet[26..34]).word(protocol.into()).word(length)
                };
                prop_assert!(pseudo.bytes(bytes).verifies());
                if kind != 5 {
                    let flags = 0x99 & if number == 0 { 0xff } else { 0x7f } & if number == last { 0xff } else { 0xf6 };
                    prop_assert_eq!(bytes[13], flags);
                }
            }
        }

        #[test]
        fn no_frame_makes_it_fail(
            kind in prop::sample::select(vec![1_u8, 4, 5]),
            payload in 0_usize..300,
            changes in prop::collection::vec((0_usize..80, any::<u8>()), 0..6),
            offload_changes in prop::collection::vec((0_usize..10, any::<u8>()), 0..3),
        ) {
            let (mut whole, mut offload, _) = frame(kind, payload, 0);
            for (at, byte) in changes {
                whole.get_mut(at).into_iter().for_each(|place| *place = byte);
            }
            offload_changes.into_iter().for_each(|(at, byte)| offload.0[at] = byte);
            let _ = packets(&whole, offload);
        }
    }

    #[test]
    fn what_is_not_what_its_offload_says_is_not_cut() {
        let (whole, offload, _) = frame(1, 500, 0);
        let other = |at: usize, byte| {
            let mut other = offload;
            other.0[at] = byte;
            packets(&whole, other)
        };
        assert_eq!(packets(&whole, offload).map(|packets| packets.len()), Ok(5));
        assert_eq!(other(1, 0x81).map(|packets| packets.len()), Ok(5), "with marks of congestion");
        assert_eq!(other(0, 0).map(|packets| packets.len()), Ok(5), "with whole checksums");
        for (at, byte) in [(1, 4), (1, 5), (1, 3), (4, 0), (6, 54)] {
            assert_eq!(other(at, byte), Err(Uncut::Unknown), "{at} {byte}");
        }
        assert_eq!(packets(&whole[..400], offload), Err(Uncut::Unknown));
        assert_eq!(other(5, 9).err(), Some(Uncut::TooLong));
    }
}
