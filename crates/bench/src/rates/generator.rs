//! Sends packets at a load, by a packet socket.

use std::time::{Duration, Instant};

use fullview_plane::burst::{Arena, BURST, Burst};
use fullview_plane::port::Port;
use fullview_plane::port::packet::{PacketOptions, PacketPort};

use super::bed::{HOST, RateBed};
use super::cores::keep_real_time;
use super::error::RatesError;
use super::frame::{frame, set_flow};
use super::schedule::SendSchedule;

/// Nothing is received by the generator's socket.
const RING_FRAMES: usize = 64;

/// A link that takes no packets for so long after the end of a trial has failed.
const LONGEST_SEND: Duration = Duration::from_millis(10);

/// What the generator did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offered {
    pub planned: u64,
    /// Packets given to the link, whether or not the device had room for them.
    pub sent: u64,
}

impl Offered {
    /// The share of the schedule that was not sent.
    pub fn behind(self) -> f64 {
        1.0 - self.sent as f64 / self.planned.max(1) as f64
    }
}

/// Offers a load from the left host of a bed.
pub fn offer(bed: &RateBed, load: f64, duration: Duration) -> Result<Offered, RatesError> {
    let core = bed.cores.generator;
    bed.left.within(|| Ok(keep_real_time(core).and_then(|()| send(load, duration))))?
}

fn send(load: f64, duration: Duration) -> Result<Offered, RatesError> {
    let (mut arena, frame) = (Arena::new(BURST), frame());
    let (mut idle, mut burst) = (Burst::new(), Burst::new());
    idle.fill(arena.packets());
    for slot in idle.iter_mut() {
        slot.set_frame(&frame);
    }
    let options = PacketOptions { ring_frames: RING_FRAMES, bypass_queueing: true, filter: None };
    let mut port = PacketPort::open(0, HOST, options)?;
    let (mut schedule, began) = (SendSchedule::new(load), Instant::now());
    loop {
        let now = began.elapsed().min(duration);
        let due = schedule.due(now.as_secs_f64()) as usize;
        burst.fill(idle.drain_front(due));
        (schedule.next()..)
            .zip(burst.iter_mut())
            .for_each(|(packet, slot)| set_flow(slot.frame_mut(), packet));
        while !burst.is_empty() && began.elapsed() < duration + LONGEST_SEND {
            schedule.sent(port.transmit(&mut burst)? as u64);
            port.reclaim(&mut idle);
        }
        if now == duration {
            break;
        }
        std::hint::spin_loop();
    }
    Ok(Offered { planned: (load * duration.as_secs_f64()) as u64, sent: schedule.next() })
}
