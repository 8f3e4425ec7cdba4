//! The memory that both ends share: two rings of descriptors, and a buffer for each.
//!
//! This end made the memory, so it knows where each buffer lies and never looks that up in it: of what the other end
//! writes, only how far it has got and how long its frames are is read, and checked.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use super::super::sys::SharedMapping;
use crate::burst::{FRAME_CAPACITY, Packet, Slot};

/// At the beginning of a ring.
const COOKIE: u32 = 0x03e3_1f20;

/// Places in a ring: what its writer has got to, what its reader has, and the descriptors.
const FLAGS: usize = 4;
const HEAD: usize = 6;
const TAIL: usize = 64;
const DESCRIPTORS: usize = 128;
const DESCRIPTOR: usize = 16;

/// In a ring's flags: nobody waits to be woken. In a descriptor's: the frame goes on in the next one.
const NO_WAKING: u16 = 1;
const CONTINUES: u64 = 1;

/// Bytes from buffer to buffer: an odd number of cache lines, as in [`Slot`].
const STRIDE: usize = 2112;

const _: () = assert!(STRIDE >= FRAME_CAPACITY && (STRIDE / 64) % 2 == 1);

/// The memory, with its rings to the server and from it.
pub struct MemifRings {
    file: OwnedFd,
    map: SharedMapping,
    log2: u8,
    /// How far this end has got with frames to the server and buffers for frames from it: the heads.
    sent: u16,
    offered: u16,
    /// How far it has got with what comes from the server.
    taken: u16,
    /// Whether what was taken last goes on.
    continues: bool,
}

/// What was in a descriptor.
pub enum Taken {
    Frame,
    /// Some of a frame that is longer than a buffer, but not the end of it.
    Part,
    /// All of a frame that is longer than a slot, or the end of it.
    TooLong,
}

impl MemifRings {
    /// Memory with empty rings of two to that power.
    pub fn new(log2: u8) -> io::Result<MemifRings> {
        let file = memfd_create("memif", MemfdFlags::CLOEXEC)?;
        let bytes = MemifRings::bytes_of(log2);
        ftruncate(&file, bytes as u64)?;
        let map = SharedMapping::new(file.as_fd(), bytes, 0)?;
        let rings = MemifRings { file, map, log2, sent: 0, offered: 0, taken: 0, continues: false };
        for ring in [RingDirection::TO_SERVER, RingDirection::FROM_SERVER] {
            rings.map.word(rings.at(ring, 0)).store(COOKIE, Ordering::Relaxed);
            (0..rings.size()).for_each(|number| rings.describe(ring, number, FRAME_CAPACITY));
        }
        Ok(rings)
    }

    /// Frames in a ring at most.
    pub fn size(&self) -> u16 {
        1 << self.log2
    }

    pub fn bytes(&self) -> u64 {
        MemifRings::bytes_of(self.log2) as u64
    }

    fn bytes_of(log2: u8) -> usize {
        2 * (MemifRings::ring_bytes(log2) + (STRIDE << log2))
    }

    pub const fn ring_bytes(log2: u8) -> usize {
        DESCRIPTORS + (DESCRIPTOR << log2)
    }

    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Where a ring begins.
    pub fn offset(&self, ring: RingDirection) -> u32 {
        self.at(ring, 0) as u32
    }

    /// How many frames there is room for on the way to the server.
    pub fn room(&self) -> usize {
        let read = self.map.half_word(self.at(RingDirection::TO_SERVER, TAIL)).load(Ordering::Acquire);
        usize::from(self.size() - self.sent.wrapping_sub(read).min(self.size()))
    }

    /// Copies a frame into the next place, for which there must be room; the server sees it after [`Self::publish`].
    pub fn put(&mut self, packet: &Slot) {
        let number = self.sent & (self.size() - 1);
        self.map.copy_from(self.buffer(RingDirection::TO_SERVER, number), packet.frame());
        self.describe(RingDirection::TO_SERVER, number, packet.frame_len());
        self.sent = self.sent.wrapping_add(1);
    }

    /// Shows the server what was put, and says whether it wants to be woken for it.
    pub fn publish(&self) -> bool {
        self.map.half_word(self.at(RingDirection::TO_SERVER, HEAD)).store(self.sent, Ordering::Release);
        let flags = self.map.half_word(self.at(RingDirection::TO_SERVER, FLAGS)).load(Ordering::Relaxed);
        flags & NO_WAKING == 0
    }

    /// How many frames have come. A server cannot have filled more buffers than it was offered.
    pub fn waiting(&self) -> usize {
        let filled = self.map.half_word(self.at(RingDirection::FROM_SERVER, TAIL)).load(Ordering::Acquire);
        usize::from(filled.wrapping_sub(self.taken).min(self.offered.wrapping_sub(self.taken)))
    }

    /// Copies the next frame out, of which there must be one.
    pub fn take(&mut self, slot: &mut Packet<'_>) -> Taken {
        let number = self.taken & (self.size() - 1);
        self.taken = self.taken.wrapping_add(1);
        let descriptor: u64 = self.map.read(self.descriptor(RingDirection::FROM_SERVER, number));
        let len = (descriptor >> 32) as usize;
        let is_tail = std::mem::replace(&mut self.continues, descriptor & CONTINUES != 0);
        if self.continues {
            return Taken::Part;
        }
        if is_tail || len > FRAME_CAPACITY {
            return Taken::TooLong;
        }
        slot.set_frame_len(len);
        self.map.copy_to(self.buffer(RingDirection::FROM_SERVER, number), slot.frame_mut());
        Taken::Frame
    }

    /// Offers the buffers of frames that were taken again, at first all of them.
    pub fn offer(&mut self) {
        let end = self.taken.wrapping_add(self.size());
        while self.offered != end {
            self.describe(RingDirection::FROM_SERVER, self.offered & (self.size() - 1), FRAME_CAPACITY);
            self.offered = self.offered.wrapping_add(1);
        }
        self.map.half_word(self.at(RingDirection::FROM_SERVER, HEAD)).store(self.offered, Ordering::Release);
    }

    /// This end looks by itself: the server need not wake it.
    pub fn poll(&self) {
        self.map.half_word(self.at(RingDirection::FROM_SERVER, FLAGS)).store(NO_WAKING, Ordering::Relaxed);
    }

    /// Writes a descriptor: in memory region 0, no flags.
    fn describe(&self, ring: RingDirection, number: u16, len: usize) {
        let at = self.descriptor(ring, number);
        self.map.write(at, (len as u64) << 32);
        self.map.write(at + 8, self.buffer(ring, number) as u64);
    }

    fn at(&self, ring: RingDirection, place: usize) -> usize {
        ring.0 * MemifRings::ring_bytes(self.log2) + place
    }

    fn descriptor(&self, ring: RingDirection, number: u16) -> usize {
        self.at(ring, DESCRIPTORS) + usize::from(number) * DESCRIPTOR
    }

    fn buffer(&self, ring: RingDirection, number: u16) -> usize {
        let number = (ring.0 << self.log2) + usize::from(number);
        2 * MemifRings::ring_bytes(self.log2) + number * STRIDE
    }
}

/// One of the two rings, in the order in which they lie.
#[derive(Clone, Copy)]
pub struct RingDirection(usize);

impl RingDirection {
    pub const TO_SERVER: RingDirection = RingDirection(0);
    pub const FROM_SERVER: RingDirection = RingDirection(1);
}
