//! The slots of a port that copies frames: free slots for received frames, and slots of sent frames.

use crate::burst::{BURST, Burst, Packet};

/// Slots on each side at most.
const CAPACITY: usize = 2 * BURST;

/// The slots of one port.
pub(super) struct PortSlots<'a> {
    free: Vec<Packet<'a>>,
    sent: Vec<Packet<'a>>,
}

impl<'a> PortSlots<'a> {
    pub(super) fn new() -> PortSlots<'a> {
        PortSlots { free: Vec::with_capacity(CAPACITY), sent: Vec::with_capacity(CAPACITY) }
    }

    /// The number of free slots.
    pub(super) fn free(&self) -> usize {
        self.free.len()
    }

    /// The slot for the next frame.
    pub(super) fn next(&mut self) -> Option<&mut Packet<'a>> {
        self.free.last_mut()
    }

    /// Moves the slot of [`Self::next`] to the received packets.
    pub(super) fn fill(&mut self, burst: &mut Burst<'a>) {
        burst.fill(self.free.pop().into_iter());
    }

    /// The number of frames that may be sent before slots are reclaimed.
    pub(super) fn room_for_sent(&self) -> usize {
        CAPACITY - self.sent.len()
    }

    /// Takes the first `count` packets, which have been sent, and returns `count`.
    pub(super) fn sent(&mut self, burst: &mut Burst<'a>, count: usize) -> usize {
        self.sent.extend(burst.drain_front(count));
        count
    }

    /// As [`super::Port::reclaim`].
    pub(super) fn reclaim(&mut self, free: &mut Burst<'a>) -> usize {
        let count = free.room().min(self.sent.len());
        free.fill(self.sent.drain(..count));
        count
    }

    /// As [`super::Port::recycle`].
    pub(super) fn recycle(&mut self, free: &mut Burst<'a>) -> usize {
        let count = free.len().min(CAPACITY - self.free.len());
        self.free.extend(free.drain_front(count));
        count
    }

    /// All slots, when the port closes.
    pub(super) fn close(self) -> impl Iterator<Item = Packet<'a>> {
        self.free.into_iter().chain(self.sent)
    }
}
