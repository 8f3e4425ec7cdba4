//! The free slots of a worker, and how many of them each port is due: as many as it has given away in packets.

use crate::burst::{Burst, Packet};
use crate::port::Port;

pub(super) struct SlotPool<'a> {
    free: Vec<Packet<'a>>,
    /// By port number.
    due: Vec<usize>,
    /// On their way from the pool or to it.
    passing: Burst<'a>,
}

impl<'a> SlotPool<'a> {
    /// Shared alike by the ports that are there.
    pub fn new(free: Vec<Packet<'a>>, there: Vec<bool>) -> SlotPool<'a> {
        let ports = there.iter().filter(|there| **there).count().max(1);
        let share = free.len() / ports;
        let due = there.into_iter().map(|there| if there { share } else { 0 }).collect();
        SlotPool { free, due, passing: Burst::new() }
    }

    /// A port gave away so many slots.
    pub fn took(&mut self, port: usize, packets: usize) {
        self.due[port] += packets;
    }

    /// Gives a port what it is due, as far as there are free slots and it has room.
    pub fn give(&mut self, number: usize, port: &mut impl Port<'a>) {
        while self.due[number] > 0 {
            self.fill(self.due[number]);
            let given = port.recycle(&mut self.passing);
            self.due[number] -= given;
            self.free.extend(self.passing.drain());
            if given == 0 {
                return;
            }
        }
    }

    /// Fetches the slots of packets that a port has sent.
    pub fn reclaim(&mut self, port: &mut impl Port<'a>) {
        while port.reclaim(&mut self.passing) > 0 {
            self.free.extend(self.passing.drain());
        }
    }

    /// Some free slots, to be used until the next call of any other method.
    pub fn lend(&mut self) -> &mut Burst<'a> {
        self.fill(SPARE);
        &mut self.passing
    }

    /// Takes all slots of a burst, and returns how many; what was not used of the slots lent comes back too.
    pub fn keep(&mut self, burst: &mut Burst<'a>) -> u64 {
        let kept = burst.len() as u64;
        self.free.extend(self.passing.drain().chain(burst.drain()));
        kept
    }

    /// All slots that are here.
    pub fn into_packets(mut self) -> Vec<Packet<'a>> {
        self.free.extend(self.passing.drain());
        self.free
    }

    fn fill(&mut self, wanted: usize) {
        let first = self.free.len().saturating_sub(wanted.min(self.passing.room()));
        self.passing.fill(self.free.drain(first..));
    }
}

/// Slots lent at a time.
const SPARE: usize = 64;
