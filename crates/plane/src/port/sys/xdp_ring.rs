//! The four rings of an AF_XDP socket. Each has a writer and a reader: one is the kernel, the other is this side.

use std::io;
use std::marker::PhantomData;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use libc::{c_int, xdp_desc, xdp_mmap_offsets, xdp_ring_offset};

use super::Socket;
use super::shared_mapping::{SharedMapping, acquire, release};
use super::socket::Plain;

/// A ring of `T`: what this side writes, or what it reads.
pub struct XdpRing<T> {
    map: SharedMapping,
    offsets: xdp_ring_offset,
    size: u32,
    /// How far this side has got, and how far it has told the kernel.
    mine: u32,
    /// How far the kernel had got when this side looked last.
    theirs: u32,
    items: PhantomData<T>,
}

/// All rings of a socket.
pub struct XdpRings {
    /// Places for frames to come.
    pub fill: XdpRing<u64>,
    /// Frames that came in.
    pub receive: XdpRing<xdp_desc>,
    /// Frames to send.
    pub send: XdpRing<xdp_desc>,
    /// Places of frames that are sent.
    pub completion: XdpRing<u64>,
}

impl XdpRings {
    /// Gives `socket`, which has its memory already, rings of that size: a power of two.
    pub fn new(socket: &Socket, size: u32) -> io::Result<XdpRings> {
        for ring in
            [libc::XDP_UMEM_FILL_RING, libc::XDP_UMEM_COMPLETION_RING, libc::XDP_RX_RING, libc::XDP_TX_RING]
        {
            socket.set(libc::SOL_XDP, ring, size as c_int)?;
        }
        let at: xdp_mmap_offsets = socket.get(libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)?;
        Ok(XdpRings {
            fill: XdpRing::new(socket, size, at.fr, libc::XDP_UMEM_PGOFF_FILL_RING as i64)?,
            receive: XdpRing::new(socket, size, at.rx, libc::XDP_PGOFF_RX_RING)?,
            send: XdpRing::new(socket, size, at.tx, libc::XDP_PGOFF_TX_RING)?,
            completion: XdpRing::new(socket, size, at.cr, libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64)?,
        })
    }
}

impl<T: Plain> XdpRing<T> {
    fn new(socket: &Socket, size: u32, offsets: xdp_ring_offset, place: i64) -> io::Result<XdpRing<T>> {
        let len = offsets.desc as usize + size as usize * size_of::<T>();
        let map = SharedMapping::new(socket.as_fd(), len, place)?;
        Ok(XdpRing { map, offsets, size, mine: 0, theirs: 0, items: PhantomData })
    }

    /// Of a ring this side writes: how many items there is room for, at least `wanted` if there is.
    #[inline]
    pub fn room(&mut self, wanted: usize) -> usize {
        let known = self.size - self.mine.wrapping_sub(self.theirs);
        if known as usize >= wanted {
            return known as usize;
        }
        self.theirs = acquire(self.map.word(self.offsets.consumer as usize));
        (self.size - self.mine.wrapping_sub(self.theirs).min(self.size)) as usize
    }

    /// Writes an item, for which there must be room; the kernel sees it after [`XdpRing::publish`].
    #[inline]
    pub fn push(&mut self, item: T) {
        self.map.write(self.place(self.mine), item);
        self.mine = self.mine.wrapping_add(1);
    }

    /// Shows the kernel what was written.
    #[inline]
    pub fn publish(&mut self) {
        release(self.map.word(self.offsets.producer as usize), self.mine);
    }

    /// Of a ring this side writes: takes back what was pushed last and the kernel has not taken. For when the kernel takes
    /// nothing, because it is not called and does not look by itself.
    pub fn withdraw(&mut self) -> Option<T> {
        if self.is_drained() {
            return None;
        }
        self.mine = self.mine.wrapping_sub(1);
        self.publish();
        Some(self.map.read(self.place(self.mine)))
    }

    /// Of a ring this side writes: whether the kernel has taken everything.
    pub fn is_drained(&mut self) -> bool {
        self.room(self.size as usize) == self.size as usize
    }

    /// Of a ring this side reads: the next item.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.mine == self.theirs {
            self.theirs = acquire(self.map.word(self.offsets.producer as usize));
        }
        if self.mine == self.theirs {
            return None;
        }
        let item = self.map.read(self.place(self.mine));
        self.mine = self.mine.wrapping_add(1);
        Some(item)
    }

    /// Gives the kernel the places of what was read.
    #[inline]
    pub fn give_back(&mut self) {
        release(self.map.word(self.offsets.consumer as usize), self.mine);
    }

    /// Whether the kernel waits for a call before it goes on with this ring.
    #[inline]
    pub fn needs_wakeup(&self) -> bool {
        let flags = self.map.word(self.offsets.flags as usize).load(Ordering::Relaxed);
        flags & libc::XDP_RING_NEED_WAKEUP != 0
    }

    #[inline]
    fn place(&self, number: u32) -> usize {
        self.offsets.desc as usize + (number & (self.size - 1)) as usize * size_of::<T>()
    }
}
