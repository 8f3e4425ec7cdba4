//! The shared memory: two rings of descriptors, and a buffer for each descriptor.
//!
//! This end creates the memory, so it knows the place of each buffer and never reads it from the memory. Of the values that
//! the other end writes, it reads only the ring indices and the frame lengths, and checks them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

use super::super::sys::SharedMapping;
use crate::burst::{FRAME_CAPACITY, Packet, Slot};

/// The first word of a ring.
const COOKIE: u32 = 0x03e3_1f20;

/// Offsets in a ring: flags, the writer's index, the reader's index, and the descriptors.
const FLAGS: usize = 4;
const HEAD: usize = 6;
const TAIL: usize = 64;
const DESCRIPTORS: usize = 128;
const DESCRIPTOR: usize = 16;

/// The ring flag of a reader that polls, and the descriptor flag of a frame that continues in the next buffer.
const NO_WAKING: u16 = 1;
const CONTINUES: u64 = 1;

/// Bytes from buffer to buffer: an odd number of cache lines, as in [`Slot`].
const STRIDE: usize = 2112;

const _: () = assert!(STRIDE >= FRAME_CAPACITY && (STRIDE / 64) % 2 == 1);

/// The memory with the rings to the server and from it.
pub struct MemifRings {
    file: OwnedFd,
    map: SharedMapping,
    log2: u8,
    /// The heads: frames sent to the server, and buffers offered for frames from it.
    sent: u16,
    offered: u16,
    /// Frames taken from the server.
    taken: u16,
    /// Whether the last frame continues in the next buffer.
    continues: bool,
}

/// The content of a descriptor.
pub enum Taken {
    Frame,
    /// A part of a frame that is longer than a buffer, but not its end.
    Part,
    /// A frame that is longer than a slot, or the end of a frame in several buffers.
    TooLong,
}

impl MemifRings {
    /// Memory with empty rings of `1 << log2` descriptors.
    pub fn new(log2: u8) -> io::Result<MemifRings> {
        let bytes = MemifRings::bytes_of(log2);
        let file = new_memory(bytes)?;
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

    /// The offset of a ring.
    pub fn offset(&self, ring: RingDirection) -> u32 {
        self.at(ring, 0) as u32
    }

    /// The room for frames to the server.
    pub fn room(&self) -> usize {
        let read = self.map.half_word(self.at(RingDirection::TO_SERVER, TAIL)).load(Ordering::Acquire);
        usize::from(self.size() - self.sent.wrapping_sub(read).min(self.size()))
    }

    /// Copies a frame into the next buffer, for which there must be room; the server sees it after [`Self::publish`].
    pub fn put(&mut self, packet: &Slot) {
        let number = self.sent & (self.size() - 1);
        self.map.copy_from(self.buffer(RingDirection::TO_SERVER, number), packet.frame());
        self.describe(RingDirection::TO_SERVER, number, packet.frame_len());
        self.sent = self.sent.wrapping_add(1);
    }

    /// Makes the frames visible to the server, and returns whether the server has to be woken.
    pub fn publish(&self) -> bool {
        self.map.half_word(self.at(RingDirection::TO_SERVER, HEAD)).store(self.sent, Ordering::Release);
        let flags = self.map.half_word(self.at(RingDirection::TO_SERVER, FLAGS)).load(Ordering::Relaxed);
        flags & NO_WAKING == 0
    }

    /// The number of frames from the server, at most the number of buffers that it was offered.
    pub fn waiting(&self) -> usize {
        let filled = self.map.half_word(self.at(RingDirection::FROM_SERVER, TAIL)).load(Ordering::Acquire);
        usize::from(filled.wrapping_sub(self.taken).min(self.offered.wrapping_sub(self.taken)))
    }

    /// Copies the next frame, which must exist, into a slot.
    pub fn take(&mut self, slot: &mut Packet<'_>) -> Taken {
        let number = self.taken & (self.size() - 1);
        self.taken = self.taken.wrapping_add(1);
        let at = self.descriptor(RingDirection::FROM_SERVER, number);
        // Read once: the server may change it at any time.
        let descriptor = self.map.double_word(at).load(Ordering::Relaxed);
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

    /// Offers the buffers of taken frames to the server again; the first call offers all buffers.
    pub fn offer(&mut self) {
        let end = self.taken.wrapping_add(self.size());
        while self.offered != end {
            self.describe(RingDirection::FROM_SERVER, self.offered & (self.size() - 1), FRAME_CAPACITY);
            self.offered = self.offered.wrapping_add(1);
        }
        self.map.half_word(self.at(RingDirection::FROM_SERVER, HEAD)).store(self.offered, Ordering::Release);
    }

    /// Sets the flag that this end polls, so that the server need not wake it.
    pub fn poll(&self) {
        self.map.half_word(self.at(RingDirection::FROM_SERVER, FLAGS)).store(NO_WAKING, Ordering::Relaxed);
    }

    /// Writes a descriptor of memory region 0 without flags.
    fn describe(&self, ring: RingDirection, number: u16, len: usize) {
        let at = self.descriptor(ring, number);
        self.map.double_word(at).store((len as u64) << 32, Ordering::Relaxed);
        self.map.double_word(at + 8).store(self.buffer(ring, number) as u64, Ordering::Relaxed);
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

/// Memory of a fixed size. The server gets its descriptor too, and reading from memory that it cut off would end this process.
fn new_memory(bytes: usize) -> io::Result<OwnedFd> {
    let file = memfd_create("memif", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&file, bytes as u64)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file)
}

/// One of the two rings, in memory order.
#[derive(Clone, Copy)]
pub struct RingDirection(usize);

impl RingDirection {
    pub const TO_SERVER: RingDirection = RingDirection(0);
    pub const FROM_SERVER: RingDirection = RingDirection(1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn the_server_cannot_change_the_size_of_the_memory() {
        let rings = MemifRings::new(4).unwrap();
        for bytes in [0, rings.bytes() - 1, rings.bytes() + 1] {
            assert_eq!(ftruncate(rings.file(), bytes), Err(Errno::PERM));
        }
    }
}
