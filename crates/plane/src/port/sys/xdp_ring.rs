//! The four rings of an AF_XDP socket. Each ring has one writer and one reader; one of them is the kernel.

use std::io;
use std::marker::PhantomData;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use libc::{c_int, xdp_desc, xdp_mmap_offsets, xdp_ring_offset};

use super::Socket;
use super::shared_mapping::{SharedMapping, acquire, release};
use super::socket::Plain;

/// A ring of `T` that this side writes or reads.
pub struct XdpRing<T> {
    map: SharedMapping,
    offsets: xdp_ring_offset,
    size: u32,
    /// The index of this side: producer or consumer.
    mine: u32,
    /// Of a ring that this side writes: the index that the kernel was told.
    published: u32,
    /// The index of the kernel when it was read last.
    theirs: u32,
    items: PhantomData<T>,
}

/// All rings of a socket.
pub struct XdpRings {
    /// Addresses of free chunks for received frames.
    pub fill: XdpRing<u64>,
    /// Received frames.
    pub receive: XdpRing<xdp_desc>,
    /// Frames to send.
    pub send: XdpRing<xdp_desc>,
    /// Addresses of sent frames.
    pub completion: XdpRing<u64>,
}

impl XdpRings {
    /// Creates the rings of `socket`, whose memory is registered already; the size is a power of two.
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

    /// How many more frames the kernel can send and report: those that it sees have their places in the ring already, until the
    /// report is read.
    #[inline]
    pub fn room_to_report(&self) -> u32 {
        let unreported = self.send.published.wrapping_sub(self.completion.mine);
        self.completion.size.saturating_sub(unreported)
    }
}

impl<T: Plain> XdpRing<T> {
    fn new(socket: &Socket, size: u32, offsets: xdp_ring_offset, place: i64) -> io::Result<XdpRing<T>> {
        let len = offsets.desc as usize + size as usize * size_of::<T>();
        let map = SharedMapping::new(socket.as_fd(), len, place)?;
        Ok(XdpRing { map, offsets, size, mine: 0, published: 0, theirs: 0, items: PhantomData })
    }

    /// Of a ring that this side writes: the room for items, read from the kernel if less than `wanted` is known.
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
        self.map.write(self.offset(self.mine), item);
        self.mine = self.mine.wrapping_add(1);
    }

    /// Makes the written items visible to the kernel.
    #[inline]
    pub fn publish(&mut self) {
        self.publish_up_to(self.size);
    }

    /// The same for so many of them at most.
    #[inline]
    pub fn publish_up_to(&mut self, most: u32) {
        self.published = self.published.wrapping_add(self.unpublished().min(most));
        release(self.map.word(self.offsets.producer as usize), self.published);
    }

    /// How many written items the kernel does not see yet.
    #[inline]
    pub fn unpublished(&self) -> u32 {
        self.mine.wrapping_sub(self.published)
    }

    /// Takes back the last written item, if the kernel does not see it. Once it does, nothing can be taken back: it remembers how
    /// far the ring was written, and would send what lies there.
    pub fn withdraw(&mut self) -> Option<T> {
        if self.unpublished() == 0 {
            return None;
        }
        self.mine = self.mine.wrapping_sub(1);
        Some(self.map.read(self.offset(self.mine)))
    }

    /// Takes back the last written item that the kernel has not taken. Only for a ring that is not used again.
    pub fn recall(&mut self) -> Option<T> {
        if self.is_drained() {
            return None;
        }
        self.mine = self.mine.wrapping_sub(1);
        Some(self.map.read(self.offset(self.mine)))
    }

    /// Of a ring that this side writes: whether the kernel has taken all items.
    pub fn is_drained(&mut self) -> bool {
        self.room(self.size as usize) == self.size as usize
    }

    /// Of a ring that this side writes: whether the kernel has taken all items that it sees.
    #[inline]
    pub fn is_taken(&mut self) -> bool {
        self.theirs = acquire(self.map.word(self.offsets.consumer as usize));
        self.theirs == self.published
    }

    /// Of a ring that this side reads: how many items wait.
    pub fn waiting(&mut self) -> usize {
        self.theirs = acquire(self.map.word(self.offsets.producer as usize));
        self.theirs.wrapping_sub(self.mine) as usize
    }

    /// Of a ring that this side reads: the next item.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.mine == self.theirs {
            self.theirs = acquire(self.map.word(self.offsets.producer as usize));
        }
        if self.mine == self.theirs {
            return None;
        }
        let item = self.map.read(self.offset(self.mine));
        self.mine = self.mine.wrapping_add(1);
        Some(item)
    }

    /// Returns the entries of read items to the kernel.
    #[inline]
    pub fn give_back(&mut self) {
        release(self.map.word(self.offsets.consumer as usize), self.mine);
    }

    /// Whether the kernel waits for a system call before it continues with this ring.
    #[inline]
    pub fn needs_wakeup(&self) -> bool {
        let flags = self.map.word(self.offsets.flags as usize).load(Ordering::Relaxed);
        flags & libc::XDP_RING_NEED_WAKEUP != 0
    }

    #[inline]
    fn offset(&self, number: u32) -> usize {
        self.offsets.desc as usize + (number & (self.size - 1)) as usize * size_of::<T>()
    }
}
