//! The host's frames on their way into packet memory.

use std::collections::VecDeque;

use super::output::{OutFrame, Output};
use fullview_plane::burst::{Burst, Packet};
use fullview_plane::forward::Egress;
use fullview_plane::verdict::Verdict;

/// Frames that wait for a free slot, at most: more than that are lost, as on a full link.
const PENDING: usize = 4096;

/// What the host has to say, until there are slots for it.
#[derive(Default)]
pub(super) struct TxQueue {
    /// Filled by the host.
    pub output: Output,
    pending: VecDeque<OutFrame>,
    lost: u64,
}

impl TxQueue {
    /// Sends as many frames as there are slots, each in one of `free`. A slot that its port refuses goes back there.
    pub fn send<'a>(&mut self, egress: &mut (impl Egress<'a> + ?Sized), free: &mut Burst<'a>) {
        self.queue();
        while !self.pending.is_empty() {
            let Some(slot) = free.pop() else { return };
            let Some(frame) = self.pending.pop_front() else { return };
            if let Err(slot) = transmit(&frame, slot, egress) {
                self.lost += 1;
                free.fill([slot].into_iter());
            }
        }
    }

    fn queue(&mut self) {
        let room = PENDING - self.pending.len();
        self.lost += self.output.frames.len().saturating_sub(room) as u64;
        self.pending.extend(self.output.frames.drain(..).take(room));
    }

    /// Whether all frames have found a slot.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.output.frames.is_empty()
    }

    /// Frames that found no room, too long ones among them.
    pub fn frames_dropped(&self) -> u64 {
        self.lost
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
