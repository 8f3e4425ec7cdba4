//! VLAN tags, off and on.

use crate::burst::{BURST, Slot};
use crate::wire::ethernet::{Frame, TAG};

/// Bytes of the two MAC addresses, behind which a tag stands.
const ADDRESSES: usize = 12;

/// Takes the tag off, if there is one, and returns its control word. The frame must be whole: 18 bytes if tagged.
pub(super) fn pop(packet: &mut Slot) -> Option<u16> {
    let control = Frame::new_unchecked(packet.frame()).tag_control()?;
    let len = packet.frame_len();
    packet.frame_mut().copy_within(ADDRESSES + TAG.., ADDRESSES);
    packet.set_frame_len(len - TAG);
    Some(control)
}

/// Puts a tag on, of priority 0 if `control` is a VLAN only. The slot must have room for 4 more bytes, which a frame
/// within [`crate::adjacency::MAX_MTU`] leaves; padding beyond that is cut off.
#[cold]
pub(super) fn push(packet: &mut Slot, control: u16) {
    let len = packet.frame_len();
    packet.set_frame_len(len + TAG);
    let kept = packet.frame_len() - TAG;
    packet.frame_mut().copy_within(ADDRESSES..kept, ADDRESSES + TAG);
    Frame::new_unchecked(packet.frame_mut()).set_tag(control);
}

/// The tags taken off in one burst, so that a packet which does not go on after all is handed back as it came.
pub(super) struct RemovedTags(Vec<(u8, u16)>);

/// With room for a whole burst, so that the loop never allocates.
impl Default for RemovedTags {
    fn default() -> RemovedTags {
        RemovedTags(Vec::with_capacity(BURST))
    }
}

impl RemovedTags {
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Places come in rising order.
    pub fn keep(&mut self, place: usize, control: u16) {
        self.0.push((place as u8, control));
    }

    /// Puts the tag on again that the packet at this place had.
    #[cold]
    pub fn give_back(&self, place: usize, packet: &mut Slot) {
        if let Ok(at) = self.0.binary_search_by_key(&(place as u8), |(place, _)| *place) {
            push(packet, self.0[at].1);
        }
    }
}
