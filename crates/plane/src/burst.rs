//! Packet memory, and the burst that travels through the router.
//!
//! A packet is an exclusive reference to one slot of an [`Arena`]: eight bytes that move through rings and bursts, from
//! thread to thread, without a copy of the frame and without `unsafe`. The holder of a packet owns its bytes. A packet
//! that a program drops (in Rust's sense) is lost to its arena until the arena is split again, so the forwarding path
//! drops none: every slot returns to the free ring of its port.

use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::verdict::Verdict;

/// Longest frame a slot holds, in bytes, without the FCS.
pub const FRAME_CAPACITY: usize = 2104;

/// Packets a burst holds at most.
pub const BURST: usize = 256;

/// A frame and its metadata.
///
/// Eight bytes of metadata come before the frame, so that the headers of a small packet (14 + 40 bytes for IPv6) share
/// one cache line with it. 2,112 bytes in all: 33 lines, an odd number, because a power-of-two stride maps all packets
/// to a few cache sets and costs a third of the forwarding rate.
#[repr(C, align(64))]
pub struct Slot {
    len: u16,
    /// What becomes of the packet; for a rejected packet, the reason.
    pub verdict: Verdict,
    /// The port that received the packet, and after the rewrite the port that will send it.
    pub port: u16,
    /// The same for the interface, by its number in the view.
    pub interface: u16,
    data: [u8; FRAME_CAPACITY],
}

const _: () = assert!(size_of::<Slot>() == 2112);

/// One packet: exclusive use of one slot.
pub type Packet<'a> = &'a mut Slot;

impl Slot {
    /// Bytes from the start of the slot to the frame.
    pub(crate) const FRAME_OFFSET: usize = std::mem::offset_of!(Slot, data);

    pub(crate) const EMPTY: Slot =
        Slot { len: 0, port: 0, verdict: Verdict::Forward, interface: 0, data: [0; FRAME_CAPACITY] };

    /// The frame from the destination MAC address on, without the FCS.
    #[inline(always)]
    pub fn frame(&self) -> &[u8] {
        &self.data[..usize::from(self.len)]
    }

    /// The frame, to change in place.
    #[inline(always)]
    pub fn frame_mut(&mut self) -> &mut [u8] {
        &mut self.data[..usize::from(self.len)]
    }

    /// The first 64 bytes whatever the length of the frame; bytes beyond the frame are stale. A view of constant size lets
    /// the hot path read headers at constant offsets without bounds checks.
    #[inline(always)]
    pub fn head(&self) -> &[u8; 64] {
        const { assert!(FRAME_CAPACITY >= 64) };
        #[allow(clippy::expect_used)] // the array is longer than 64 bytes, asserted above
        self.data.first_chunk().expect("a slot holds at least 64 bytes")
    }

    /// As [`Slot::head`], to change in place.
    #[inline(always)]
    pub fn head_mut(&mut self) -> &mut [u8; 64] {
        const { assert!(FRAME_CAPACITY >= 64) };
        #[allow(clippy::expect_used)] // the array is longer than 64 bytes, asserted above
        self.data.first_chunk_mut().expect("a slot holds at least 64 bytes")
    }

    /// The length of the frame in bytes.
    #[inline(always)]
    pub fn frame_len(&self) -> usize {
        usize::from(self.len)
    }

    /// Sets the length, at most [`FRAME_CAPACITY`]. Bytes beyond the old length keep what the slot held before.
    #[inline(always)]
    pub fn set_frame_len(&mut self, len: usize) {
        self.len = len.min(FRAME_CAPACITY) as u16;
    }

    /// Copies a frame into the slot; cuts a frame that is too long and returns `false`.
    pub fn set_frame(&mut self, frame: &[u8]) -> bool {
        self.set_frame_len(frame.len());
        let fits = self.frame_len();
        self.data[..fits].copy_from_slice(&frame[..fits]);
        fits == frame.len()
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slot({} bytes, port {}, {})", self.len, self.port, self.verdict)
    }
}

/// A copy of a frame, independent of its slot.
#[derive(Clone)]
pub struct FrameCopy {
    len: u16,
    data: [u8; FRAME_CAPACITY],
}

impl FrameCopy {
    /// Copies the frame of a packet.
    pub fn of(slot: &Slot) -> FrameCopy {
        let mut data = [0; FRAME_CAPACITY];
        data[..slot.frame_len()].copy_from_slice(slot.frame());
        FrameCopy { len: slot.frame_len() as u16, data }
    }

    /// The frame.
    pub fn frame(&self) -> &[u8] {
        &self.data[..usize::from(self.len)]
    }
}

/// A contiguous array of slots.
pub struct Arena {
    slots: Vec<Slot>,
}

impl Arena {
    /// Memory for `packets` packets.
    pub fn new(packets: usize) -> Arena {
        let mut slots = Vec::with_capacity(packets);
        slots.resize_with(packets, || Slot::EMPTY);
        Arena { slots }
    }

    /// All packets. The arena cannot be split again while one of them exists.
    pub fn packets(&mut self) -> impl ExactSizeIterator<Item = Packet<'_>> {
        self.slots.iter_mut()
    }
}

/// Up to [`BURST`] packets that are processed together, in order.
#[derive(Default)]
pub struct Burst<'a> {
    packets: Vec<Packet<'a>>,
}

impl<'a> Burst<'a> {
    /// An empty burst with memory for [`BURST`] packets, so that adding packets never allocates.
    pub fn new() -> Self {
        Burst { packets: Vec::with_capacity(BURST) }
    }

    /// How many more packets fit.
    pub fn room(&self) -> usize {
        BURST - self.packets.len()
    }

    /// Adds a packet, or hands it back when the burst is full.
    #[inline(always)]
    pub fn push(&mut self, packet: Packet<'a>) -> Result<(), Packet<'a>> {
        if self.packets.len() == BURST {
            return Err(packet);
        }
        self.packets.push(packet);
        Ok(())
    }

    /// Takes the last packet.
    pub fn pop(&mut self) -> Option<Packet<'a>> {
        self.packets.pop()
    }

    /// Takes all packets, in order.
    pub fn drain(&mut self) -> std::vec::Drain<'_, Packet<'a>> {
        self.packets.drain(..)
    }

    /// Takes the first `count` packets, or all there are, in order.
    #[inline(always)]
    pub fn drain_front(&mut self, count: usize) -> std::vec::Drain<'_, Packet<'a>> {
        self.packets.drain(..count.min(self.packets.len()))
    }

    /// Adds `count` packets, or as many as there is room for, and returns how many. Cheaper than [`Burst::fill`], because
    /// the count is known and no check per packet is necessary.
    #[inline(always)]
    pub(crate) fn fill_exactly(&mut self, count: usize, mut next: impl FnMut() -> Packet<'a>) -> usize {
        let count = count.min(self.room());
        self.packets.extend((0..count).map(|_| next()));
        count
    }

    /// Adds packets while there is room, and takes no more from the iterator than fit.
    #[inline(always)]
    pub fn fill(&mut self, packets: impl Iterator<Item = Packet<'a>>) {
        let room = self.room();
        self.packets.extend(packets.take(room));
    }
}

impl<'a> Deref for Burst<'a> {
    type Target = [Packet<'a>];
    fn deref(&self) -> &[Packet<'a>] {
        &self.packets
    }
}

impl<'a> DerefMut for Burst<'a> {
    fn deref_mut(&mut self) -> &mut [Packet<'a>] {
        &mut self.packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_hold_frames_up_to_their_capacity() {
        let mut arena = Arena::new(2);
        let mut packets = arena.packets();
        let slot = packets.next().unwrap();
        assert!(slot.set_frame(&[7; 60]));
        assert_eq!(slot.frame(), [7; 60]);
        assert!(!slot.set_frame(&[1; FRAME_CAPACITY + 1]));
        assert_eq!(slot.frame_len(), FRAME_CAPACITY);
        assert_eq!(packets.len(), 1);
    }

    #[test]
    fn a_full_burst_hands_packets_back() {
        let mut arena = Arena::new(BURST + 1);
        let mut burst = Burst::new();
        let refused = arena.packets().filter_map(|packet| burst.push(packet).err()).count();
        assert_eq!((refused, burst.len(), burst.room()), (1, BURST, 0));
    }
}
