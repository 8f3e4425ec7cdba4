//! Compares what comes out with what was sent, packet by packet, at a load that every device carries.

use std::thread;
use std::time::{Duration, Instant};

use fullview_plane::burst::{Arena, BURST, Burst, Slot};
use fullview_plane::port::Port;
use fullview_plane::port::packet::{PacketOptions, PacketPort};
use fullview_table::{Address, NextHop};

use super::bed::DeviceBed;
use super::error::DeviceBedError;
use super::sender::{BedTraffic, Sender};
use crate::testbed::{EGRESS, station_mac, station_of};
use crate::traffic::check::{Checker, Departure, Passage};
use crate::traffic::frame::Headers;

/// Every device forwards a burst within a small part of this time.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_micros(200);
/// Packets on their way at a time: far fewer than any queue of the test bed holds, so that none is lost for want of room.
pub const IN_FLIGHT: usize = 32;
/// Packets that are compared at most.
const MOST: usize = 8192;

/// What an inspection found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    pub sent: u64,
    pub right: u64,
    pub wrong: u64,
    /// The first fault.
    pub fault: Option<&'static str>,
}

impl Inspection {
    /// Whether every packet came out once, and right.
    pub fn is_clean(&self) -> bool {
        self.wrong == 0 && self.right == self.sent
    }
}

/// Sends every packet of the sequence once, or as many as are compared at most, a burst at a time.
pub fn inspect<A: Headers>(
    bed: &DeviceBed,
    sender: &mut Sender<'_, A>,
    traffic: &BedTraffic<A>,
) -> Result<Inspection, DeviceBedError> {
    let departures = departures();
    let passage = if bed.is_routed { Passage::Routed(&departures) } else { Passage::Direct };
    let checker = Checker::new(&traffic.flows, &traffic.frames, passage);
    let mut arena = Arena::new(BURST);
    let options = PacketOptions { ring_frames: 4096, bypass_queueing: true, ..PacketOptions::default() };
    let mut port = bed.testbed.receiver.within(|| Ok(PacketPort::open(0, bed.sink(), options)))??;
    let (mut burst, mut free) = (Burst::new(), Burst::new());
    free.fill(arena.packets());
    port.recycle(&mut free);
    let mut found = Inspection::default();
    let count = traffic.flows.packets().len().min(MOST) as u64;
    while found.sent < count {
        let chunk = (count - found.sent).min(IN_FLIGHT as u64);
        sender.send(chunk as usize)?;
        found.sent += chunk;
        let began = Instant::now();
        while found.right + found.wrong < found.sent && began.elapsed() < PATIENCE {
            if port.receive(&mut burst, BURST)? == 0 {
                thread::sleep(PAUSE);
            }
            burst.iter().filter(|slot| is_udp::<A>(slot)).for_each(|slot| found.note(&checker, slot));
            port.recycle(&mut burst);
        }
        if !found.is_clean() {
            break;
        }
    }
    Ok(found)
}

impl Inspection {
    fn note<A: Headers>(&mut self, checker: &Checker<'_, A>, slot: &Slot) {
        let (faults, _) = checker.check(slot);
        self.right += u64::from(faults.is_empty());
        self.wrong += u64::from(!faults.is_empty());
        self.fault = self.fault.or_else(|| faults.iter().next().map(|fault| fault.name()));
    }
}

/// Whether it is no packet of the router's own, such as its reports of multicast groups.
fn is_udp<A: Address>(slot: &Slot) -> bool {
    const UDP: u8 = 17;
    match slot.frame().get(..24) {
        Some(head) if A::FAMILY == fullview_table::Family::Inet => {
            head[12..14] == [0x08, 0x00] && head[23] == UDP
        }
        Some(head) => head[12..14] == [0x86, 0xdd] && head[20] == UDP,
        None => false,
    }
}

/// How packets leave to each next hop; there are as many stations as next hops have different ones.
fn departures() -> Vec<Departure> {
    let to =
        |hop: u16| Departure { port: 0, source: EGRESS, destination: station_mac(station_of(NextHop(hop))) };
    (0..=NextHop::MAX).map(to).collect()
}
