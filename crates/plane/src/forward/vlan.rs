//! Removes and inserts VLAN tags.

use crate::burst::{BURST, Slot};
use crate::wire::ethernet::{Frame, TAG};

/// Bytes of the two MAC addresses; a tag follows them.
const ADDRESSES: usize = 12;

/// Removes the tag, if there is one, and returns its control word. The frame must hold its header: 18 bytes if tagged.
pub(super) fn pop(packet: &mut Slot) -> Option<u16> {
    let control = Frame::new_unchecked(packet.frame()).tag_control()?;
    let len = packet.frame_len();
    packet.frame_mut().copy_within(ADDRESSES + TAG.., ADDRESSES);
    packet.set_frame_len(len - TAG);
    Some(control)
}

/// Inserts a tag, of priority 0 if `control` is a VLAN only. The slot has room for the 4 bytes if the packet is within
/// `MAX_MTU`; padding beyond the slot is cut off.
#[cold]
pub(super) fn push(packet: &mut Slot, control: u16) {
    let len = packet.frame_len();
    packet.set_frame_len(len + TAG);
    let kept = packet.frame_len() - TAG;
    packet.frame_mut().copy_within(ADDRESSES..kept, ADDRESSES + TAG);
    Frame::new_unchecked(packet.frame_mut()).set_tag(control);
}

/// The tags removed in one burst, so that a packet that is rejected later is handed back as it came in.
pub(super) struct RemovedTags(Vec<(u8, u16)>);

/// Has room for a whole burst, so that the loop never allocates.
impl Default for RemovedTags {
    fn default() -> RemovedTags {
        RemovedTags(Vec::with_capacity(BURST))
    }
}

impl RemovedTags {
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Records a tag; positions come in ascending order.
    pub fn keep(&mut self, position: usize, control: u16) {
        self.0.push((position as u8, control));
    }

    /// Inserts the tag again that the packet at this position had.
    #[cold]
    pub fn restore(&self, position: usize, packet: &mut Slot) {
        if let Ok(at) = self.0.binary_search_by_key(&(position as u8), |(position, _)| *position) {
            push(packet, self.0[at].1);
        }
    }
}
