//! Sends packets at a load, by a packet socket.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fullview_plane::burst::{Arena, BURST, Burst, Slot};
use fullview_plane::port::Port;
use fullview_plane::port::link::Link;
use fullview_plane::port::packet::{PacketOptions, PacketPort};

use super::bed::{HOST, RateBed};
use super::cores::keep_real_time;
use super::error::RatesError;
use super::frame::{TrafficAddresses, TrafficFrames};
use super::parts::{parts, pause};
use super::schedule::SendSchedule;
use super::trial::Offered;
use crate::traffic::frame::FrameSize;

/// Nothing is received by the generator's socket.
const RING_FRAMES: usize = 64;

/// The driver whose transmit queue is the ring in which the device at the other end receives.
const VETH: &str = "veth";

/// A link that takes no packets for so long after the end of a trial has failed.
const LONGEST_SEND: Duration = Duration::from_millis(10);

/// Offers a load from the left host of a bed.
pub fn offer(bed: &RateBed, load: f64, duration: Duration) -> Result<Offered, RatesError> {
    offer_to(bed, &bed.destinations, load, duration)
}

/// The same to these destinations in turn, or to the right host if there are none.
pub fn offer_to(
    bed: &RateBed,
    destinations: &[IpAddr],
    load: f64,
    duration: Duration,
) -> Result<Offered, RatesError> {
    send_from(bed, destinations, load, duration, &mut Unmarked)
}

/// The same, with marks in packets.
pub fn offer_marked(
    bed: &RateBed,
    load: f64,
    duration: Duration,
    mark: &mut (impl PacketMark + Send),
) -> Result<Offered, RatesError> {
    send_from(bed, &bed.destinations, load, duration, mark)
}

fn send_from(
    bed: &RateBed,
    destinations: &[IpAddr],
    load: f64,
    duration: Duration,
    mark: &mut (impl PacketMark + Send),
) -> Result<Offered, RatesError> {
    let core = bed.cores.generator;
    let never = AtomicBool::new(false);
    let load = TimedLoad { load, size: bed.size, destinations, duration, stop: &never };
    let addresses = TrafficAddresses::of_bed(bed.family);
    let mut sending = || keep_real_time(core).and_then(|()| send_marked(HOST, &addresses, load, mark));
    bed.left.within(|| Ok(sending()))?
}

/// A load for some time, or until a flag is set.
#[derive(Clone, Copy, Debug)]
pub struct TimedLoad<'s> {
    /// Packets per second.
    pub load: f64,
    pub size: FrameSize,
    /// To which packets go in turn; none if all go to that of the addresses.
    pub destinations: &'s [IpAddr],
    pub duration: Duration,
    pub stop: &'s AtomicBool,
}

/// Writes into packets what a receiver looks for.
pub trait PacketMark {
    /// Marks a packet or not. `due` tells when the schedule wants it sent.
    fn mark(&mut self, slot: &mut Slot, due: impl FnOnce() -> Instant);
}

/// Marks no packet.
pub struct Unmarked;

impl PacketMark for Unmarked {
    fn mark(&mut self, _slot: &mut Slot, _due: impl FnOnce() -> Instant) {}
}

/// Sends packets from an interface, in the calling thread, with marks in some of them.
pub fn send_marked(
    interface: &str,
    addresses: &TrafficAddresses,
    load: TimedLoad<'_>,
    mark: &mut impl PacketMark,
) -> Result<Offered, RatesError> {
    let mut arena = Arena::new(BURST);
    let frames = TrafficFrames::new(addresses, load.size, load.destinations);
    let mut sender = TrialSender::open(interface, frames, &mut arena)?;
    let mut offered = Offered::default();
    for part in parts(load.duration).take_while(|_| !load.stop.load(Ordering::Relaxed)) {
        let sent = sender.part(TimedLoad { duration: part, ..load }, mark)?;
        offered.planned += sent.planned;
        offered.sent += sent.sent;
        thread::sleep(pause(part));
    }
    Ok(offered)
}

/// What sends the parts of a trial.
struct TrialSender<'a> {
    port: PacketPort<'a>,
    /// Whether a frame for which the queue has no room is one that the device has no room for.
    drops_are_losses: bool,
    frames: TrafficFrames,
    idle: Burst<'a>,
    burst: Burst<'a>,
    /// Packets of the parts before.
    sent: u64,
}

impl<'a> TrialSender<'a> {
    fn open(
        interface: &str,
        frames: TrafficFrames,
        arena: &'a mut Arena,
    ) -> Result<TrialSender<'a>, RatesError> {
        let mut idle = Burst::new();
        idle.fill(arena.packets());
        idle.iter_mut().for_each(|slot| frames.prepare(slot));
        let options =
            PacketOptions { ring_frames: RING_FRAMES, bypass_queueing: true, ..PacketOptions::default() };
        let port = PacketPort::open(0, interface, options)?;
        let drops_are_losses = Link::named(interface)?.driver()? == VETH;
        Ok(TrialSender { port, drops_are_losses, frames, idle, burst: Burst::new(), sent: 0 })
    }

    fn part(&mut self, part: TimedLoad<'_>, mark: &mut impl PacketMark) -> Result<Offered, RatesError> {
        let TimedLoad { load, duration, stop, .. } = part;
        let (mut schedule, began) = (SendSchedule::new(load), Instant::now());
        loop {
            let now = began.elapsed().min(duration);
            let due = schedule.due(now.as_secs_f64());
            self.write(&schedule, due, |slot, due| mark.mark(slot, || began + due()));
            while !self.burst.is_empty() && began.elapsed() < duration + LONGEST_SEND {
                schedule.sent(self.transmit()?);
                self.port.reclaim(&mut self.idle);
            }
            if now == duration || stop.load(Ordering::Relaxed) {
                break;
            }
            std::hint::spin_loop();
        }
        self.sent += schedule.next();
        // What the link did not take is not sent in the next part either.
        self.idle.fill(self.burst.drain_front(BURST));
        Ok(Offered { planned: (load * duration.as_secs_f64()) as u64, sent: schedule.next() })
    }

    /// Sends the burst, and returns how many packets of it count. A card's full queue says that the wire or the card is too
    /// slow, and nothing about the device: the packets that it drops are still due, and the generator is behind.
    fn transmit(&mut self) -> Result<u64, RatesError> {
        let taken = self.port.transmit(&mut self.burst)? as u64;
        let dropped = self.port.losses().dropped;
        Ok(if self.drops_are_losses { taken } else { taken - dropped })
    }

    /// Writes the next packets into the burst.
    fn write(
        &mut self,
        schedule: &SendSchedule,
        count: u64,
        mut mark: impl FnMut(&mut Slot, &dyn Fn() -> Duration),
    ) {
        self.burst.fill(self.idle.drain_front(count as usize));
        for (ahead, slot) in (0..).zip(self.burst.iter_mut()) {
            self.frames.write(slot, self.sent + schedule.next() + ahead);
            mark(slot, &|| schedule.due_time(ahead));
        }
    }
}

#[cfg(test)]
mod tests {
    use fullview_table::Family;
    use fullview_testnet::current::ip;
    use fullview_testnet::in_namespace;

    use super::*;

    /// What counts as sent by an interface that drops every frame.
    fn sent_by(interface: &str) -> Offered {
        ip(&format!("link set {interface} up"));
        let (stop, duration) = (&AtomicBool::new(false), Duration::from_millis(20));
        let load = TimedLoad { load: 1e5, size: FrameSize::default(), destinations: &[], duration, stop };
        send_marked(interface, &TrafficAddresses::of_bed(Family::Inet), load, &mut Unmarked).unwrap()
    }

    #[test]
    fn what_a_card_drops_is_not_sent_and_what_the_device_has_no_room_for_is() {
        in_namespace(|| {
            ip("tuntap add card mode tap");
            let card = sent_by("card");
            assert_eq!((card.planned, card.sent), (2000, 0));
            ip("link add left type veth peer name right");
            let device = sent_by("left");
            assert!(device.sent > 0, "{device:?}");
        });
    }
}
