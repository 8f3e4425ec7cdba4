//! The host stack's frames on their way into packet slots.

use std::collections::VecDeque;

use super::output::{OutFrame, Output};
use fullview_plane::burst::{Burst, Packet};
use fullview_plane::forward::Egress;
use fullview_plane::verdict::Verdict;

/// The most frames that wait for a free slot. More are dropped, as on a congested link.
const PENDING: usize = 4096;

/// Frames that wait until there are slots for them.
#[derive(Default)]
pub(super) struct TxQueue {
    /// New frames of the host stack.
    pub output: Output,
    pending: VecDeque<OutFrame>,
    dropped: u64,
}

impl TxQueue {
    /// Sends as many frames as there are slots, each in one of `free`. A slot that its port refuses returns to `free`.
    pub fn send<'a>(&mut self, egress: &mut (impl Egress<'a> + ?Sized), free: &mut Burst<'a>) {
        self.queue();
        while !self.pending.is_empty() {
            let Some(slot) = free.pop() else { return };
            let Some(frame) = self.pending.pop_front() else { return };
            if let Err(slot) = transmit(&frame, slot, egress) {
                self.dropped += 1;
                free.fill([slot].into_iter());
            }
        }
    }

    fn queue(&mut self) {
        let room = PENDING - self.pending.len();
        self.dropped += self.output.frames.len().saturating_sub(room) as u64;
        self.pending.extend(self.output.frames.drain(..).take(room));
    }

    pub fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.output.frames.is_empty()
    }

    /// Frames dropped because the queue or their port was full, or because they were longer than a slot.
    pub fn frames_dropped(&self) -> u64 {
        self.dropped
    }
}

fn transmit<'a>(
    frame: &OutFrame,
    slot: Packet<'a>,
    egress: &mut (impl Egress<'a> + ?Sized),
) -> Result<(), Packet<'a>> {
    slot.port = frame.port;
    slot.verdict = Verdict::Forward;
    if slot.set_frame(&frame.bytes) { egress.send(frame.port, slot) } else { Err(slot) }
}
