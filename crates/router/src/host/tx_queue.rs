//! The host stack's frames on their way into packet slots.

use std::collections::VecDeque;

use super::output::{OutFrame, Output};
use fullview_plane::burst::{Burst, Packet};
use fullview_plane::forward::Egress;
use fullview_plane::verdict::{Punt, Verdict};

/// The most frames of one port that wait for a free slot or for room at the port. More are dropped, as on a congested link.
const PENDING: usize = 4096;

/// Frames that wait until there are slots for them, and room at their ports.
#[derive(Default)]
pub(super) struct TxQueue {
    /// New frames of the host stack.
    pub output: Output,
    /// By port, so that the frames of a full port keep no others waiting.
    pending: Vec<VecDeque<OutFrame>>,
    dropped: u64,
}

impl TxQueue {
    /// Sends as many frames as there are slots, each in one of `free`, and as their ports have room for.
    pub fn send<'a>(&mut self, egress: &mut (impl Egress<'a> + ?Sized), free: &mut Burst<'a>) {
        self.queue(egress);
        for pending in &mut self.pending {
            self.dropped += send_pending(pending, egress, free);
        }
    }

    /// Frames for ports that do not exist would wait for ever.
    fn queue<'a>(&mut self, egress: &(impl Egress<'a> + ?Sized)) {
        for frame in self.output.frames.drain(..) {
            let port = usize::from(frame.port);
            if egress.has_port(frame.port) && self.pending.len() <= port {
                self.pending.resize_with(port + 1, VecDeque::new);
            }
            match self.pending.get_mut(port).filter(|pending| pending.len() < PENDING) {
                Some(pending) => pending.push_back(frame),
                None => self.dropped += 1,
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.output.frames.is_empty() && !self.has_pending()
    }

    /// Whether frames wait for slots, or for room at their ports.
    pub fn has_pending(&self) -> bool {
        self.pending.iter().any(|pending| !pending.is_empty())
    }

    /// Frames dropped because too many waited, their port does not exist, or they were longer than a slot.
    pub fn frames_dropped(&self) -> u64 {
        self.dropped
    }
}

/// Sends frames of one port in their order until there is no slot or no room. Returns how many were dropped because they were
/// longer than a slot.
fn send_pending<'a>(
    pending: &mut VecDeque<OutFrame>,
    egress: &mut (impl Egress<'a> + ?Sized),
    free: &mut Burst<'a>,
) -> u64 {
    let mut dropped = 0;
    while let Some(frame) = pending.front() {
        let Some(slot) = free.pop() else { break };
        let fits = slot.set_frame(&frame.bytes);
        let refused = if fits { transmit(frame.port, slot, egress) } else { Some(slot) };
        let is_full = fits && refused.is_some();
        free.fill(refused.into_iter());
        if is_full {
            break;
        }
        dropped += u64::from(!fits);
        pending.pop_front();
    }
    dropped
}

/// The slot, if the port has no room for it.
fn transmit<'a>(port: u16, slot: Packet<'a>, egress: &mut (impl Egress<'a> + ?Sized)) -> Option<Packet<'a>> {
    slot.port = port;
    // The worker counts a forwarded packet as sent, and this one is none.
    slot.verdict = Verdict::Punt(Punt::Local);
    egress.send(port, slot).err()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullview_plane::burst::{Arena, BURST, FRAME_CAPACITY};

    fn frame(port: u16, number: u8) -> OutFrame {
        OutFrame { port, bytes: vec![number; 60] }
    }

    #[test]
    fn frames_wait_for_a_full_port_and_others_do_not() {
        let mut arena = Arena::new(BURST + 8);
        let mut slots = arena.packets();
        let mut out = [Burst::new(), Burst::new()];
        out[0].fill(slots.by_ref().take(BURST));
        let mut free = Burst::new();
        free.fill(slots);
        let mut queue = TxQueue::default();
        queue.output.frames = vec![frame(0, 1), frame(0, 2), frame(1, 3), frame(7, 4)];
        queue.output.frames.push(OutFrame { port: 1, bytes: vec![0; FRAME_CAPACITY + 1] });
        queue.send(&mut out[..], &mut free);
        assert_eq!((out[1].len(), free.len(), queue.has_pending()), (1, 7, true));
        assert_eq!(queue.frames_dropped(), 2, "one port does not exist, and one frame is too long");
        out[0].drain().for_each(drop);
        queue.send(&mut out[..], &mut free);
        let sent: Vec<u8> = out[0].iter().map(|packet| packet.frame()[0]).collect();
        assert_eq!((sent, queue.is_empty()), (vec![1, 2], true));
        assert!(out[0].iter().all(|packet| packet.verdict != Verdict::Forward), "none counts as forwarded");
    }

    #[test]
    fn frames_that_wait_are_bounded() {
        let mut queue = TxQueue::default();
        queue.output.frames = vec![frame(1, 0); PENDING + 3];
        queue.output.frames.push(frame(0, 0));
        queue.send(&mut [Burst::new(), Burst::new()][..], &mut Burst::new());
        assert_eq!((queue.frames_dropped(), queue.pending[0].len()), (3, 1));
    }
}
