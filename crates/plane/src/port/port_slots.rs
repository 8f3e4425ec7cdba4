//! PortSlots that wait at a port which copies frames: free ones for what comes in, and those whose frames are sent.

use crate::burst::{BURST, Burst, Packet};

/// PortSlots that wait on either side.
const WAITING: usize = 2 * BURST;

/// The slots of one port.
pub(super) struct PortSlots<'a> {
    free: Vec<Packet<'a>>,
    sent: Vec<Packet<'a>>,
}

impl<'a> PortSlots<'a> {
    pub(super) fn new() -> PortSlots<'a> {
        PortSlots { free: Vec::with_capacity(WAITING), sent: Vec::with_capacity(WAITING) }
    }

    /// How many frames there are slots for.
    pub(super) fn free(&self) -> usize {
        self.free.len()
    }

    /// The slot that the next frame goes into.
    pub(super) fn next(&mut self) -> Option<&mut Packet<'a>> {
        self.free.last_mut()
    }

    /// Adds the slot that was next to what came in.
    pub(super) fn fill(&mut self, burst: &mut Burst<'a>) {
        burst.fill(self.free.pop().into_iter());
    }

    /// How many frames may be sent before slots are reclaimed.
    pub(super) fn room_for_sent(&self) -> usize {
        WAITING - self.sent.len()
    }

    /// Takes the first packets, which are sent, and returns how many.
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
        let count = free.len().min(WAITING - self.free.len());
        self.free.extend(free.drain_front(count));
        count
    }

    /// All of them, when the port closes.
    pub(super) fn close(self) -> impl Iterator<Item = Packet<'a>> {
        self.free.into_iter().chain(self.sent)
    }
}
