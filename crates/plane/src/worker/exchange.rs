//! Packets that one worker receives and another one forwards, because that one has the states of their flows.
//!
//! Each pair of workers has four rings: packets and free slots, in both directions. A worker pays for each packet that it takes
//! with a free slot, so that no worker ends up with the packet memory of another. A ring has one writer and one reader.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rtrb::{Consumer, Producer, PushError, RingBuffer};

use super::bell::Bell;
use super::pool::SlotPool;
use crate::burst::{BURST, Burst, Packet, Slot};
use crate::flow_owner::owner_of;

/// Packets that wait between two workers at most, in one direction. It bounds how many slots a worker lacks because of another.
const RING: usize = 2 * BURST;

/// A worker's ends of the rings to all others.
pub struct Exchange<'a> {
    number: usize,
    /// By worker; `None` for this one.
    lines: Vec<Option<Line<'a>>>,
    bell: Arc<Bell>,
    /// How often each port was taken out: a number of a port may stand for another interface afterwards.
    generations: Vec<u16>,
    /// Those of the burst that stay here, and what there was no room for.
    own: Burst<'a>,
    refused: Burst<'a>,
    /// Whether each worker has received its last packet.
    done: Arc<[AtomicBool]>,
}

/// The rings between this worker and another one.
struct Line<'a> {
    packets_out: Producer<Packet<'a>>,
    packets_in: Consumer<Packet<'a>>,
    slots_out: Producer<Packet<'a>>,
    slots_in: Consumer<Packet<'a>>,
    /// Slots that are still to be paid with.
    owed: usize,
    /// The other worker's, and whether it is to ring.
    bell: Arc<Bell>,
    has_news: bool,
}

/// Both ends of the rings of packets and of slots in one direction.
type HalfLine<'a> =
    ((Producer<Packet<'a>>, Consumer<Packet<'a>>), (Producer<Packet<'a>>, Consumer<Packet<'a>>));

impl<'a> Exchange<'a> {
    /// The exchanges of as many workers as there are functions, each of which wakes its worker.
    pub fn between(wakes: impl IntoIterator<Item = Box<dyn Fn() + Send + Sync>>) -> Vec<Exchange<'a>> {
        let bells: Vec<Arc<Bell>> = wakes.into_iter().map(|wake| Arc::new(Bell::new(wake))).collect();
        let done: Arc<[AtomicBool]> = bells.iter().map(|_| AtomicBool::new(false)).collect();
        let new = |(number, bell): (usize, &Arc<Bell>)| Exchange {
            number,
            lines: Vec::new(),
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
    pub(super) fn hand_over(&mut self, burst: &mut Burst<'a>) -> &mut Burst<'a> {
        for packet in burst.drain() {
            let owner = owner_of(packet.frame(), self.lines.len()).unwrap_or(self.number);
            // Where the packet stays until its interface is known.
            packet.interface = self.generation(packet.port);
            let unsent = match &mut self.lines[owner] {
                None => self.own.push(packet).err(),
                Some(line) => line.send(packet).err(),
            };
            self.refused.fill(unsent.into_iter());
        }
        std::mem::swap(burst, &mut self.own);
        self.lines.iter_mut().flatten().for_each(Line::ring);
        &mut self.refused
    }

    /// Takes packets that others have handed over, `most` at most, and returns those among them whose port is none any more, to be
    /// counted and freed.
    pub(super) fn take(&mut self, most: usize, burst: &mut Burst<'a>) -> &mut Burst<'a> {
        let before = burst.len();
        for line in self.lines.iter_mut().flatten() {
            let room = (most + before).saturating_sub(burst.len());
            line.owed += burst_from(&mut line.packets_in, room, burst);
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
            while line.owed > 0 && pool.pay(&mut line.slots_out) {
                line.owed -= 1;
            }
            pool.collect(&mut line.slots_in);
        }
    }

    /// Whether no packets wait for this worker.
    fn is_empty(&self) -> bool {
        self.lines.iter().flatten().all(|line| line.packets_in.is_empty())
    }

    /// Sleeps by `wait`, until another worker hands something over.
    pub(super) fn sleep(&self, wait: impl FnOnce()) {
        self.bell.sleep(|| self.is_empty(), wait);
    }

    /// Notes that this worker receives no more packets by its ports, and says whether none does.
    pub(super) fn finish(&self) -> bool {
        self.done[self.number].store(true, Ordering::Release);
        self.done.iter().all(|done| done.load(Ordering::Acquire))
    }

    /// The slots in its rings, after all workers have ended.
    pub fn into_packets(self) -> impl Iterator<Item = Packet<'a>> {
        let lines = self.lines.into_iter().flatten();
        let rings = lines.flat_map(|line| [line.packets_in, line.slots_in]);
        rings.flat_map(|mut ring| std::iter::from_fn(move || ring.pop().ok()))
    }
}

impl<'a> Line<'a> {
    /// Both ends of a line between the workers with these bells.
    fn between([first, second]: [&Arc<Bell>; 2]) -> [Line<'a>; 2] {
        let half = || (RingBuffer::new(RING), RingBuffer::new(RING));
        let (there, back): (HalfLine<'a>, HalfLine<'a>) = (half(), half());
        let line =
            |to: (Producer<_>, Producer<_>), from: (Consumer<_>, Consumer<_>), bell: &Arc<Bell>| Line {
                packets_out: to.0,
                slots_out: to.1,
                packets_in: from.0,
                slots_in: from.1,
                owed: 0,
                bell: Arc::clone(bell),
                has_news: false,
            };
        let ((packets_there, taken_there), (slots_there, paid_there)) = there;
        let ((packets_back, taken_back), (slots_back, paid_back)) = back;
        [
            line((packets_there, slots_there), (taken_back, paid_back), second),
            line((packets_back, slots_back), (taken_there, paid_there), first),
        ]
    }

    /// Hands a packet over, unless there is no room.
    fn send(&mut self, packet: Packet<'a>) -> Result<(), Packet<'a>> {
        self.packets_out.push(packet).map_err(|PushError::Full(packet)| packet)?;
        self.has_news = true;
        Ok(())
    }

    /// Wakes the other worker if there is something for it.
    fn ring(&mut self) {
        if std::mem::take(&mut self.has_news) {
            self.bell.ring();
        }
    }
}

/// Moves packets from a ring to a burst, and returns how many.
fn burst_from<'a>(ring: &mut Consumer<Packet<'a>>, most: usize, burst: &mut Burst<'a>) -> usize {
    let there = ring.slots().min(most).min(burst.room());
    if let Ok(chunk) = ring.read_chunk(there) {
        burst.fill(chunk.into_iter());
    }
    there
}
