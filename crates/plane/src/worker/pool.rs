//! The free slots of a worker. Each port gets as many back as it has handed out in received packets.

use crate::burst::{Burst, Packet};
use crate::port::Port;
use crate::port::memory::{Receiver, Sender};

pub(super) struct SlotPool<'a> {
    free: Vec<Packet<'a>>,
    /// Slots to return, by port number.
    due: Vec<usize>,
    /// Slots on the way between pool and port.
    passing: Burst<'a>,
}

impl<'a> SlotPool<'a> {
    /// A pool of which each existing port gets an equal share.
    pub fn new(free: Vec<Packet<'a>>, there: Vec<bool>) -> SlotPool<'a> {
        let ports = there.iter().filter(|there| **there).count().max(1);
        let share = free.len() / ports;
        let due = there.into_iter().map(|there| if there { share } else { 0 }).collect();
        SlotPool { free, due, passing: Burst::new() }
    }

    /// Records that a port handed out this number of slots.
    pub fn took(&mut self, port: usize, packets: usize) {
        self.due[port] += packets;
    }

    /// Returns slots to a port, as far as there are free slots and the port has room.
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

    /// Collects the slots of packets that a port has sent.
    pub fn reclaim(&mut self, port: &mut impl Port<'a>) {
        while port.reclaim(&mut self.passing) > 0 {
            self.free.extend(self.passing.drain());
        }
    }

    /// Lends some free slots until the next call of any other method.
    pub fn lend(&mut self) -> &mut Burst<'a> {
        self.fill(SPARE);
        &mut self.passing
    }

    /// Takes all slots of a burst and the unused lent ones, and returns how many were in the burst.
    pub fn keep(&mut self, burst: &mut Burst<'a>) -> u64 {
        let kept = burst.len() as u64;
        self.free.extend(self.passing.drain().chain(burst.drain()));
        kept
    }

    /// Records that a port is gone, and returns how many slots it would have got.
    pub fn forget(&mut self, port: usize) -> usize {
        std::mem::take(&mut self.due[port])
    }

    /// Takes slots that came from elsewhere.
    pub fn take_back(&mut self, packets: Vec<Packet<'a>>) {
        self.free.extend(packets);
    }

    /// Pays another worker with so many slots, or fewer, whatever ports are due. Returns how many.
    pub fn pay(&mut self, owed: usize, link: &mut Receiver<'a>) -> usize {
        self.fill(owed);
        let paid = link.recycle(&mut self.passing);
        self.free.extend(self.passing.drain());
        paid
    }

    /// Takes the slots that another worker has paid with.
    pub fn collect(&mut self, link: &mut Sender<'a>) {
        while link.reclaim(&mut self.passing) > 0 {
            self.free.extend(self.passing.drain());
        }
    }

    /// So many free slots, or fewer: what ports are due stays.
    pub fn take(&mut self, wanted: usize) -> Vec<Packet<'a>> {
        self.free.extend(self.passing.drain());
        let spare = self.free.len().saturating_sub(self.due.iter().sum());
        self.free.split_off(self.free.len() - wanted.min(spare))
    }

    /// All slots of the pool.
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
