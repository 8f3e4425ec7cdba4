//! The generator's queue of free slots.

use std::collections::VecDeque;

use fullview_plane::burst::{Arena, Burst, Packet};

use super::frame::{Frames, Headers};

/// Slots that carry no packet. They are used again first in, first out, so that the generator walks through the whole
/// arena as a network card walks through its ring.
pub(super) struct Free<'a>(VecDeque<Packet<'a>>);

impl<'a> Free<'a> {
    /// All slots of the arena, prepared for these frames.
    pub(super) fn new<A: Headers>(arena: &'a mut Arena, frames: &Frames<A>) -> Self {
        let mut slots = VecDeque::new();
        for slot in arena.packets() {
            frames.prepare(slot);
            slots.push_back(slot);
        }
        Free(slots)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Moves the slots that have been free longest into the burst, as far as it has room.
    pub(super) fn take(&mut self, burst: &mut Burst<'a>, count: usize) {
        let count = count.min(burst.room()).min(self.0.len());
        burst.fill(self.0.drain(..count));
    }

    /// Takes back the slots of a burst.
    pub(super) fn recycle(&mut self, burst: &mut Burst<'a>) {
        self.0.extend(burst.drain());
    }
}
