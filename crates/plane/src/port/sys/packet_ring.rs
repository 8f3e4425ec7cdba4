//! The receive ring of a packet socket (PACKET_MMAP, TPACKET_V2): frames in memory that the kernel fills.
//!
//! Uses version 2, which delivers frame by frame. Version 3 delivers blocks and holds frames back until a block is full or
//! its timer of at least a millisecond ends, which would delay packets at every router on the path.

use std::io;
use std::mem::offset_of;
use std::os::fd::AsFd;

use libc::{c_int, tpacket_req, tpacket2_hdr};

use super::Socket;
use super::shared_mapping::{SharedMapping, acquire, release};

/// Bytes of the virtio-net header before each frame, without the number of buffers.
pub const VIRTIO_HEADER: usize = 10;

/// The size of a ring.
#[derive(Clone, Copy)]
pub struct RingSize {
    /// Frames at least.
    pub frames: usize,
    /// Bytes per frame, with its header: a multiple of 16.
    pub frame: usize,
}

/// Bytes that the kernel allocates in one piece.
const BLOCK: usize = 1 << 18;

/// The ring of a socket.
pub struct PacketRing {
    map: SharedMapping,
    frame: usize,
    frames: usize,
    next: usize,
}

/// One frame in the ring.
pub struct FilledFrame<'r> {
    ring: &'r PacketRing,
    start: usize,
    /// A copy of its header.
    pub header: tpacket2_hdr,
}

impl PacketRing {
    /// Creates the receive ring of `socket`, with a virtio-net header before each frame.
    pub fn new(socket: &Socket, size: RingSize) -> io::Result<PacketRing> {
        socket.set(libc::SOL_PACKET, libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V2 as c_int)?;
        socket.set(libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1)?;
        let per_block = BLOCK / size.frame;
        let blocks = size.frames.div_ceil(per_block);
        let request = tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: size.frame as u32,
            tp_frame_nr: (blocks * per_block) as u32,
        };
        socket.set(libc::SOL_PACKET, libc::PACKET_RX_RING, request)?;
        let map = SharedMapping::new(socket.as_fd(), blocks * BLOCK, 0)?;
        Ok(PacketRing { map, frame: size.frame, frames: blocks * per_block, next: 0 })
    }

    /// The next frame, if the kernel has filled it.
    pub fn peek(&self) -> Option<FilledFrame<'_>> {
        let start = self.start(self.next);
        let status = acquire(self.map.word(start + offset_of!(tpacket2_hdr, tp_status)));
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // The kernel wrote the header before the status that was loaded above.
        let header = self.map.read(start);
        Some(FilledFrame { ring: self, start, header })
    }

    /// Returns the frame of the last [`Self::peek`] to the kernel.
    pub fn give_back(&mut self) {
        release(self.map.word(self.start(self.next)), libc::TP_STATUS_KERNEL);
        self.next = (self.next + 1) % self.frames;
    }

    /// Frames do not cross blocks: what is left of a block at its end is empty.
    fn start(&self, frame: usize) -> usize {
        let per_block = BLOCK / self.frame;
        frame / per_block * BLOCK + frame % per_block * self.frame
    }
}

impl FilledFrame<'_> {
    /// Whether the frame is longer than those of the ring, and is the next one of [`Socket::receive`], with its virtio-net header
    /// (`PACKET_COPY_THRESH`).
    pub fn is_beside(&self) -> bool {
        self.header.tp_status & libc::TP_STATUS_COPY != 0
    }

    /// Copies the frame without what stands before it; `false` if the header points outside.
    pub fn copy_to(&self, bytes: &mut [u8]) -> bool {
        self.copy(usize::from(self.header.tp_mac), bytes)
    }

    /// The virtio-net header.
    pub fn virtio_header(&self) -> Option<[u8; VIRTIO_HEADER]> {
        let mut header = [0; VIRTIO_HEADER];
        let offset = usize::from(self.header.tp_mac).checked_sub(VIRTIO_HEADER)?;
        self.copy(offset, &mut header).then_some(header)
    }

    fn copy(&self, offset: usize, bytes: &mut [u8]) -> bool {
        let inside = offset + bytes.len() <= self.ring.frame;
        if inside {
            self.ring.map.copy_to(self.start + offset, bytes);
        }
        inside
    }
}
