//! Packets that one worker receives and another one forwards, because that one has the states of their flows.
//!
//! Each pair of workers has a link in both directions ([`crate::port::memory`]): a ring of packets, and one of free slots the other
//! way. A worker pays for each packet that it takes with a free slot, so that no worker ends up with the packet memory of another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::bell::{Bell, WakeWorker};
use super::pool::SlotPool;
use crate::burst::{BURST, Burst, Packet, Slot};
use crate::counters::Counters;
use crate::flow_owner::FlowOwners;
use crate::port::memory::{Receiver, Sender, link};
use crate::verdict::Reason;

/// Packets that wait between two workers at most, in one direction.
const RING: usize = 2 * BURST;

/// A worker's ends of the links to all others.
pub struct Exchange<'a> {
    number: usize,
    owners: FlowOwners,
    /// By worker; `None` for this one.
    lines: Vec<Option<Line<'a>>>,
    /// The line that is served first the next time.
    turn: usize,
    bell: Arc<Bell>,
    /// How often each port was taken out: a number of a port may stand for another interface afterwards.
    generations: Vec<u16>,
    /// Those of the burst that stay here, and what there was no room for.
    own: Burst<'a>,
    refused: Burst<'a>,
    /// Whether each worker is about to end.
    done: Arc<[AtomicBool]>,
}

/// The links between this worker and another one.
struct Line<'a> {
    to: Sender<'a>,
    from: Receiver<'a>,
    /// Those of the burst that go there.
    outgoing: Burst<'a>,
    /// Slots that are still to be paid with.
    owed: usize,
    /// The other worker's.
    bell: Arc<Bell>,
}

impl<'a> Exchange<'a> {
    /// The exchanges of as many workers as there are functions, each of which wakes its worker. An error may pass by the state of the
    /// packet that it quotes ([`FlowOwners`]).
    pub fn between(wakes: impl IntoIterator<Item = WakeWorker>, follow_quotes: bool) -> Vec<Exchange<'a>> {
        let bells: Vec<Arc<Bell>> = wakes.into_iter().map(|wake| Arc::new(Bell::new(wake))).collect();
        let owners = FlowOwners { workers: bells.len(), follow_quotes };
        let done: Arc<[AtomicBool]> = bells.iter().map(|_| AtomicBool::new(false)).collect();
        let new = |(number, bell): (usize, &Arc<Bell>)| Exchange {
            number,
            owners,
            lines: Vec::new(),
            turn: 0,
            bell: Arc::clone(bell),
            generations: Vec::new(),
            own: Burst::new(),
            refused: Burst::new(),
            done: Arc::clone(&done),
        };
        let mut all: Vec<Exchange<'a>> = bells.iter().enumerate().map(new).collect();
        for first in 0..all.len() {
            all[first].lines.push(None);
            for second in first + 1..all.len() {
                let [one, other] = Line::between([&bells[first], &bells[second]]);
                all[first].lines.push(Some(one));
                all[second].lines.push(Some(other));
            }
        }
        all
    }

    /// Notes that a port is taken out. All workers take out the same ports in the same order.
    pub(super) fn retire_port(&mut self, number: usize) {
        if self.generations.len() <= number {
            self.generations.resize(number + 1, 0);
        }
        self.generations[number] = self.generations[number].wrapping_add(1);
    }

    fn generation(&self, port: u16) -> u16 {
        self.generations.get(usize::from(port)).copied().unwrap_or(0)
    }

    /// Hands the packets of other workers over to them. In the burst stay those of this one, in their order. Returns those that a
    /// ring had no room for, to be counted and freed.
    #[inline]
    pub(super) fn hand_over(&mut self, burst: &mut Burst<'a>) -> &mut Burst<'a> {
        let (number, owners) = (self.number, self.owners);
        let is_other = |packet: &Slot| owners.of(packet).is_some_and(|owner| owner != number);
        // Ports of the right queue bring none, and then the burst stays as it is.
        if let Some(first) = burst.iter().position(|packet| is_other(packet)) {
            self.hand_over_from(first, burst);
        }
        &mut self.refused
    }

    /// Hands packets over, of which this one is the first.
    fn hand_over_from(&mut self, first: usize, burst: &mut Burst<'a>) {
        self.own.fill(burst.drain_front(first));
        for packet in burst.drain() {
            let owner = self.owners.of(packet).unwrap_or(self.number);
            // Its interface is not known yet: on the way the field has the port's generation.
            packet.interface = self.generation(packet.port);
            let to = self.lines[owner].as_mut().map_or(&mut self.own, |line| &mut line.outgoing);
            // It has as much room as the burst.
            to.fill([packet].into_iter());
        }
        std::mem::swap(burst, &mut self.own);
        for line in self.lines.iter_mut().flatten() {
            line.send();
            self.refused.fill(line.outgoing.drain());
        }
    }

    /// Takes packets that others have handed over, `most` at most, and returns those among them whose port is none any more, to be
    /// counted and freed.
    pub(super) fn take(&mut self, most: usize, burst: &mut Burst<'a>) -> &mut Burst<'a> {
        let before = burst.len();
        // One that always has a burst must not keep the others from theirs.
        self.turn = (self.turn + 1) % self.lines.len();
        let (last, first) = self.lines.split_at_mut(self.turn);
        for line in first.iter_mut().chain(last).flatten() {
            let room = (most + before).saturating_sub(burst.len());
            line.owed += line.from.receive(burst, room);
        }
        if burst[before..].iter().any(|packet| self.is_outdated(packet)) {
            self.sort_out(burst);
        }
        &mut self.refused
    }

    fn is_outdated(&self, packet: &Slot) -> bool {
        packet.interface != self.generation(packet.port)
    }

    #[cold]
    fn sort_out(&mut self, burst: &mut Burst<'a>) {
        for packet in burst.drain() {
            let to = if self.is_outdated(packet) { &mut self.refused } else { &mut self.own };
            to.fill([packet].into_iter());
        }
        std::mem::swap(burst, &mut self.own);
    }

    /// Pays with free slots, and takes those that others have paid with.
    pub(super) fn settle(&mut self, pool: &mut SlotPool<'a>) {
        for line in self.lines.iter_mut().flatten() {
            if line.owed > 0 {
                line.pay(pool);
            }
            pool.collect(&mut line.to);
        }
    }

    /// Whether neither packets nor slots wait for this worker.
    fn is_empty(&self) -> bool {
        self.lines.iter().flatten().all(|line| line.from.is_empty() && !line.to.has_free())
    }

    /// Sleeps by `wait`, until another worker hands something over.
    pub(super) fn sleep(&self, wait: impl FnOnce()) {
        self.bell.sleep(|| self.is_empty(), wait);
    }

    /// Notes that this worker is about to end, and says whether all are.
    pub(super) fn finish(&self) -> bool {
        self.done[self.number].store(true, Ordering::Release);
        self.done.iter().all(|done| done.load(Ordering::Acquire))
    }

    /// The slots in its links, after all workers have ended. Counts the packets among them, which this worker no longer took.
    pub fn end(self, counters: &mut Counters) -> Vec<Packet<'a>> {
        let (mut packets, mut burst) = (Vec::new(), Burst::new());
        for mut line in self.lines.into_iter().flatten() {
            while line.from.receive(&mut burst, BURST) > 0 {
                counters.drops[Reason::HandOver.index()] += burst.len() as u64;
                packets.extend(burst.drain());
            }
            while line.to.reclaim(&mut burst) > 0 {
                packets.extend(burst.drain());
            }
        }
        packets
    }
}

impl<'a> Line<'a> {
    /// Both ends of a line between the workers with these bells.
    fn between([first, second]: [&Arc<Bell>; 2]) -> [Line<'a>; 2] {
        let ((to_second, from_first), (to_first, from_second)) = (link(RING), link(RING));
        let line =
            |to, from, bell| Line { to, from, outgoing: Burst::new(), owed: 0, bell: Arc::clone(bell) };
        [line(to_second, from_second, second), line(to_first, from_first, first)]
    }

    /// Pays with as many slots as there are. The other worker may have none left to receive with.
    fn pay(&mut self, pool: &mut SlotPool<'a>) {
        let paid = pool.pay(self.owed, &mut self.from);
        self.owed -= paid;
        if paid > 0 {
            self.bell.ring();
        }
    }

    /// Sends what goes there, as far as there is room, and wakes the other worker.
    fn send(&mut self) {
        if !self.outgoing.is_empty() && self.to.send(&mut self.outgoing) > 0 {
            self.bell.ring();
        }
    }
}
