//! TAP interfaces as ports: the port receives what the kernel sends by the interface, and the kernel receives what the port
//! sends. The interface exists as long as its ports.

use std::fs::File;
use std::io::{self, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use super::link::Link;
use super::port_slots::PortSlots;
use super::sys::tun;
use super::{Port, PortError, PortLosses};
use crate::burst::{Burst, FRAME_CAPACITY, Packet};

/// Frames that the kernel holds for a queue of a TAP interface, unless its `txqueuelen` is changed.
const QUEUE: usize = 1000;

/// A port on one queue of a TAP interface, for one worker.
pub struct TapPort<'a> {
    number: u16,
    link: Link,
    file: File,
    slots: PortSlots<'a>,
    losses: PortLosses,
    refused: u64,
    is_finished: bool,
}

impl<'a> TapPort<'a> {
    /// Creates an interface, which is down at first; `%d` in the name becomes a free number.
    pub fn create(number: u16, name: &str) -> Result<TapPort<'a>, PortError> {
        TapPort::open(number, name, false)
    }

    /// Creates an interface with a queue, and a port, for each worker. The kernel spreads flows over the queues.
    pub fn create_group(number: u16, name: &str, workers: usize) -> Result<Vec<TapPort<'a>>, PortError> {
        let mut ports = Vec::with_capacity(workers);
        for _ in 0..workers {
            let name = ports.first().map_or(name, |first: &TapPort<'a>| first.link.name()).to_owned();
            ports.push(TapPort::open(number, &name, true)?);
        }
        Ok(ports)
    }

    fn open(number: u16, name: &str, has_queues: bool) -> Result<TapPort<'a>, PortError> {
        let (file, name) = tun::create(name, has_queues).map_err(Link::not_created(name))?;
        let link = Link::named(&name)?;
        let (slots, losses, refused) = (PortSlots::new(), PortLosses::default(), 0);
        Ok(TapPort { number, link, file, slots, losses, refused, is_finished: false })
    }

    /// Its interface.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Sets the MTU of the interface.
    pub fn set_mtu(&self, mtu: u32) -> Result<(), PortError> {
        tun::set_mtu(self.link.name(), mtu).map_err(self.link.cannot("be given that MTU"))
    }

    /// Closes the queue and returns its slots. The interface disappears with its last queue.
    pub fn close(self) -> impl Iterator<Item = Packet<'a>> {
        self.slots.close()
    }

    /// The file descriptor for poll or epoll to wait for packets.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Reads a frame into the next slot; `None` if there is no frame or no slot.
    fn read(&mut self) -> io::Result<Option<usize>> {
        let Some(slot) = self.slots.next() else { return Ok(None) };
        slot.set_frame_len(FRAME_CAPACITY);
        // The kernel cuts longer frames silently; one more byte shows that there was more.
        let mut more = [0];
        let parts = &mut [IoSliceMut::new(slot.frame_mut()), IoSliceMut::new(&mut more)];
        match self.file.read_vectored(parts) {
            Ok(len) => {
                slot.set_frame_len(len);
                slot.port = self.number;
                Ok(Some(len))
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    #[cold]
    fn failed(&mut self, error: io::Error) -> PortError {
        let error = self.link.failed(error);
        self.is_finished |= matches!(error, PortError::Removed { .. });
        error
    }
}

impl<'a> Port<'a> for TapPort<'a> {
    fn receive(&mut self, burst: &mut Burst<'a>, limit: usize) -> Result<usize, PortError> {
        let (wanted, before) = (limit.min(burst.room()), burst.len());
        for _ in 0..wanted {
            let Some(len) = self.read().map_err(|error| self.failed(error))? else { break };
            if len <= FRAME_CAPACITY {
                self.slots.fill(burst);
            } else {
                self.losses.too_long += 1;
            }
        }
        Ok(burst.len() - before)
    }

    fn transmit(&mut self, burst: &mut Burst<'a>) -> Result<usize, PortError> {
        let limit = burst.len().min(self.slots.room_for_sent());
        let mut taken = 0;
        for packet in &burst[..limit] {
            match self.file.write(packet.frame()) {
                Ok(_) => taken += 1,
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                    self.losses.unsendable += 1;
                    taken += 1;
                }
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) =>
                {
                    break;
                }
                Err(error) => {
                    self.slots.sent(burst, taken);
                    self.refused += burst.len() as u64;
                    return Err(self.failed(error));
                }
            }
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

    /// The kernel counts them as the sender.
    fn overruns(&mut self) -> Result<u64, PortError> {
        Ok(0)
    }

    fn losses(&mut self) -> PortLosses {
        std::mem::take(&mut self.losses)
    }

    /// The kernel does not say how many wait.
    fn undated(&mut self) -> usize {
        QUEUE
    }

    fn has_unsent(&mut self) -> bool {
        false
    }
}
