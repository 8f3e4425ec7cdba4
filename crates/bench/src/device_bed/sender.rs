//! Sends the flows of a panel, as fast as the link takes them.

use std::time::{Duration, Instant};

use fullview_plane::burst::{Arena, BURST, Burst};
use fullview_plane::port::Port;
use fullview_plane::port::packet::{PacketOptions, PacketPort};

use super::bed::DeviceBed;
use super::error::DeviceBedError;
use crate::traffic::flow::FlowSet;
use crate::traffic::frame::{Frames, Headers, write};

/// The generator's socket receives nothing that matters.
const RING_FRAMES: usize = 64;
/// A link that takes no packets for so long has failed.
const LONGEST_SEND: Duration = Duration::from_secs(1);

/// What all devices of a panel get.
pub struct BedTraffic<A> {
    pub flows: std::sync::Arc<FlowSet<A>>,
    pub frames: Frames<A>,
}

/// A generator at one bed.
pub struct Sender<'a, A> {
    port: PacketPort<'a>,
    idle: Burst<'a>,
    traffic: &'a BedTraffic<A>,
    next: u64,
}

impl<'a, A: Headers> Sender<'a, A> {
    /// Opens the generator's interface.
    pub fn open(
        bed: &DeviceBed,
        arena: &'a mut Arena,
        traffic: &'a BedTraffic<A>,
    ) -> Result<Sender<'a, A>, DeviceBedError> {
        let options =
            PacketOptions { ring_frames: RING_FRAMES, bypass_queueing: true, ..PacketOptions::default() };
        let port = bed.testbed.generator.within(|| Ok(PacketPort::open(0, bed.source(), options)))??;
        let mut idle = Burst::new();
        idle.fill(arena.packets());
        idle.iter_mut().for_each(|slot| traffic.frames.prepare(slot));
        Ok(Sender { port, idle, traffic, next: 0 })
    }

    /// Sends for this time, and returns how many packets.
    pub fn send_for(&mut self, time: Duration) -> Result<u64, DeviceBedError> {
        let (began, first) = (Instant::now(), self.next);
        while began.elapsed() < time {
            self.send(BURST)?;
        }
        Ok(self.next - first)
    }

    /// Sends so many packets, at most a burst.
    pub fn send(&mut self, count: usize) -> Result<(), DeviceBedError> {
        let mut burst = Burst::new();
        burst.fill(self.idle.drain_front(count));
        let BedTraffic { flows, frames } = self.traffic;
        let packets = flows.packets();
        for (number, slot) in (self.next..).zip(burst.iter_mut()) {
            let flow = &packets[(number % packets.len() as u64) as usize];
            write(slot, frames.template((number % frames.turns() as u64) as usize), flow, number);
        }
        let began = Instant::now();
        while !burst.is_empty() {
            self.next += self.port.transmit(&mut burst)? as u64;
            self.port.reclaim(&mut self.idle);
            if began.elapsed() > LONGEST_SEND {
                return Err(DeviceBedError::Stuck);
            }
        }
        Ok(())
    }
}
