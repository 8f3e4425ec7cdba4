//! Sends packets at a load, by a packet socket.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fullview_plane::burst::{Arena, BURST, Burst};
use fullview_plane::port::Port;
use fullview_plane::port::packet::{PacketOptions, PacketPort};

use super::bed::{HOST, RateBed};
use super::cores::keep_real_time;
use super::error::RatesError;
use super::frame::{TrafficAddresses, TrafficFrames};
use super::schedule::SendSchedule;
use super::trial::Offered;
use crate::traffic::frame::FrameSize;

/// Nothing is received by the generator's socket.
const RING_FRAMES: usize = 64;

/// A link that takes no packets for so long after the end of a trial has failed.
const LONGEST_SEND: Duration = Duration::from_millis(10);

/// Offers a load from the left host of a bed.
pub fn offer(bed: &RateBed, load: f64, duration: Duration) -> Result<Offered, RatesError> {
    offer_to(bed, &bed.destinations, load, duration)
}

/// The same to these destinations in turn, or to the right host if there are none.
pub fn offer_to(
    bed: &RateBed,
    destinations: &[Ipv4Addr],
    load: f64,
    duration: Duration,
) -> Result<Offered, RatesError> {
    let core = bed.cores.generator;
    let never = AtomicBool::new(false);
    let load = TimedLoad { load, size: bed.size, destinations, duration, stop: &never };
    let sending = || keep_real_time(core).and_then(|()| send(HOST, &TrafficAddresses::BED, load));
    bed.left.within(|| Ok(sending()))?
}

/// A load for some time, or until a flag is set.
#[derive(Clone, Copy, Debug)]
pub struct TimedLoad<'s> {
    /// Packets per second.
    pub load: f64,
    pub size: FrameSize,
    /// To which packets go in turn; none if all go to that of the addresses.
    pub destinations: &'s [Ipv4Addr],
    pub duration: Duration,
    pub stop: &'s AtomicBool,
}

/// Sends packets from an interface, in the calling thread.
pub fn send(
    interface: &str,
    addresses: &TrafficAddresses,
    TimedLoad { load, size, destinations, duration, stop }: TimedLoad<'_>,
) -> Result<Offered, RatesError> {
    let (mut arena, frames) = (Arena::new(BURST), TrafficFrames::new(addresses, size, destinations));
    let (mut idle, mut burst) = (Burst::new(), Burst::new());
    idle.fill(arena.packets());
    for slot in idle.iter_mut() {
        frames.prepare(slot);
    }
    let options = PacketOptions { ring_frames: RING_FRAMES, bypass_queueing: true, filter: None };
    let mut port = PacketPort::open(0, interface, options)?;
    let (mut schedule, began) = (SendSchedule::new(load), Instant::now());
    loop {
        let now = began.elapsed().min(duration);
        let due = schedule.due(now.as_secs_f64()) as usize;
        burst.fill(idle.drain_front(due));
        (schedule.next()..).zip(burst.iter_mut()).for_each(|(packet, slot)| frames.write(slot, packet));
        while !burst.is_empty() && began.elapsed() < duration + LONGEST_SEND {
            schedule.sent(port.transmit(&mut burst)? as u64);
            port.reclaim(&mut idle);
        }
        if now == duration || stop.load(Ordering::Relaxed) {
            break;
        }
        std::hint::spin_loop();
    }
    Ok(Offered { planned: (load * duration.as_secs_f64()) as u64, sent: schedule.next() })
}
