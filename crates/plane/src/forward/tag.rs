//! VLAN tags, off and on.

use crate::burst::Slot;
use crate::wire::ethernet::{Frame, TAG};

/// Bytes of the two MAC addresses, behind which a tag stands.
const ADDRESSES: usize = 12;

/// Takes the tag off. The frame must be tagged and whole, that is at least 18 bytes.
#[cold]
pub(super) fn pop(packet: &mut Slot) {
    let len = packet.frame_len();
    packet.frame_mut().copy_within(ADDRESSES + TAG.., ADDRESSES);
    packet.set_frame_len(len - TAG);
}

/// Puts a tag of priority 0 on. The slot must have room for 4 more bytes, which a frame within
/// [`crate::adjacency::MAX_MTU`] leaves; padding beyond that is cut off.
#[cold]
pub(super) fn push(packet: &mut Slot, vlan: u16) {
    let len = packet.frame_len();
    packet.set_frame_len(len + TAG);
    let kept = packet.frame_len() - TAG;
    packet.frame_mut().copy_within(ADDRESSES..kept, ADDRESSES + TAG);
    Frame::new_unchecked(packet.frame_mut()).set_tag(vlan);
}
