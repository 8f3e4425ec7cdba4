//! Links between threads or within one: two rings of packet references, one for frames and one for free slots in the other
//! direction.
//!
//! A burst of any size costs one atomic store on each side, because rings are filled and emptied in chunks. Frames are never
//! copied. The rings have a single producer and a single consumer: each half belongs to one thread at a time, as the borrow
//! checker enforces.

use std::sync::atomic::{Ordering, fence};

use rtrb::chunks::ChunkError;
use rtrb::{Consumer, Producer, RingBuffer};

use super::{Port, PortError, PortLosses};
use crate::burst::{BURST, Burst, Packet};

/// A link. Each ring holds `capacity` packets; if that is at least the number of packets in the arena, every slot always
/// finds room.
pub fn link<'a>(capacity: usize) -> (Sender<'a>, Receiver<'a>) {
    let (frames_in, frames_out) = RingBuffer::new(capacity);
    let (free_in, free_out) = RingBuffer::new(capacity);
    let sender = Sender { frames: frames_in, free: free_out, refused: 0 };
    (sender, Receiver { frames: frames_out, free: free_in })
}

/// Two ports with these numbers that are connected to each other.
pub fn pair<'a>(numbers: [u16; 2], capacity: usize) -> (MemoryPort<'a>, MemoryPort<'a>) {
    let (left_out, right_in) = link(capacity);
    let (right_out, left_in) = link(capacity);
    (MemoryPort::new(numbers[0], left_in, left_out), MemoryPort::new(numbers[1], right_in, right_out))
}

/// The end of a link that frames enter.
pub struct Sender<'a> {
    frames: Producer<Packet<'a>>,
    free: Consumer<Packet<'a>>,
    refused: u64,
}

impl<'a> Sender<'a> {
    /// Sends packets from the front of `burst`; those that do not fit stay there and are counted.
    #[inline]
    pub fn send(&mut self, burst: &mut Burst<'a>) -> usize {
        let sent = push(&mut self.frames, burst);
        self.refused += burst.len() as u64;
        sent
    }

    /// Adds slots that the other end returned to `free`, as far as it has room.
    #[inline]
    pub fn reclaim(&mut self, free: &mut Burst<'a>) -> usize {
        pop(&mut self.free, free, BURST)
    }

    /// Packets that had no room, counted each time they were offered.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Whether the other end has returned slots.
    pub fn has_free(&self) -> bool {
        !self.free.is_empty()
    }

    /// Whether the other end is gone.
    pub fn is_abandoned(&self) -> bool {
        self.frames.is_abandoned()
    }
}

/// The end of a link that frames leave.
pub struct Receiver<'a> {
    frames: Consumer<Packet<'a>>,
    free: Producer<Packet<'a>>,
}

impl<'a> Receiver<'a> {
    /// Adds up to `limit` packets to `burst`, as far as it has room.
    #[inline]
    pub fn receive(&mut self, burst: &mut Burst<'a>, limit: usize) -> usize {
        pop(&mut self.frames, burst, limit)
    }

    /// Whether there are no packets to receive.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Sends free slots back to the other end; those that do not fit stay in `free`.
    #[inline]
    pub fn recycle(&mut self, free: &mut Burst<'a>) -> usize {
        push(&mut self.free, free)
    }

    /// Whether the other end is gone and everything it sent has been received.
    pub fn is_finished(&self) -> bool {
        if !self.frames.is_abandoned() {
            return false;
        }
        // `is_abandoned` is a relaxed load of a count that the other end decremented, with release order, when it was
        // dropped. The fence makes everything that it sent before visible to the following check of the ring.
        fence(Ordering::Acquire);
        self.frames.is_empty()
    }
}

/// Moves packets from the front of `burst` into a ring, as many as fit, and returns how many.
#[inline(always)]
fn push<'a>(ring: &mut Producer<Packet<'a>>, burst: &mut Burst<'a>) -> usize {
    let chunk = match ring.write_chunk_uninit(burst.len()) {
        Ok(chunk) => chunk,
        Err(ChunkError::TooFewSlots(fits)) => match ring.write_chunk_uninit(fits) {
            Ok(chunk) => chunk,
            Err(_) => return 0, // only this half fills the ring, so the room is still there
        },
    };
    let fits = chunk.len();
    chunk.fill_from_iter(burst.drain_front(fits))
}

/// Moves up to `limit` packets from a ring to the end of `burst`, as far as it has room, and returns how many.
#[inline(always)]
fn pop<'a>(ring: &mut Consumer<Packet<'a>>, burst: &mut Burst<'a>, limit: usize) -> usize {
    let wanted = limit.min(burst.room());
    let chunk = match ring.read_chunk(wanted) {
        Ok(chunk) => chunk,
        Err(ChunkError::TooFewSlots(there)) => match ring.read_chunk(there) {
            Ok(chunk) => chunk,
            Err(_) => return 0, // only this half empties the ring, so the packets are still there
        },
    };
    let (there, mut packets) = (chunk.len(), chunk.into_iter());
    #[allow(clippy::expect_used)] // called once for each packet of the chunk
    burst.fill_exactly(there, || packets.next().expect("a chunk has the length it reports"))
}

/// A port that receives from one link and sends into another.
pub struct MemoryPort<'a> {
    number: u16,
    receiver: Receiver<'a>,
    sender: Sender<'a>,
}

impl<'a> MemoryPort<'a> {
    /// Port `number`, which receives from one link and sends into another.
    pub fn new(number: u16, receiver: Receiver<'a>, sender: Sender<'a>) -> MemoryPort<'a> {
        MemoryPort { number, receiver, sender }
    }

    /// The two halves, for two threads.
    pub fn split(self) -> (Receiver<'a>, Sender<'a>) {
        (self.receiver, self.sender)
    }
}

impl<'a> Port<'a> for MemoryPort<'a> {
    fn receive(&mut self, burst: &mut Burst<'a>, limit: usize) -> Result<usize, PortError> {
        let received = self.receiver.receive(burst, limit);
        let first = burst.len() - received;
        for packet in &mut burst[first..] {
            packet.port = self.number;
        }
        Ok(received)
    }

    fn transmit(&mut self, burst: &mut Burst<'a>) -> Result<usize, PortError> {
        Ok(self.sender.send(burst))
    }

    fn reclaim(&mut self, free: &mut Burst<'a>) -> usize {
        self.sender.reclaim(free)
    }

    fn recycle(&mut self, free: &mut Burst<'a>) -> usize {
        self.receiver.recycle(free)
    }

    fn refused(&self) -> u64 {
        self.sender.refused()
    }

    fn is_finished(&self) -> bool {
        self.receiver.is_finished()
    }

    fn overruns(&mut self) -> Result<u64, PortError> {
        Ok(0)
    }

    fn losses(&mut self) -> PortLosses {
        PortLosses::default()
    }

    fn has_unsent(&mut self) -> bool {
        false
    }
}
