//! memif ports: packets to and from another process over shared memory, compatible with VPP and DPDK.
//!
//! This end is the client (formerly slave): it connects to the socket of a server and provides the memory. Frames are copied
//! once in each direction. There is one pair of rings for Ethernet frames. The worker polls, so the server need not wake
//! this end.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

use super::port_slots::PortSlots;
use super::{Port, PortError, PortLosses};
use crate::burst::Burst;
use control::{ControlChannel, MemoryOffer};
use ring::{MemifRings, RingDirection, Taken};

mod control;
mod message;
mod ring;

pub use control::MemifAddress;

/// The base-2 logarithm of the ring size, unless the server allows less.
const LOG2_RING: u8 = 10;

/// Empty receives before the port checks that the server still exists.
const IDLE_CHECK: u32 = 1024;

/// A port to another process, for one worker.
pub struct MemifPort<'a> {
    number: u16,
    control: ControlChannel,
    rings: MemifRings,
    /// The event with which this end wakes the server.
    wake: OwnedFd,
    /// The event with which the server could wake this end. The protocol requires it; no thread waits for it.
    _woken: OwnedFd,
    slots: PortSlots<'a>,
    losses: PortLosses,
    refused: u64,
    idle: u32,
    is_finished: bool,
}

impl<'a> MemifPort<'a> {
    /// Connects to a running server.
    ///
    /// # Errors
    /// Fails if there is no server, or if it refuses or does not answer for five seconds.
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
        // Only now, because a server empties the rings when it connects.
        rings.poll();
        rings.offer();
        let [wake, woken] = wakers;
        let (slots, losses, refused, idle, is_finished) =
            (PortSlots::new(), PortLosses::default(), 0, 0, false);
        let _woken = woken;
        Ok(MemifPort { number, control, rings, wake, _woken, slots, losses, refused, idle, is_finished })
    }

    #[cold]
    fn check_server(&mut self) {
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
                Taken::TooLong => self.losses.too_long += 1,
            }
        }
        if wanted > 0 {
            self.rings.offer();
            self.idle = 0;
        } else {
            self.idle += 1;
            if self.idle >= IDLE_CHECK {
                self.check_server();
            }
        }
        Ok(burst.len() - before)
    }

    fn transmit(&mut self, burst: &mut Burst<'a>) -> Result<usize, PortError> {
        let taken = burst.len().min(self.slots.room_for_sent()).min(self.rings.room());
        burst[..taken].iter().for_each(|packet| self.rings.put(packet));
        if taken > 0 && self.rings.publish() {
            // If the event counter is full, the server has been woken already.
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

    fn losses(&mut self) -> PortLosses {
        std::mem::take(&mut self.losses)
    }

    fn has_unsent(&mut self) -> bool {
        self.rings.room() < usize::from(self.rings.size())
    }
}
