//! Links between threads, or within one: two rings of packet references, frames one way and free slots the other.
//!
//! A burst costs one atomic store on either side, whatever its size: rings are filled and emptied by chunks. Frames are
//! never copied. The rings are single-producer, single-consumer: each half belongs to one thread at a time, which the
//! borrow checker sees to.

use std::sync::atomic::{Ordering, fence};

use rtrb::chunks::ChunkError;
use rtrb::{Consumer, Producer, RingBuffer};

use super::{Port, PortError};
use crate::burst::{BURST, Burst, Packet};

/// A link from one place to another. Each ring holds `capacity` packets: no slot is ever stuck if that is at least the
/// number of packets in the arena.
pub fn link<'a>(capacity: usize) -> (Sender<'a>, Receiver<'a>) {
    let (frames_in, frames_out) = RingBuffer::new(capacity);
    let (free_in, free_out) = RingBuffer::new(capacity);
    let sender = Sender { frames: frames_in, free: free_out, refused: 0 };
    (sender, Receiver { frames: frames_out, free: free_in })
}

/// Two ports of these numbers, each connected to the other: a cable.
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

    /// Adds slots that came back from the other end to `free`, as far as it has room.
    #[inline]
    pub fn reclaim(&mut self, free: &mut Burst<'a>) -> usize {
        pop(&mut self.free, free, BURST)
    }

    /// Packets that did not fit, counted each time they were offered.
    pub fn refused(&self) -> u64 {
        self.refused
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
        // `is_abandoned` is a relaxed load of the count that the other end lowered, with release order, when it went.
        // The fence makes what it sent before visible to the look at the ring.
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
            Err(_) => return 0, // only this half takes room away, so what was there still is
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
            Err(_) => return 0, // only this half takes packets away, so what was there still is
        },
    };
    let (there, mut packets) = (chunk.len(), chunk.into_iter());
    #[allow(clippy::expect_used)] // asked as often as the chunk has packets, and no more
    burst.fill_exactly(there, || packets.next().expect("a chunk holds as many packets as it says"))
}

/// One end of a cable.
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

    fn has_unsent(&mut self) -> bool {
        false
    }
}
