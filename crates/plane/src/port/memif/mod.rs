//! Another process as a port, over shared memory: memif, as VPP and DPDK speak it.
//!
//! This end is the client (memif also says slave): it connects to a server's socket, and the memory is its own. Frames
//! are copied once on either way. One pair of rings, Ethernet frames, no waking of this end: a worker looks by itself.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

use super::port_slots::PortSlots;
use super::{Port, PortError};
use crate::burst::Burst;
use control::{ControlChannel, MemoryOffer};
use ring::{MemifRings, RingDirection, Taken};

mod control;
mod message;
mod ring;

pub use control::MemifAddress;

/// Frames in a ring: two to this power, unless the server has less.
const LOG2_RING: u8 = 10;

/// Times without a frame before the port looks whether the server is still there.
const IDLE: u32 = 1024;

/// A port to another process, for one worker.
pub struct MemifPort<'a> {
    number: u16,
    control: ControlChannel,
    rings: MemifRings,
    /// Wakes the server's reader.
    wake: OwnedFd,
    /// Told to the server, as the protocol wants it; nobody waits for it.
    _woken: OwnedFd,
    slots: PortSlots<'a>,
    too_long: u64,
    refused: u64,
    idle: u32,
    is_finished: bool,
}

impl<'a> MemifPort<'a> {
    /// Connects to a server that is there already.
    ///
    /// # Errors
    /// If there is none, if it refuses, or has nothing to say for five seconds.
    pub fn connect(number: u16, request: &MemifAddress<'_>) -> Result<MemifPort<'a>, PortError> {
        MemifPort::open(number, request).map_err(|source| PortError::Interface {
            interface: format!("memif {}, id {}", request.socket, request.id),
            action: "connect",
            source,
            hint: "start the server (role=server in DPDK, master in VPP) with this socket, id and secret first",
        })
    }

    fn open(number: u16, request: &MemifAddress<'_>) -> io::Result<MemifPort<'a>> {
        let (control, max_log2) = ControlChannel::open(request)?;
        let log2_ring = LOG2_RING.min(max_log2);
        let mut rings = MemifRings::new(log2_ring)?;
        let wakers = [new_waker()?, new_waker()?];
        let places = [RingDirection::TO_SERVER, RingDirection::FROM_SERVER].map(|ring| rings.offset(ring));
        let [to_server, from_server] = [0, 1].map(|end| (places[end], wakers[end].as_fd()));
        let offer = MemoryOffer {
            memory: rings.file(),
            bytes: rings.bytes(),
            rings: [to_server, from_server],
            log2_ring,
        };
        control.offer(request, &offer)?;
        // Only now: a server empties the rings when it connects.
        rings.poll();
        rings.offer();
        let [wake, woken] = wakers;
        let (slots, too_long, refused, idle, is_finished) = (PortSlots::new(), 0, 0, 0, false);
        let _woken = woken;
        Ok(MemifPort { number, control, rings, wake, _woken, slots, too_long, refused, idle, is_finished })
    }

    /// Frames that came in and are longer than a slot.
    pub fn too_long(&self) -> u64 {
        self.too_long
    }

    #[cold]
    fn look_after_server(&mut self) {
        self.idle = 0;
        self.is_finished |= self.control.is_over();
    }
}

fn new_waker() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

impl<'a> Port<'a> for MemifPort<'a> {
    fn receive(&mut self, burst: &mut Burst<'a>, limit: usize) -> Result<usize, PortError> {
        let wanted = limit.min(burst.room()).min(self.slots.free()).min(self.rings.waiting());
        let before = burst.len();
        for _ in 0..wanted {
            let Some(slot) = self.slots.next() else { break };
            slot.port = self.number;
            match self.rings.take(slot) {
                Taken::Frame => self.slots.fill(burst),
                Taken::Part => {}
                Taken::TooLong => self.too_long += 1,
            }
        }
        if wanted > 0 {
            self.rings.offer();
            self.idle = 0;
        } else {
            self.idle += 1;
            if self.idle >= IDLE {
                self.look_after_server();
            }
        }
        Ok(burst.len() - before)
    }

    fn transmit(&mut self, burst: &mut Burst<'a>) -> Result<usize, PortError> {
        let taken = burst.len().min(self.slots.room_for_sent()).min(self.rings.room());
        burst[..taken].iter().for_each(|packet| self.rings.put(packet));
        if taken > 0 && self.rings.publish() {
            // An event more than the counter holds wakes nobody sooner.
            let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
        }
        self.slots.sent(burst, taken);
        self.refused += burst.len() as u64;
        Ok(taken)
    }

    fn reclaim(&mut self, free: &mut Burst<'a>) -> usize {
        self.slots.reclaim(free)
    }

    fn recycle(&mut self, free: &mut Burst<'a>) -> usize {
        self.slots.recycle(free)
    }

    fn refused(&self) -> u64 {
        self.refused
    }

    fn is_finished(&self) -> bool {
        self.is_finished
    }

    fn overruns(&mut self) -> Result<u64, PortError> {
        Ok(0)
    }

    fn has_unsent(&mut self) -> bool {
        self.rings.room() < usize::from(self.rings.size())
    }
}
