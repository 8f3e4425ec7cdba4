//! Completes frames that the kernel left to the offloads of a network card, and that never passed a card.

use crate::burst::{FRAME_CAPACITY, Slot};
use crate::wire::ethernet::TAG;
use crate::wire::{checksum, sctp};

/// The virtio-net header before a frame: which offloads the frame still needs.
#[derive(Clone, Copy)]
pub struct VirtioNetHeader(pub [u8; 10]);

/// What the packets in one frame are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    Tcp4,
    Tcp6,
    Udp,
}

/// A VLAN tag that the kernel keeps beside the frame.
#[derive(Clone, Copy)]
pub struct VlanTag {
    /// Its type, as the frame's outer ethertype.
    pub ethertype: u16,
    /// Priority and VLAN.
    pub control: u16,
}

/// Bytes of the two MAC addresses; a tag follows them.
const ADDRESSES: usize = 12;

impl VirtioNetHeader {
    /// The flag of a partial checksum.
    const NEEDS_CHECKSUM: u8 = 1;

    /// The bit of the kind of packets that says that they may have marks of congestion.
    const WITH_CONGESTION: u8 = 0x80;

    /// Whether the frame holds several packets: merged on receipt (GRO), or to be segmented by a card (GSO).
    pub fn is_several_packets(self) -> bool {
        self.0[1] != 0
    }

    /// What they are, if that is known here.
    pub fn segment_kind(self) -> Option<SegmentKind> {
        match self.0[1] & !VirtioNetHeader::WITH_CONGESTION {
            1 => Some(SegmentKind::Tcp4),
            4 => Some(SegmentKind::Tcp6),
            5 => Some(SegmentKind::Udp),
            _ => None,
        }
    }

    /// The payload of each of them, but the last.
    pub fn segment_size(self) -> usize {
        self.number(4)
    }

    /// Where the bytes begin whose checksum is partial, if it is.
    pub fn checksum_start(self) -> Option<usize> {
        (self.0[0] & VirtioNetHeader::NEEDS_CHECKSUM != 0).then(|| self.number(6))
    }

    /// Finishes a checksum that covers only the pseudo header so far, or of SCTP nothing; `false` if the field lies outside the
    /// frame.
    pub fn finish_checksum(self, frame: &mut [u8]) -> bool {
        if self.0[0] & VirtioNetHeader::NEEDS_CHECKSUM == 0 {
            return true;
        }
        let (start, field) = (self.number(6), self.number(8));
        match frame.get_mut(start..) {
            None => false,
            // The kernel does not say that it is another kind of checksum (`csum_not_inet` in its packet).
            Some(covered) if field == sctp::CHECKSUM => sctp::fill_checksum(covered),
            Some(covered) => finish_internet_checksum(covered, field),
        }
    }

    fn number(self, at: usize) -> usize {
        u16::from_ne_bytes([self.0[at], self.0[at + 1]]).into()
    }
}

fn finish_internet_checksum(covered: &mut [u8], field: usize) -> bool {
    // In UDP, zero means no checksum (RFC 768); for other protocols 0xffff is equivalent to zero.
    let sum = match checksum::checksum(covered) {
        0 => u16::MAX,
        sum => sum,
    };
    let Some(field) = covered.get_mut(field..field + 2) else { return false };
    field.copy_from_slice(&sum.to_be_bytes());
    true
}

impl VlanTag {
    /// Inserts the tag into the frame; `false` if the slot has no room for it.
    #[cold]
    pub fn insert(self, slot: &mut Slot) -> bool {
        let len = slot.frame_len();
        if len < ADDRESSES || len + TAG > FRAME_CAPACITY {
            return false;
        }
        slot.set_frame_len(len + TAG);
        let frame = slot.frame_mut();
        frame.copy_within(ADDRESSES..len, ADDRESSES + TAG);
        frame[ADDRESSES..ADDRESSES + 2].copy_from_slice(&self.ethertype.to_be_bytes());
        frame[ADDRESSES + 2..ADDRESSES + TAG].copy_from_slice(&self.control.to_be_bytes());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::burst::Arena;

    fn offload(flags: u8, start: u16, offset: u16) -> VirtioNetHeader {
        let mut header = [0; 10];
        header[0] = flags;
        header[6..8].copy_from_slice(&start.to_ne_bytes());
        header[8..].copy_from_slice(&offset.to_ne_bytes());
        VirtioNetHeader(header)
    }

    #[test]
    fn a_partial_checksum_verifies_when_it_is_finished() {
        // The field holds the sum of the pseudo header, so that pseudo header and segment together verify.
        let mut frame: Vec<u8> = (0..75).map(|n| n as u8).collect();
        let pseudo = 0x1234;
        frame[40..42].copy_from_slice(&u16::to_be_bytes(pseudo));
        assert!(offload(1, 34, 6).finish_checksum(&mut frame));
        assert!(checksum::Sum::ZERO.word(pseudo).bytes(&frame[34..]).verifies());
        let whole = frame.clone();
        assert!(offload(0, 34, 6).finish_checksum(&mut frame));
        assert_eq!(frame, whole, "no offload is requested");
    }

    #[test]
    fn a_checksum_is_never_zero_and_never_outside() {
        let mut frame = vec![0xff; 40];
        assert!(offload(1, 20, 2).finish_checksum(&mut frame));
        assert_eq!(frame[22..24], [0xff, 0xff]);
        assert!(!offload(1, 41, 0).finish_checksum(&mut frame));
        assert!(!offload(1, 20, 19).finish_checksum(&mut frame));
        assert!(!offload(1, u16::MAX, u16::MAX).finish_checksum(&mut frame));
    }

    #[test]
    fn a_checksum_of_sctp_is_another_one() {
        let mut frame = vec![7; 60];
        let mut packet = frame[34..].to_vec();
        assert!(sctp::fill_checksum(&mut packet));
        assert!(offload(1, 34, 8).finish_checksum(&mut frame));
        assert_eq!((&frame[..34], &frame[34..]), (&[7; 34][..], &packet[..]));
        assert!(!offload(1, 50, 8).finish_checksum(&mut frame));
    }

    #[test]
    fn a_tag_is_inserted_after_the_addresses() {
        let mut arena = Arena::new(1);
        let slot = arena.packets().next().unwrap();
        let tag = VlanTag { ethertype: 0x88a8, control: 0x6123 };
        slot.set_frame(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
        assert!(tag.insert(slot));
        assert_eq!(slot.frame(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x88, 0xa8, 0x61, 0x23, 13, 14]);
        slot.set_frame_len(FRAME_CAPACITY - TAG + 1);
        assert!(!tag.insert(slot));
        slot.set_frame_len(ADDRESSES - 1);
        assert!(!tag.insert(slot));
    }
}
