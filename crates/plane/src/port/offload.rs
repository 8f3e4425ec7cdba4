//! What the kernel leaves to network cards, and a router has to do where a frame never met one.

use crate::burst::{FRAME_CAPACITY, Slot};
use crate::wire::checksum;
use crate::wire::ethernet::TAG;

/// The virtio-net header before a frame: what of the frame is still to be done.
#[derive(Clone, Copy)]
pub struct VirtioNetHeader(pub [u8; 10]);

/// A VLAN tag that travels beside the frame.
#[derive(Clone, Copy)]
pub struct VlanTag {
    /// Its type, as the frame's outer ethertype.
    pub ethertype: u16,
    /// Priority and VLAN.
    pub control: u16,
}

/// Bytes of the two MAC addresses, behind which a tag stands.
const ADDRESSES: usize = 12;

impl VirtioNetHeader {
    /// The flag of a checksum that is only begun.
    const NEEDS_CHECKSUM: u8 = 1;

    /// Whether it is several packets in one, for a card to cut (GSO) or cut by none yet (GRO).
    pub fn is_several(self) -> bool {
        self.0[1] != 0
    }

    /// Finishes a checksum that only covers the pseudo header yet; `false` if it lies outside the frame.
    pub fn finish_checksum(self, frame: &mut [u8]) -> bool {
        if self.0[0] & VirtioNetHeader::NEEDS_CHECKSUM == 0 {
            return true;
        }
        let (start, field) = (self.number(6), self.number(6) + self.number(8));
        let Some(covered) = frame.get(start..) else { return false };
        // A sum of zero would say that there is none (RFC 768); elsewhere 0xffff means the same number.
        let sum = match checksum::checksum(covered) {
            0 => u16::MAX,
            sum => sum,
        };
        let Some(field) = frame.get_mut(field..field + 2) else { return false };
        field.copy_from_slice(&sum.to_be_bytes());
        true
    }

    fn number(self, at: usize) -> usize {
        u16::from_ne_bytes([self.0[at], self.0[at + 1]]).into()
    }
}

impl VlanTag {
    /// Puts the tag where it was on the wire; `false` if the slot has no room for it.
    #[cold]
    pub fn put_back(self, slot: &mut Slot) -> bool {
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
    fn a_checksum_that_was_begun_verifies_when_it_is_finished() {
        // The sum over a pseudo header stands in the field, so that header and segment together verify.
        let mut frame: Vec<u8> = (0..75).map(|n| n as u8).collect();
        let pseudo = 0x1234;
        frame[40..42].copy_from_slice(&u16::to_be_bytes(pseudo));
        assert!(offload(1, 34, 6).finish_checksum(&mut frame));
        assert!(checksum::Sum::ZERO.word(pseudo).bytes(&frame[34..]).verifies());
        let whole = frame.clone();
        assert!(offload(0, 34, 6).finish_checksum(&mut frame));
        assert_eq!(frame, whole, "nothing was asked for");
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
    fn a_tag_goes_behind_the_addresses() {
        let mut arena = Arena::new(1);
        let slot = arena.packets().next().unwrap();
        let tag = VlanTag { ethertype: 0x88a8, control: 0x6123 };
        slot.set_frame(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
        assert!(tag.put_back(slot));
        assert_eq!(slot.frame(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x88, 0xa8, 0x61, 0x23, 13, 14]);
        slot.set_frame_len(FRAME_CAPACITY - TAG + 1);
        assert!(!tag.put_back(slot));
        slot.set_frame_len(ADDRESSES - 1);
        assert!(!tag.put_back(slot));
    }
}
